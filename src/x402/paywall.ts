/**
 * x402: callers without an account pay for a single response. The only folder that imports `x402-hono` and `@x402/*`;
 * also imports the base, the chain port and the payments domain. Both generations are challenged at once, served by
 * their stock middlewares and settled through one facilitator. `payment-deduplication.ts` wraps them: the response is
 * built before settlement, so a failed request costs nothing, and a payment that may have been made is never
 * requested again. Payment headers are never logged.
 */
import type { Clock } from '../base/clock.ts'
import type { NewId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { transactionMark } from '../evidence/transaction-mark.ts'
import { Failure } from '../failures/failure.ts'
import { type DecisionObserver, observed } from '../kernel/observed.ts'
import type { StoredPurchase } from '../payments/purchases.ts'
import { purchasedAnswer } from '../payments/receipt.ts'
import type { Chain } from '../providers/chain.ts'
import type { Database } from '../storage/database.ts'
import { createAttempts } from './attempt.ts'
import { createChallenge } from './challenge.ts'
import { discoveryOf } from './discovery.ts'
import { createFacilitator } from './facilitator.ts'
import type { FacilitatorKey } from './facilitator-token.ts'
import { lockOffer, unlockOffer } from './lock.ts'
import type { Order } from './order.ts'
import { decodePayment, isSignedByPayer, type Payment, paymentMismatch } from './payment.ts'
import { createPaymentDeduplication, type Outcome } from './payment-deduplication.ts'
import { servePrivately } from './private-facilitator.ts'
import type { ChallengeOutcome, ListedSeller, PaidOutcome, SaleRequest } from './sale.ts'
import { mountStockMiddlewares } from './stock.ts'
import { type TermsInput, termsOf, withPrice } from './terms.ts'

/** A seller with the private listener that its settlements use. */
export interface Paywall extends ListedSeller {
  close(): Promise<void>
}

/**
 * @property facilitatorUrl null settles payments over this process's own chain. @property example a valid query, for
 * discovery. @property pollPath route that reports a payment's status.
 */
export interface PaywallParts extends TermsInput, DecisionObserver {
  readonly operation: string
  readonly example: Readonly<Record<string, string>>
  readonly pollPath: string
  readonly chain: Chain
  readonly database: Database
  readonly dataKey: Uint8Array
  readonly facilitatorUrl: string | null
  readonly facilitatorKey: FacilitatorKey | null
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
}

/** Creates the paywall of one path. @throws Error when the configuration is not supported. */
export async function createPaywall(parts: PaywallParts): Promise<Paywall> {
  const { chain, facilitatorUrl, facilitatorKey, clock, log, dataKey, example, pollPath } = parts
  const terms = termsOf(parts)
  const attempts = createAttempts()
  const facilitator = observed(
    createFacilitator({
      signer: chain.signer,
      terms,
      url: facilitatorUrl,
      key: facilitatorKey,
      clock,
      attempts,
      markOf: (id) => transactionMark(dataKey, id),
    }),
    'facilitator',
    parts,
  )
  const listener = await servePrivately(facilitator, attempts)
  const stock = mountStockMiddlewares({ terms, facilitator, listener, attempts })
  const deduplication = createPaymentDeduplication({
    ...parts,
    token: terms.asset,
    settings: { dataKey },
    isRemote: facilitatorUrl !== null,
    isSigned: ({ transfer }) => isSignedByPayer(chain, terms, transfer),
    attempts,
    stock,
  })

  const challengeWith = createChallenge(terms, example)
  const challenge = (reason: string, request: string, answer: Record<string, unknown>) => {
    const lock = lockOffer(dataKey, request, { units: terms.units, answer }, clock())
    return challengeWith(reason, lock)
  }
  const answerTo = (outcome: Outcome): PaidOutcome | ChallengeOutcome => {
    if (outcome.status === 'pending') throw settlementPending(outcome, pollPath)
    if (outcome.status === 'refused') return challengeWith(outcome.reason, null)
    const { payment, isRepeated = false } = outcome
    return {
      status: 'paid',
      replayed: isRepeated,
      answer: purchasedAnswer(payment),
      receipt: payment.receipt ?? '',
      receiptHeader: payment.receipt_header,
    }
  }
  /** Returns the outcome of an earlier payment, or the fallback. */
  const answerFromEarlierPayment = async (
    order: Order | null,
    otherwise: () => Promise<ChallengeOutcome>,
  ) => {
    const before = order === null ? null : await deduplication.recall(order)
    return before === null ? otherwise() : answerTo(before)
  }
  const sellFor = async (payment: Payment, request: string, sale: SaleRequest) => {
    const { deliver, purchase } = sale
    const locked = payment.lock === null ? undefined : unlockOffer(dataKey, request, payment.lock, clock())
    const units = locked?.units ?? terms.units
    const mismatch = paymentMismatch(payment, withPrice(terms, units))
    const order = orderOf(payment, request, purchase ?? null)
    if (order === null || mismatch !== undefined)
      return answerFromEarlierPayment(order, async () =>
        challenge(mismatch ?? 'invalid_payload', request, await deliver()),
      )
    const offer = locked ?? (await offered(units, deliver))
    if ('thrown' in offer) return answerFromEarlierPayment(order, () => Promise.reject(offer.thrown))
    const outcome = await deduplication.take(order, offer)
    const { status } = outcome
    const id = status === 'paid' ? outcome.payment.id : outcome.id
    log.info({ paymentId: id, generation: payment.generation, status }, 'x402 payment')
    return status === 'refused' ? challenge(outcome.reason, request, offer.answer) : answerTo(outcome)
  }
  return {
    discovery: discoveryOf(terms, example),
    sell: async (sale) => {
      const request = requestOf(sale)
      if (sale.payment !== null) return sellFor(decodePayment(sale.payment), request, sale)
      return challenge(`${sale.paymentPlace} is required`, request, await sale.deliver())
    },
    recall: async (purchase) => {
      const outcome = await deduplication.recallPurchase(purchase)
      if (outcome === null || outcome.status === 'refused') return null
      const answer = answerTo(outcome)
      return answer.status === 'paid' ? answer : null
    },
    close: () => listener.close(),
  }
}

/** Builds the current offer, or returns the error. */
async function offered(units: bigint, deliver: SaleRequest['deliver']) {
  try {
    return { units, answer: await deliver() }
  } catch (thrown) {
    return { thrown }
  }
}

/** Canonical request: route and input, independent of member order and number spelling. */
function requestOf({ route, input }: Pick<SaleRequest, 'route' | 'input'>): string {
  const members = typeof input === 'object' && input !== null ? Object.entries(input) : []
  const query = members.map(([name, value]) => `${name}=${encodeURIComponent(plainOf(String(value)))}`)
  return `${route}?${query.sort().join('&')}`
}

/** Removes trailing zeros: `100.00` becomes `100`. */
function plainOf(text: string): string {
  return /^\d+\.\d+$/.test(text) ? text.replace(/\.?0+$/, '') : text
}

/** Null for other payment schemes, which are never accepted. */
function orderOf(payment: Payment, request: string, purchase: StoredPurchase | null): Order | null {
  const { transfer } = payment
  return transfer === null ? null : { payment, transfer, request, purchase }
}

function settlementPending(
  { id, transaction }: Extract<Outcome, { status: 'pending' }>,
  pollPath: string,
): Failure {
  const where = transaction === null ? 'No transaction is known yet' : `Its transaction is ${transaction}`
  const location = pollPath.replace('{id}', id)
  return new Failure('settlement_pending', `The payment is not settled yet. ${where}.`, {
    retryAfter: 3,
    paymentId: id,
    ...(transaction === null ? {} : { transaction }),
    location,
    hint: `After \`retryAfter\` seconds, poll GET ${location} or send the same payment again. Do not sign a new one.`,
  })
}
