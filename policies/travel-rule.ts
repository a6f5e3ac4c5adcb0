/**
 * The Travel Rule: transfers from a threshold on must carry data of their sender and receiver.
 * @see https://www.fatf-gafi.org/en/topics/virtual-assets.html (Recommendation 16: 1,000 USD or EUR)
 * @see https://www.ecfr.gov/current/title-31/section-1010.410 (United States: 3,000 USD)
 * @see https://eur-lex.europa.eu/eli/reg/2023/1113/oj (European Union: every transfer)
 */

/**
 * Thresholds by jurisdiction: a country (ISO 3166-1 alpha-2), `EU` for the whole Union, `default` for all others.
 * Millionths of USD or EUR.
 */
export type TravelRuleThresholds = ReadonlyMap<string, bigint>

/** Thresholds set by law. */
export const defaultThresholds: TravelRuleThresholds = new Map([
  ['default', 1_000_000_000n],
  ['US', 3_000_000_000n],
  ['EU', 0n],
])

/** The Union and the other countries of the European Economic Area, where its regulation applies. */
const union: ReadonlySet<string> = new Set(
  'AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IS IT LI LT LU LV MT NL NO PL PT RO SE SI SK'.split(' '),
)

/** Value of a transfer: `micros` in its own currency, `usdMicros` in US dollars, both in millionths. */
export interface TravelRuleValue {
  readonly currency: 'USD' | 'EUR'
  readonly micros: bigint
  readonly usdMicros: bigint
}

/** Reason for requiring data, or for not requiring it. */
export type TravelRuleReason = 'own_wallet' | 'below_threshold' | 'at_or_above_threshold'

/**
 * A threshold in millionths of the currency.
 * @property isInDollars true: it is in US dollars for every token; otherwise in the token's currency.
 */
export interface TravelRuleThreshold {
  readonly micros: bigint
  readonly currency: 'USD' | 'EUR'
  readonly isInDollars: boolean
}

/** Result of the rule. @property amount value in the threshold's currency, in millionths. */
export interface TravelRuleVerdict {
  readonly isRequired: boolean
  readonly reason: TravelRuleReason
  readonly amount: bigint
  readonly threshold: TravelRuleThreshold
}

/**
 * Evaluates a transfer. A United States threshold is in US dollars; any other applies in the token's currency, as
 * recommendations that name both say. Transfers between wallets of the gateway involve no other institution.
 * @param country country of the sending account; null when unknown.
 */
export function judgeTravelRule(
  { country, value, isOwnWallet }: { country: string | null; value: TravelRuleValue; isOwnWallet: boolean },
  thresholds: TravelRuleThresholds,
): TravelRuleVerdict {
  const isInDollars = country === 'US'
  const micros = findThreshold(country, thresholds)
  const amount = isInDollars ? value.usdMicros : value.micros
  const isRequired = !isOwnWallet && amount >= micros
  return {
    isRequired,
    reason: isOwnWallet ? 'own_wallet' : isRequired ? 'at_or_above_threshold' : 'below_threshold',
    amount,
    threshold: { micros, currency: isInDollars ? 'USD' : value.currency, isInDollars },
  }
}

/** Returns a country's own threshold, else the Union's for its members, else the default, else 0. */
function findThreshold(country: string | null, thresholds: TravelRuleThresholds): bigint {
  const jurisdiction = country ?? 'default'
  const common = union.has(jurisdiction) ? thresholds.get('EU') : undefined
  return thresholds.get(jurisdiction) ?? common ?? thresholds.get('default') ?? 0n
}
