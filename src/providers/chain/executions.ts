/** What the EntryPoint says of an operation: executed or not, and in which transaction. */
import { parseEventLogs, type TransactionReceipt } from 'viem'
import type { Address, Hex } from '../chain.ts'
import { entryPointAbi, userOperationEvent } from './abi.ts'
import type { NodeClient } from './client.ts'

/** An executed operation. @property success false where the token refused: the nonce is used, nothing has moved. */
export interface Execution {
  readonly transactionHash: Hex
  readonly success: boolean
}

/** One operation by its sender and full nonce. */
export interface OperationKey {
  readonly entryPoint: Address
  readonly sender: Address
  readonly nonce: bigint
}

/** How far back to search, in pages: nodes refuse wide ranges. Undefined where one query may cover the whole chain. */
export interface LogSearch {
  readonly pageBlocks: bigint
  readonly pages: number
}

/** The operation's execution inside one transaction, if it is there. */
export function executionIn(
  receipt: TransactionReceipt,
  { entryPoint, sender, nonce }: OperationKey,
): Execution | undefined {
  const event = parseEventLogs({
    abi: [userOperationEvent],
    eventName: 'UserOperationEvent',
    logs: receipt.logs,
  }).find(
    ({ address, args }) => args.nonce === nonce && isSame(args.sender, sender) && isSame(address, entryPoint),
  )
  return event && { transactionHash: event.transactionHash, success: event.args.success }
}

/** Whether the operation's nonce is used, counting what is pending where `when` says so. */
export async function isExecuted(
  client: NodeClient,
  { entryPoint, sender, nonce }: OperationKey,
  when: 'latest' | 'pending',
): Promise<boolean> {
  const key = nonce >> 64n
  const next = await client.readContract({
    address: entryPoint,
    abi: entryPointAbi,
    functionName: 'getNonce',
    args: [sender, key],
    blockTag: when,
  })
  return next > nonce
}

/** Searches the chain's events for the operation, latest first. @throws where the search ends before it is found. */
export async function findExecution(
  client: NodeClient,
  { entryPoint, sender, nonce }: OperationKey,
  search: LogSearch | undefined,
): Promise<Execution> {
  let toBlock = await client.getBlockNumber()
  for (let page = 0; page < (search?.pages ?? 1) && toBlock >= 0n; page += 1) {
    const fromBlock =
      search === undefined || toBlock < search.pageBlocks ? 0n : toBlock - search.pageBlocks + 1n
    const logs = await client.getLogs({
      address: entryPoint,
      event: userOperationEvent,
      args: { sender },
      strict: true,
      fromBlock,
      toBlock,
    })
    const event = logs.find(({ args }) => args.nonce === nonce)
    if (event !== undefined) return { transactionHash: event.transactionHash, success: event.args.success }
    toBlock = fromBlock - 1n
  }
  throw new Error(`The operation of ${sender} with nonce ${nonce} is executed, but its event was not found.`)
}

function isSame(one: Address, other: Address): boolean {
  return one.toLowerCase() === other.toLowerCase()
}
