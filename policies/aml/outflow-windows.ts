import { type Band, isInBand, type Structuring } from './structuring.ts'
import type { VelocityWindow } from './velocity.ts'

/** The rules that count what left an account lately. */
export const outflowRules = ['velocity', 'structuring'] as const

/** One of {@link outflowRules}. */
export type OutflowRule = (typeof outflowRules)[number]

/**
 * A counter of what left an account lately, and when one more spend is too much: where it takes the sum over the maximum and is
 * the `minCount`th or a later one. The database judges and counts it in the same lock as the spend's reservation.
 * @property maxUsdMicros millionths of a USD; null counts spends alone. @property isJudged false: it is counted, never refused.
 */
export interface OutflowWindow {
  readonly rule: OutflowRule
  readonly seconds: number
  readonly usdMicros: bigint
  readonly maxUsdMicros: bigint | null
  readonly minCount: number
  readonly isJudged: boolean
}

/**
 * The windows of a transfer. Structuring counts transfers just under the threshold that leave the gateway, and judges those
 * whose beneficiary is not on record. No amount is too small to count: many small ones are a large one.
 * @param amount in the threshold's currency, millionths.
 */
export function outflowWindows(
  {
    usdMicros,
    amount,
    isOwnWallet,
    isOnRecord,
  }: { usdMicros: bigint; amount: bigint; isOwnWallet: boolean; isOnRecord: boolean },
  {
    velocity,
    structuring,
    band,
  }: { velocity: readonly VelocityWindow[]; structuring: Structuring; band: Band },
): readonly OutflowWindow[] {
  const windows: OutflowWindow[] = velocity.map(({ seconds, maxUsdMicros, minCount }) => ({
    rule: 'velocity',
    seconds,
    usdMicros,
    maxUsdMicros,
    minCount,
    isJudged: true,
  }))
  if (isOwnWallet || !isInBand(amount, band)) return windows
  const { seconds, count } = structuring
  const justUnder: OutflowWindow = {
    rule: 'structuring',
    seconds,
    usdMicros,
    maxUsdMicros: null,
    minCount: count,
    isJudged: !isOnRecord,
  }
  return [...windows, justUnder]
}
