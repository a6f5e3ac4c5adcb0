/** What became of an EIP-3009 authorization: the token says that it is spent, and its events say how. */
import { type AbiEvent, parseAbi, parseAbiItem } from 'viem'
import type { AuthorizationOutcome, TokenAuthorization } from '../chain.ts'
import type { NodeClient } from './client.ts'
import type { LogSearch } from './executions.ts'

/** What tokens with EIP-3009 answer of an authorization: whether it is spent. */
export const authorizationAbi = parseAbi([
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
])

const used = parseAbiItem('event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)')
const canceled = parseAbiItem(
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
)

/** Asks the token. @throws Error where it is spent and its event cannot be found as far back as nodes are asked. */
export async function authorizationOutcome(
  client: NodeClient,
  { token, authorizer, nonce }: TokenAuthorization,
  search: LogSearch | undefined,
): Promise<AuthorizationOutcome> {
  const args = [authorizer, nonce] as const
  const isSpent = await client.readContract({
    address: token,
    abi: authorizationAbi,
    functionName: 'authorizationState',
    args,
  })
  if (!isSpent) return { status: 'unused' }
  const find = async (event: AbiEvent, fromBlock: bigint, toBlock: bigint) => {
    const logs = await client.getLogs({
      address: token,
      event,
      args: { authorizer, nonce },
      fromBlock,
      toBlock,
    })
    return logs[0]?.transactionHash ?? undefined
  }
  let toBlock = await client.getBlockNumber()
  for (let page = 0; page < (search?.pages ?? 1) && toBlock >= 0n; page += 1) {
    const fromBlock =
      search === undefined || toBlock < search.pageBlocks ? 0n : toBlock - search.pageBlocks + 1n
    const transactionHash = await find(used, fromBlock, toBlock)
    if (transactionHash !== undefined) return { status: 'used', transactionHash }
    if ((await find(canceled, fromBlock, toBlock)) !== undefined) return { status: 'canceled' }
    toBlock = fromBlock - 1n
  }
  throw new Error(`The authorization ${nonce} is spent, but its event was not found.`)
}
