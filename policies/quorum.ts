/** How many people must agree to a payment of an account, by its amount. */
import { z } from 'zod'
import { policyAmount, toUsdMicros } from './usd.ts'

/** Steps of an account at most, and people of one step. */
const MAX_STEPS = 5
const MAX_COUNT = 20

const quorum = z.strictObject({
  above: policyAmount.describe('USD, a decimal string or number.'),
  count: z.int().min(1).max(MAX_COUNT).describe('Different people who must agree above it.'),
})

export const quorums = z.array(quorum).max(MAX_STEPS)

export type Quorum = z.output<typeof quorum>

/**
 * The number of people who must agree. @param usdMicros value in millionths of a US dollar; null (unknown) needs as many as any.
 * @returns 0 where nobody is asked.
 */
export function countNeeded(steps: readonly Quorum[], usdMicros: bigint | null): number {
  const met = steps.filter(({ above }) => usdMicros === null || usdMicros > toUsdMicros(above))
  return Math.max(0, ...met.map(({ count }) => count))
}

/** True if fewer people must agree to some amount than before. */
export function isQuorumLooser(
  before: readonly Quorum[] | undefined = [],
  after: readonly Quorum[] | undefined = [],
): boolean {
  // A step changes only just above its amount.
  return [...before, ...after].some(({ above }) => {
    const justAbove = toUsdMicros(above) + 1n
    return countNeeded(after, justAbove) < countNeeded(before, justAbove)
  })
}
