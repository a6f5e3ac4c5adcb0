/**
 * How much may leave an account in how long before somebody looks at it.
 * @property minCount from how many transfers on it counts: 1 is a limit on the amount alone, more is a burst.
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
