/**
 * State of an EIP-3009 authorization's nonce: the token reports whether it is spent, its events in which transaction.
 */
import { parseAbi } from 'viem'
import type { AuthorizationState, TokenAuthorization } from '../../providers/chain/port.ts'
import { authorizationCanceledEvent, authorizationUsedEvent } from '../contracts/abi.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type LogSearch, pagesBack } from './executions.ts'

const authorizationAbi = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
])

/**
 * Checks in one block that it was cancelled, or that its time has passed and it was not used.
 * @param blockTag `safe` where blocks can be replaced. @throws Error as {@link readAuthorizationState}.
 */
export async function isAuthorizationOver(
  client: NodeClient,
  authorization: TokenAuthorization,
  {
    validBefore,
    blockTag,
    search,
  }: { validBefore: Date; blockTag: 'latest' | 'safe'; search: LogSearch | undefined },
): Promise<boolean> {
  const { token, authorizer, nonce } = authorization
  const { number: blockNumber, timestamp } = await client.getBlock({ blockTag })
  const isSpent = await client.readContract({
    address: token,
    abi: authorizationAbi,
    functionName: 'authorizationState',
    args: [authorizer, nonce],
    blockNumber,
  })
  if (!isSpent) return timestamp >= BigInt(Math.ceil(validBefore.getTime() / 1000))
  return (await readAuthorizationState(client, authorization, search)).status === 'canceled'
}

/**
 * Reads the state from the token.
 * @throws Error when the nonce is spent and its event is outside the searchable range.
 */
export async function readAuthorizationState(
  client: NodeClient,
  { token, authorizer, nonce }: TokenAuthorization,
  search: LogSearch | undefined,
): Promise<AuthorizationState> {
  const isSpent = await client.readContract({
    address: token,
    abi: authorizationAbi,
    functionName: 'authorizationState',
    args: [authorizer, nonce],
  })
  if (!isSpent) return { status: 'unused' }
  for await (const range of pagesBack(client, search)) {
    const about = { address: token, args: { authorizer, nonce }, ...range }
    const [used] = await client.getLogs({ ...about, event: authorizationUsedEvent })
    if (used !== undefined) return { status: 'used', transactionHash: used.transactionHash }
    const [canceled] = await client.getLogs({ ...about, event: authorizationCanceledEvent })
    if (canceled !== undefined) return { status: 'canceled' }
  }
  throw new Error(`The authorization ${nonce} is spent, but its event was not found.`)
}
