/** Executions under an operation's nonce, and their transactions. */
import type { TransactionReceipt } from 'viem'
import type { Address, Hex, MinedTransaction } from '../../providers/chain/port.ts'
import { entryPointAbi, userOperationEvent } from '../contracts/abi.ts'
import type { NodeClient } from '../rpc/client.ts'
import { lowerCaseAddress } from '../rpc/networks.ts'
import type { ReadReceipt } from './read-receipt.ts'

/** An executed operation. @property succeeded false if its call reverted: the nonce is used, nothing moved. */
export interface Execution {
  readonly operationHash: Hex
  readonly succeeded: boolean
  readonly transaction: MinedTransaction
}

/** An operation identified by its sender and full nonce. */
export interface OperationKey {
  readonly entryPoint: Address
  readonly sender: Address
  readonly nonce: bigint
}

/**
 * Range of a log search, in pages, because nodes reject wide ranges. Undefined if one query may cover the whole
 * chain.
 */
export interface LogSearch {
  readonly pageBlocks: bigint
  readonly pages: number
}

/** Finds the execution of a nonce inside one transaction. */
export function executionIn(
  { transaction, operations }: ReadReceipt,
  { sender, nonce }: Pick<OperationKey, 'sender' | 'nonce'>,
): Execution | undefined {
  const plain = lowerCaseAddress(sender)
  const executed = operations.find((operation) => operation.nonce === nonce && operation.sender === plain)
  return executed && { operationHash: executed.hash, succeeded: executed.succeeded, transaction }
}

/** Checks whether the operation's nonce is used, including pending transactions if `when` says so. */
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

/** Searches the chain's events for the nonce, latest first. @throws when the search ends without a match. */
export async function findExecution(
  client: NodeClient,
  key: OperationKey,
  { search, read }: { search: LogSearch | undefined; read: (receipt: TransactionReceipt) => ReadReceipt },
): Promise<Execution> {
  const { entryPoint, sender, nonce } = key
  for await (const { fromBlock, toBlock } of pagesBack(client, search)) {
    const logs = await client.getLogs({
      address: entryPoint,
      event: userOperationEvent,
      args: { sender },
      strict: true,
      fromBlock,
      toBlock,
    })
    const event = logs.find(({ args }) => args.nonce === nonce)
    if (event === undefined) continue
    const receipt = await client.getTransactionReceipt({ hash: event.transactionHash })
    const execution = executionIn(read(receipt), key)
    if (execution !== undefined) return execution
  }
  throw new Error(`The nonce ${nonce} of ${sender} is used, but the operation that used it was not found.`)
}

/** Yields the block ranges of a search, latest first. */
export async function* pagesBack(
  client: NodeClient,
  search: LogSearch | undefined,
): AsyncGenerator<{ readonly fromBlock: bigint; readonly toBlock: bigint }, void> {
  let toBlock = await client.getBlockNumber()
  for (let page = 0; page < (search?.pages ?? 1) && toBlock >= 0n; page += 1) {
    const fromBlock =
      search === undefined || toBlock < search.pageBlocks ? 0n : toBlock - search.pageBlocks + 1n
    yield { fromBlock, toBlock }
    toBlock = fromBlock - 1n
  }
}
