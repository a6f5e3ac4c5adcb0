/**
 * The Travel Rule: from which value on a transfer must carry who sends it and who receives it.
 * @see https://www.fatf-gafi.org/en/topics/virtual-assets.html (Recommendation 16: 1,000 USD or EUR)
 * @see https://www.ecfr.gov/current/title-31/section-1010.410 (United States: 3,000 USD)
 * @see https://eur-lex.europa.eu/eli/reg/2023/1113/oj (European Union: every transfer)
 */

/** Thresholds by jurisdiction: a country (ISO 3166-1 alpha-2), `EU` for the whole Union, `default` for everywhere else. Millionths of USD or EUR. */
export type TravelRuleThresholds = ReadonlyMap<string, bigint>

/** The thresholds of the law. */
export const defaultThresholds: TravelRuleThresholds = new Map([
  ['default', 1_000_000_000n],
  ['US', 3_000_000_000n],
  ['EU', 0n],
])

/** The Union, and the countries of the European Economic Area, where its regulation has effect. */
const union: ReadonlySet<string> = new Set(
  'AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IS IT LI LT LU LV MT NL NO PL PT RO SE SI SK'.split(' '),
)

/** What a transfer is worth: `micros` in its own currency, `usdMicros` in US dollars, both in millionths. */
export interface TravelRuleValue {
  readonly currency: 'USD' | 'EUR'
  readonly micros: bigint
  readonly usdMicros: bigint
}

/** Why the rule asks for data, or does not. */
export type TravelRuleReason = 'own_wallet' | 'below_threshold' | 'at_or_above_threshold'

/**
 * From which value on, in millionths of the currency. @property isInDollars whether it is in US dollars whatever the token;
 * otherwise it is the same number of whichever currency the token stands for.
 */
export interface TravelRuleThreshold {
  readonly micros: bigint
  readonly currency: 'USD' | 'EUR'
  readonly isInDollars: boolean
}

/** The answer. @property amount the transfer's value in the threshold's currency, millionths. */
export interface TravelRuleVerdict {
  readonly isRequired: boolean
  readonly reason: TravelRuleReason
  readonly amount: bigint
  readonly threshold: TravelRuleThreshold
}

/**
 * Judges a transfer. A threshold of the United States is in US dollars; any other is taken in the currency that the token
 * stands for, as recommendations that name both say. A wallet of the gateway's own has no other institution to be told.
 * @param country of the account that sends; null where it is not known.
 */
export function judgeTravelRule(
  { country, value, isOwnWallet }: { country: string | null; value: TravelRuleValue; isOwnWallet: boolean },
  thresholds: TravelRuleThresholds,
): TravelRuleVerdict {
  const isInDollars = country === 'US'
  const micros = thresholdOf(country, thresholds)
  const amount = isInDollars ? value.usdMicros : value.micros
  const isRequired = !isOwnWallet && amount >= micros
  return {
    isRequired,
    reason: isOwnWallet ? 'own_wallet' : isRequired ? 'at_or_above_threshold' : 'below_threshold',
    amount,
    threshold: { micros, currency: isInDollars ? 'USD' : value.currency, isInDollars },
  }
}

/** A country's own threshold, else the Union's for its members, else the default; 0 where nothing is said. */
function thresholdOf(country: string | null, thresholds: TravelRuleThresholds): bigint {
  const jurisdiction = country ?? 'default'
  const common = union.has(jurisdiction) ? thresholds.get('EU') : undefined
  return thresholds.get(jurisdiction) ?? common ?? thresholds.get('default') ?? 0n
}
