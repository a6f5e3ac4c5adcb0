/** Counts transactions on a chain that other tests use at the same time. */
import type { createPublicClient } from 'viem'

/** Number of transactions after a block whose data contains an address. */
export async function mineWith(
  node: ReturnType<typeof createPublicClient>,
  address: string,
  after: bigint,
): Promise<number> {
  const last = await node.getBlockNumber({ cacheTime: 0 })
  const part = address.slice(2).toLowerCase()
  let count = 0
  for (let blockNumber = after + 1n; blockNumber <= last; blockNumber += 1n) {
    const { transactions } = await node.getBlock({ blockNumber, includeTransactions: true })
    count += transactions.filter(({ input }) => input.includes(part)).length
  }
  return count
}
