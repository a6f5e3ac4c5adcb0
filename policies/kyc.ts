/** Know your customer: what each level asks for, and how much may be spent at once before it is reached. Amounts in millionths of a USD. */

/** Levels, from the least. */
export const kycLevels = ['none', 'basic', 'full'] as const

/** One level. */
export type KycLevel = (typeof kycLevels)[number]

/** What a level asks for, as the members of an application. */
const asked = {
  basic: ['firstName', 'lastName', 'dateOfBirth', 'country', 'address'],
  full: ['firstName', 'lastName', 'dateOfBirth', 'country', 'address', 'documents'],
} as const satisfies Record<Exclude<KycLevel, 'none'>, readonly string[]>

/** What an application still lacks, as paths of the request. @param given names of the members that are there. */
export function missingOf(level: Exclude<KycLevel, 'none'>, given: ReadonlySet<string>): readonly string[] {
  return asked[level]
    .filter((member) => !given.has(member))
    .map((member) => (member === 'documents' ? member : `applicant.${member}`))
}

const YOUNGEST = 18
const OLDEST = 130

/** What is wrong with the day on which somebody is said to be born, in UTC; undefined where nothing is. @param born ISO 8601 date. */
export function birthDateError(born: string, now: Date): string | undefined {
  const yearsAgo = (years: number) => {
    const year = (now.getUTCFullYear() - years).toString().padStart(4, '0')
    return `${year}${now.toISOString().slice(4, 10)}`
  }
  if (born > yearsAgo(0)) return 'is in the future'
  if (born > yearsAgo(YOUNGEST)) return `must be ${YOUNGEST} years ago or more`
  return born <= yearsAgo(OLDEST + 1) ? `must not be more than ${OLDEST} years ago` : undefined
}

/** The most that a single spend may be worth at each level; null: no limit. */
export type KycLimits = Readonly<Record<KycLevel, bigint | null>>

/** Where nobody configured others. Production lets nobody spend whom it does not know. */
export const defaultKycLimits = {
  sandbox: { none: 25_000_000_000n, basic: 250_000_000_000n, full: null },
  production: { none: 0n, basic: 10_000_000_000n, full: null },
} as const satisfies Record<'sandbox' | 'production', KycLimits>

/** The most that a single spend may be worth at a level; null: no limit. A level that is not known counts as none. */
export function maxSingleSpend(limits: KycLimits, level: string): bigint | null {
  return limits[kycLevels.find((known) => known === level) ?? 'none']
}

/** The level that a spend needs, where the account's own does not suffice; null where it does. */
export function neededLevel(
  limits: KycLimits,
  { level, usdMicros }: { level: string; usdMicros: bigint },
): KycLevel | null {
  const suffices = (one: string) => {
    const most = maxSingleSpend(limits, one)
    return most === null || usdMicros <= most
  }
  if (suffices(level)) return null
  return kycLevels.find(suffices) ?? 'full'
}
