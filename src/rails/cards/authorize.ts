/**
 * Decides a purchase: the card's controls and the bound key's policy, then limits, budgets and hold in one round
 * trip.
 */
import { LRUCache } from 'lru-cache'
import { type AuthenticateDecisions, expectedMac } from '../../books/spending/authenticate.ts'
import {
  type Coverage,
  coverageParameters,
  type Pull,
  type WantedPulls,
} from '../../books/spending/coverage.ts'
import type { MadeRow } from '../../books/spending/decision-content.ts'
import { requestText } from '../../books/spending/request-text.ts'
import type { SpendRequest } from '../../books/spending/spend-request.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { CardAnswer, CardAuthorization, CardReason } from '../../providers/card-processor/port.ts'
import { latestOrDollars } from '../../providers/rates/port.ts'
import type { Database, Statement } from '../../storage/database.ts'
import { answerInquiry, type BalanceInquiryDependencies } from './answer-inquiry.ts'
import { closeAuthorization, reverseIncrement } from './apply-transaction.ts'
import { buildApprovalRequest } from './approval-request.ts'
import { type Funding, listFundings, nameChains } from './fundings.ts'
import { type CardRefusalDependencies, findRefusal } from './refused-by.ts'
import {
  buildCardSpend,
  type CardReserve,
  type CardSpend,
  type CardSpendDependencies,
  findMerchantViolations,
} from './spend.ts'
import { type CardWithPolicies, findJudgedCard } from './store.ts'

export interface CardAuthorizationDependencies
  extends CardRefusalDependencies,
    CardSpendDependencies,
    BalanceInquiryDependencies {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly vouch: AuthenticateDecisions
  readonly settings: CardRefusalDependencies['settings'] & {
    readonly dataKey: Uint8Array
    /** The most that open purchases may promise of a wallet that its owner can empty, in millionths of a USD. */
    readonly cardFloatMicros: bigint
    /** How long a purchase waits for money on its way to the escrow. */
    readonly cardPullMs: number
  }
  readonly knownCards: KnownCards
  /** Pulls money to the account's escrow. @returns whether all of it has arrived in time. */
  readonly pull: (wanted: WantedPulls, withinMs: number) => Promise<boolean>
}

/** The processor declines after six seconds, so an approval later than this is voided. */
const DEADLINE_MS = 4_500
/** Maximum attempts when controls or policies change during a decision; then the purchase is declined. */
const MAX_TRIES = 5

const statement: Statement = {
  name: 'card_authorize_batch',
  text: 'select verdict, authorization_id, reason, approved, made, pulls from card_authorize_batch($1)',
  // A processor waits for the answer.
  lanes: 4,
}

export interface DecidedRow {
  readonly verdict: 'decided' | 'repeated' | 'other' | 'stale' | 'pull'
  readonly authorization_id: string
  readonly reason: CardReason
  readonly approved: bigint
  readonly made: readonly MadeRow[]
  readonly pulls: readonly Pull[] | null
}

/**
 * Cards as they were last read, by processor token. A purchase is decided on a remembered card and the database compares
 * what the decision was based on under its locks: card, wallet owner, identity level, key, policy, account. It is read again
 * where anything differs, and before any refusal.
 */
export type KnownCards = Pick<Map<string, CardWithPolicies>, 'get'> & {
  set(token: string, card: CardWithPolicies): unknown
}

const MAX_KNOWN_CARDS = 5_000

export function createKnownCards(): KnownCards {
  return new LRUCache<string, CardWithPolicies>({ max: MAX_KNOWN_CARDS })
}

/** Failures that leave a fact unknown; the purchase is declined. */
const unknownFacts: ReadonlySet<string> = new Set(['rates_unavailable', 'controls_unavailable', 'conflict'])

/**
 * Decides an authorization request once per token. Declines when a required fact is unknown.
 * @throws Failure `provider_unavailable` when the database does not answer; the processor retries and gets the stored
 * decision.
 */
