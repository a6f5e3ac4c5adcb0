/** The state of an EIP-3009 authorization's nonce: the token says whether it is spent, and its events say where. */
import { parseAbi } from 'viem'
import type { AuthorizationState, TokenAuthorization } from '../../chain.ts'
import { authorizationCanceledEvent, authorizationUsedEvent } from '../contracts/abi.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type LogSearch, pagesBack } from './executions.ts'

/** Tokens with EIP-3009 answer whether a nonce is spent, by use or by cancellation. */
const authorizationAbi = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
])

/** Asks the token. @throws Error where it is spent and its event cannot be found as far back as nodes are asked. */
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
