/**
 * Maximum outflow within a time window before a review is required.
 * @property minCount transfers from which the window applies: 1 limits the amount alone, more limits bursts.
 */
export interface VelocityWindow {
  readonly seconds: number
  readonly maxUsdMicros: bigint
  readonly minCount: number
}

/** 50,000 USD in 24 hours, or ten transfers within ten minutes that together exceed 10,000 USD. */
export const defaultVelocity: readonly VelocityWindow[] = [
  { seconds: 86_400, maxUsdMicros: 50_000_000_000n, minCount: 1 },
  { seconds: 600, maxUsdMicros: 10_000_000_000n, minCount: 10 },
]