export async function authorizeCard(
  parts: CardAuthorizationDependencies,
  request: CardAuthorization,
  asked: { webhookId: string; now: Date },
): Promise<CardAnswer> {
  try {
    return await authorize(parts, request, asked)
  } catch (error) {
    if (!(error instanceof Failure) || !unknownFacts.has(error.code)) throw error
    parts.log.warn({ err: error, token: request.token }, 'a purchase could not be decided and was declined')
    return { token: request.token, reason: 'unavailable', asked: request.units, approved: 0n }
  }
}

async function authorize(
  parts: CardAuthorizationDependencies,
  request: CardAuthorization,
  { webhookId, now }: { webhookId: string; now: Date },
): Promise<CardAnswer> {
  const { token, units: asked } = request
  if (request.type === 'inquiry') return answerInquiry(parts, request, now)
  const pullUntil = timers.monotonic() + parts.settings.cardPullMs
  let isUnsecured = false
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const known =
      tries === 0 && countUnits(request) > 0n ? parts.knownCards.get(request.cardToken) : undefined
    const card = known ?? (await findJudgedCard(parts.database, request.cardToken))
    if (card === undefined) return { token, reason: 'unknown_card', asked, approved: 0n }
    parts.knownCards.set(request.cardToken, card)
    const asking = { webhookId, now, isRemembered: known !== undefined, isUnsecured, reserve: null }
    const row = await decide(parts, card, request, asking)
    if (row.verdict === 'stale') continue
    if (row.verdict === 'pull') {
      const { pulls, coverages } = row
      const wanted = { accountId: card.accountId, token, pulls: pulls ?? [], coverages }
      isUnsecured = !(await parts.pull(wanted, Math.max(0, pullUntil - timers.monotonic())))
      continue
    }
    if (row.verdict === 'other') {
      parts.log.error({ token, webhookId }, 'a different request used the token of a decided one')
      return { token, reason: 'unavailable', asked, approved: 0n }
    }
    if (row.reason !== 'approved') return { token, reason: row.reason, asked, approved: 0n }
    if (row.approved === 0n && asked > 0n && request.type === 'purchase')
      return { token, reason: 'too_late', asked, approved: 0n }
    if (parts.clock().getTime() - now.getTime() > DEADLINE_MS) {
      await takeBack(parts, card, { request, authorizationId: row.authorization_id })
      return { token, reason: 'too_late', asked, approved: 0n }
    }
    return { token, reason: 'approved', asked: countUnits(request), approved: row.approved }
  }
  throw new Failure('conflict', 'The card kept changing while a purchase was decided; nothing was approved.')
}

/** Frees what a late answer has approved: the processor has declined it, and a card for one purchase can be used again. */
async function takeBack(
  parts: CardAuthorizationDependencies,
  { singleUse }: CardWithPolicies,
  {
    request: { token, eventToken },
    authorizationId,
  }: { request: CardAuthorization; authorizationId: string },
): Promise<void> {
  const at = parts.clock()
  if (eventToken !== null && (await reverseIncrement(parts, { authorizationId, token, eventToken, at })))
    return
  await closeAuthorization(parts, { token, status: singleUse === null ? 'voided' : 'declined', at })
}

/** Amount to hold; a credit holds nothing. */
function countUnits({ type, units }: CardAuthorization): bigint {
  return type === 'credit' ? 0n : units
}

