import { type Band, isInBand, type Structuring } from './structuring.ts'
import type { VelocityWindow } from './velocity.ts'

/** Rules that count an account's recent outflows. */
export const outflowRules = ['velocity', 'structuring'] as const

export type OutflowRule = (typeof outflowRules)[number]

/**
 * A counter of recent outflows. A spend violates it if the sum would exceed the maximum and the spend is at least the
 * `minCount`th. The database evaluates and counts it under the same lock as the reservation.
 * @property maxUsdMicros millionths of a USD; null: only spends are counted.
 * @property isJudged false: the spend is counted but never denied.
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
 * Builds the windows of a transfer. Structuring counts transfers just under the threshold that leave the gateway, and
 * denies only those whose beneficiary is not on record. There is no minimum amount, because many small transfers add
 * up.
 * @param amount millionths of the threshold's currency.
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
