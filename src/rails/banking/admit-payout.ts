/** Admission checks of a payout on its terms: AML and the Travel Rule. Read-only; runs before anything is reserved. */
import { screenCountry } from '../../../policies/aml/embargo.ts'
import type { AmlLimits } from '../../../policies/aml/limits.ts'
import { type OutflowWindow, outflowRules, outflowWindows } from '../../../policies/aml/outflow-windows.ts'
import { screenName } from '../../../policies/aml/screen-name.ts'
import { findWorst, type Screening } from '../../../policies/aml/screening.ts'
import { bandBelow } from '../../../policies/aml/structuring.ts'
import { screenTravelRule } from '../../../policies/aml/travel-rule-missing.ts'
import { judgeTravelRule } from '../../../policies/travel-rule.ts'
import { exceededOutflows } from '../../books/spending/outflows.ts'
import { applyReview, findReviewVerdict, REVIEW_HINT, reviewSubject } from '../../books/spending/reviews.ts'
import { Failure, type FailureMembers } from '../../core/failures/failure.ts'
import { assetDecimals, type Money, toDecimal } from '../../core/money/money.ts'
import type { PayoutQuote } from '../../providers/banking/port.ts'
import { type Rates, valueInUsd } from '../../providers/rates/port.ts'
import type { Sanctions } from '../../providers/sanctions/port.ts'
import type { Connection } from '../../storage/database.ts'
import type { Recipient } from './recipients.ts'

const MICRO_DECIMALS = 6

export interface PayoutAdmission {
  readonly database: Connection
  readonly sanctions: Sanctions
  readonly rates: Rates
  readonly settings: { readonly aml: AmlLimits }
  readonly now: Date
  readonly onCalendar: (at: Date) => Date
}

/**
 * A payout that is asked for.
 * @property keyId key that asks; null for a person. @property payer name of the account's holder.
 * @property payerCountry country of the account; null when unknown. @property terms what leaves, and what arrives.
 */
export interface PayoutRequest {
  readonly accountId: string
  readonly keyId: string | null
  readonly payer: string
  readonly payerCountry: string | null
  readonly place: string
  readonly terms: Pick<PayoutQuote, 'money' | 'fee' | 'recipientUnits'>
  readonly recipient: Recipient
}

/**
 * Verdicts on a payout. One that AML does not clear must be denied.
 * @property travelRule `required`: the law asks for the data that is recorded with every payout.
 */
export interface AdmittedPayout {
  readonly travelRule: 'required' | 'not_required'
  readonly aml: {
    readonly screening: Screening
    readonly subject: string
    readonly releasedReview: string | null
    readonly windows: readonly OutflowWindow[]
    readonly refusal: (
      screening: Screening,
      recorded: Pick<FailureMembers, 'decisionId' | 'violations'>,
    ) => Failure
  }
}

/**
 * Screens a payout: both names against the sanctions list, the recipient's country, and recent outflows.
 * @throws Failure `payout_rejected`, `screening_unavailable`, `rates_unavailable`.
 */
export async function admitPayout(
  { database, sanctions, rates, settings, now, onCalendar }: PayoutAdmission,
  { accountId, keyId, payer, payerCountry, place, terms, recipient }: PayoutRequest,
): Promise<AdmittedPayout> {
  const { id, country, details } = recipient
  if (details === null) throw new Error(`the data of ${id} was erased`)
  const { money } = terms
  requireArrival(terms)
  const { usdMicros } = await valueInUsd(rates, money, now)
  const micros = money.units * 10n ** BigInt(MICRO_DECIMALS - assetDecimals[money.asset])
  const { velocity, structuring, thresholds } = settings.aml
  const { isRequired, threshold, amount } = judgeTravelRule(
    { country: payerCountry, value: { currency: 'USD', micros, usdMicros }, isOwnWallet: false },
    thresholds,
  )
  // Data of payer and recipient is recorded with every payout.
  const isOnRecord = true
  const windows = outflowWindows(
    { usdMicros, amount, isOwnWallet: false, isOnRecord },
    { velocity, structuring, band: bandBelow(threshold.micros, structuring) },
  )
  const exceeded = await exceededOutflows(database, { accountId, windows, at: onCalendar(now) })
  const { names } = await sanctions.latest()
  const found = findWorst([
    screenName(details.name, names),
    screenName(payer, names),
    screenCountry(country),
    ...outflowRules.map(
      (rule): Screening => ({
        result: exceeded.includes(rule) && isJudged(windows, rule) ? 'review' : 'clear',
        lists: [rule],
      }),
    ),
    screenTravelRule({ isRequired, isOnRecord }),
  ])
  const subject = reviewSubject({
    keyId,
    category: 'payout',
    money,
    chain: place,
    payer: accountId,
    payee: id,
  })
  const review = await findReviewVerdict(database, { accountId, subject, at: now })
  const reviewed = applyReview(found, review)
  return {
    travelRule: isRequired ? 'required' : 'not_required',
    aml: {
      ...reviewed,
      subject,
      windows: waiveWindows(reviewed.releasedReview === null ? [] : found.lists, windows),
      refusal: (screening, recorded) => buildBlockedFailure(screening, { recipientId: id, money, recorded }),
    },
  }
}

/** @throws Failure `payout_rejected` when nothing of a payout arrives. */
export function requireArrival({
  money,
  fee,
  recipientUnits,
}: Pick<PayoutQuote, 'money' | 'fee' | 'recipientUnits'>): void {
  if (recipientUnits > 0n && fee < money.units) return
  throw new Failure(
    'payout_rejected',
    `The fee of ${toDecimal({ asset: money.asset, units: fee })} ${money.asset} leaves nothing of ${toDecimal(money)}. Nothing was sent.`,
    { reason: 'amount_too_small', isFinal: true, hint: 'Pay out more.' },
  )
}

function isJudged(windows: readonly OutflowWindow[], rule: OutflowWindow['rule']): boolean {
  return windows.some((window) => window.rule === rule && window.isJudged)
}

/** Windows whose objection an administrator has released still count the payout. */
function waiveWindows(lists: readonly string[], windows: readonly OutflowWindow[]): readonly OutflowWindow[] {
  return windows.map((window) => (lists.includes(window.rule) ? { ...window, isJudged: false } : window))
}

function buildBlockedFailure(
  screening: Screening,
  {
    recipientId,
    money,
    recorded,
  }: { recipientId: string; money: Money; recorded: Pick<FailureMembers, 'decisionId' | 'violations'> },
): Failure {
  const { result, lists } = screening
  const what = `the payout of ${toDecimal(money)} ${money.asset} to ${recipientId}`
  const hint = 'Tell the owner. Do not split it, and do not pay the same recipient in another way.'
  return new Failure(
    'aml_blocked',
    `The AML policy ${result === 'blocked' ? 'blocks' : 'requires a review of'} ${what} (${lists.join(', ')}).`,
    { screening, ...recorded, hint: result === 'review' ? `${hint} ${REVIEW_HINT}` : hint },
  )
}
