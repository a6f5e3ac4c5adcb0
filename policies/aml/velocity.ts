import type { Screening } from './screening.ts'

/**
 * How much may leave an account in how long before somebody looks at it.
 * @property minCount from how many transfers on it counts: 1 is a limit on the amount alone, more is a burst.
 */
export interface VelocityWindow {
  readonly seconds: number
  readonly maxUsdMicros: bigint
  readonly minCount: number
}

/** What left an account within a window, without the transfer that is judged. Millionths of a USD. */
export interface Sent {
  readonly usdMicros: bigint
  readonly count: number
}

/** 50,000 USD in 24 hours, or ten transfers within ten minutes that together exceed 10,000 USD. */
export const defaultVelocity: readonly VelocityWindow[] = [
  { seconds: 86_400, maxUsdMicros: 50_000_000_000n, minCount: 1 },
  { seconds: 600, maxUsdMicros: 10_000_000_000n, minCount: 10 },
]

/**
 * Wants a review where one more transfer would take an account over a window. No number of small transfers does: every window
 * is an amount of money.
 * @param sent what left within each window, in their order; a window that nothing is known of counts as exceeded.
 */
export function screenVelocity(
  usdMicros: bigint,
  windows: readonly VelocityWindow[],
  sent: readonly Sent[],
): Screening {
  const isOver = windows.some(({ maxUsdMicros, minCount }, at) => {
    const before = sent[at]
    if (before === undefined) return true
    return before.usdMicros + usdMicros > maxUsdMicros && before.count + 1 >= minCount
  })
  return { result: isOver ? 'review' : 'clear', lists: ['velocity'] }
}