/** @param asked `reserve`: of a card that is not issued yet, whose amount is held for its purchase; null: a purchase. */
export async function decide(
  parts: CardAuthorizationDependencies,
  card: CardWithPolicies,
  request: CardAuthorization,
  asked: {
    webhookId: string
    now: Date
    isRemembered: boolean
    isUnsecured: boolean
    reserve: CardReserve | null
  },
): Promise<(DecidedRow & { readonly coverages: readonly Coverage[] }) | { readonly verdict: 'stale' }> {
  const { database, rates, newId } = parts
  const { webhookId, now, isRemembered, isUnsecured, reserve } = asked
  const { merchant, channel } = request
  const units = countUnits(request)
  const { isWalletOurs } = card
  // The money of a card for one purchase was reserved when it was issued.
  const isReserved = card.singleUse !== null
  const isCovered = isWalletOurs || units === 0n || isReserved
  const coverages = isCovered ? [] : await parts.readCoverages(card.accountId)
  const table = await latestOrDollars(rates, now)
  const { cardSpreadBps: spreadBps } = parts.settings
  const chains = nameChains(parts.chains)
  const all = isReserved ? [] : listFundings(card, { table, chains, coverages, spreadBps })
  const { fundings, ...built } = buildCardSpend(parts, card, { request, units, all, now, reserve })
  const spend = isReserved
    ? { ...built.spend, violations: findMerchantViolations(built.spend.violations) }
    : built.spend
  // A purchase of zero units is not counted, and one whose amount is reserved already was, so the policy decides here.
  const isDenied = request.type === 'purchase' && (units === 0n || isReserved) && spend.violations.length > 0
  const refusal =
    (await findRefusal(parts, card, { ...request, units }, now)) ??
    (isUnsecured ? 'unavailable' : null) ??
    (isDenied ? 'policy_denied' : isReserved ? null : noFunding(all, units))
  // A remembered card may only approve: what refuses it may have changed.
  if (isRemembered && (refusal !== null || spend.violations.length > 0)) return { verdict: 'stale' }
  const about = {
    merchant: merchant.name,
    merchantId: merchant.id,
    mcc: merchant.mcc,
    country: merchant.country,
    channel,
  }
  const [since, covered, lefts, tokens, prices, onChain, booked] = coverageParameters(coverages)
  const row = await database.gather<DecidedRow>(
    statement,
    {
      id: newId('tx', now),
      card: card.id,
      account: card.accountId,
      version: reserve === null ? card.version : null,
      kyc_level: card.kycLevel,
      is_guest: card.isGuest,
      key_expires_at: card.key?.expiresAt ?? null,
      token: request.token,
      webhook: webhookId,
      units,
      partial: request.allowsPartial,
      refusal,
      about: JSON.stringify(about),
      places: fundings.map((funding) => funding.place),
      assets: fundings.map(({ asset }) => asset),
      rates: fundings.map(({ rate }) => rate.toString()),
      spend: requestText(refusal === null ? expectedSpend(parts, spend, fundings, units) : spend),
      fingerprint: request.fingerprint,
      is_ours: isWalletOurs,
      since,
      chains: covered,
      lefts,
      tokens,
      prices,
      on_chain: onChain,
      booked,
      float: parts.settings.cardFloatMicros,
      event: request.eventToken,
      is_reserve: reserve !== null,
      ask:
        reserve !== null || isReserved
          ? null
          : buildApprovalRequest(newId, spend, {
              cardId: card.id,
              policy: card.key === null ? null : parts.parsePolicy(card.key),
              request,
              now: parts.onCalendar(now),
            }),
    },
    card.accountId,
  )
  await parts.vouch(database, row.made)
  return { ...row, coverages }
}

function noFunding(fundings: readonly Funding[], units: bigint): CardReason | null {
  return fundings.length === 0 && units > 0n ? 'insufficient_funds' : null
}

/** A spend with the facts of a purchase that the first source pays, and the authentication code of its decision. */
function expectedSpend(
  { settings: { dataKey } }: CardAuthorizationDependencies,
  spend: CardSpend,
  [first]: readonly Funding[],
  units: bigint,
): SpendRequest {
  if (first === undefined || units === 0n) return spend
  const { place, asset, chain, rate } = first
  // Cents to millionths to smallest units, rounded up, as the database function does.
  const held = (units * 10_000n * 10_000_000_000n + rate - 1n) / rate
  const holds = [{ place, asset, units: held.toString() }]
  const usdMicros = (units * 10_000n).toString()
  const expected = { ...spend, facts: { ...spend.facts, asset, chain, usdMicros, holds } }
  return { ...expected, mac: expectedMac(dataKey, expected) }
}
