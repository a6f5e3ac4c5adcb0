/**
 * Know your customer: data required for each level, and the maximum single spend per level, in millionths of a USD.
 */

/** Levels in ascending order. */
export const kycLevels = ['none', 'basic', 'full'] as const

export type KycLevel = (typeof kycLevels)[number]

/** Members of an application that each level requires. */
const required = {
  basic: ['firstName', 'lastName', 'dateOfBirth', 'country', 'address'],
  full: ['firstName', 'lastName', 'dateOfBirth', 'country', 'address', 'documents'],
} as const satisfies Record<Exclude<KycLevel, 'none'>, readonly string[]>

/**
 * Lists the members an application still lacks, as paths of the request.
 * @param given names of the members present.
 */
export function findMissing(level: Exclude<KycLevel, 'none'>, given: ReadonlySet<string>): readonly string[] {
  return required[level]
    .filter((member) => !given.has(member))
    .map((member) => (member === 'documents' ? member : `applicant.${member}`))
}

const MIN_AGE = 18
const MAX_AGE = 130

/** Validates a date of birth in UTC; undefined when valid. @param born ISO 8601 date. */
export function birthDateError(born: string, now: Date): string | undefined {
  const yearsAgo = (years: number) => {
    const year = (now.getUTCFullYear() - years).toString().padStart(4, '0')
    return `${year}${now.toISOString().slice(4, 10)}`
  }
  if (born > yearsAgo(0)) return 'is in the future'
  if (born > yearsAgo(MIN_AGE)) return `must be ${MIN_AGE} years ago or more`
  return born <= yearsAgo(MAX_AGE + 1) ? `must not be more than ${MAX_AGE} years ago` : undefined
}

/** Maximum value of a single spend at each level; null: no limit. */
export type KycLimits = Readonly<Record<KycLevel, bigint | null>>

/** Default limits. Production does not let unverified accounts spend. */
export const defaultKycLimits = {
  sandbox: { none: 25_000_000_000n, basic: 250_000_000_000n, full: null },
  production: { none: 0n, basic: 10_000_000_000n, full: null },
} as const satisfies Record<'sandbox' | 'production', KycLimits>

/** Maximum value of a single spend at a level; null: no limit. An unknown level counts as none. */
export function maxSingleSpend(limits: KycLimits, level: string): bigint | null {
  return limits[kycLevels.find((known) => known === level) ?? 'none']
}

/** Finds the level that a spend needs beyond the account's own; null when that suffices. */
export function neededLevel(
  limits: KycLimits,
  { level, usdMicros }: { level: string; usdMicros: bigint },
): KycLevel | null {
  const suffices = (one: string) => {
    const max = maxSingleSpend(limits, one)
    return max === null || usdMicros <= max
  }
  if (suffices(level)) return null
  return kycLevels.find(suffices) ?? 'full'
}
