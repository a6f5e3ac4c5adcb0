/**
 * x402: strangers pay for one delivery, without an account. The only folder that knows `x402-hono` and `@x402/*`; imports
 * the base, the chain port and the payments domain besides. Both generations are challenged at once, each is served by its
 * stock middleware, and both settle over one facilitator. Around them stands one ledger of payments (`payment-deduplication.ts`): what is sold
 * is made before it is settled, so nobody pays for an error; what may have been paid is never asked for again. Payment
 * headers are never logged.
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
import { lockOffer, unlockOffer } from './lock.ts'
import type { Order } from './order.ts'
import { decodePayment, isSignedByPayer, type Payment, paymentMismatch } from './payment.ts'
import { createPaymentDeduplication, type Outcome } from './payment-deduplication.ts'
import { servePrivately } from './private-facilitator.ts'
import type { ChallengeOutcome, ListedSeller, PaidOutcome, SaleRequest } from './sale.ts'
import { mountStockMiddlewares } from './stock.ts'
import { type TermsInput, termsOf, withPrice } from './terms.ts'

/** A seller with the private listener that its settlements go over. */
export interface Paywall extends ListedSeller {
  close(): Promise<void>
}

/**
 * What a paywall is made of. @property facilitatorUrl null: payments settle over this process's own chain.
 * @property example a query that can be bought, for whoever lists the resource. @property pollPath where payments are told of.
 */
export interface PaywallParts extends TermsInput, DecisionObserver {
  readonly operation: string
  readonly example: Readonly<Record<string, string>>
  readonly pollPath: string
  readonly chain: Chain
  readonly database: Database
  readonly dataKey: Uint8Array
  readonly facilitatorUrl: string | null
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
}

/** Opens a paywall for one path. @throws Error where the configuration cannot be sold on. */
export async function createPaywall(parts: PaywallParts): Promise<Paywall> {
  const { chain, facilitatorUrl, clock, log, dataKey, example, pollPath } = parts
  const terms = termsOf(parts)
  const attempts = createAttempts()
  const facilitator = observed(
    createFacilitator({
      signer: chain.signer,
      terms,
      url: facilitatorUrl,
      attempts,
      markOf: (id) => transactionMark(dataKey, id),
    }),
    'facilitator',
    parts,
  )
  const listener = await servePrivately(facilitator, attempts)
  const stock = mountStockMiddlewares({ terms, facilitator, listener, attempts })
  const once = createPaymentDeduplication({
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
    const { payment } = outcome
    return {
      status: 'paid',
      answer: purchasedAnswer(payment),
      receipt: payment.receipt ?? '',
      receiptHeader: payment.receipt_header,
    }
  }
  /** The answer of a payment that was sent before, or else. */
  const answerBefore = async (order: Order | null, otherwise: () => Promise<ChallengeOutcome>) => {
    const before = order === null ? null : await once.recall(order)
    return before === null ? otherwise() : answerTo(before)
  }
  const sellFor = async (payment: Payment, request: string, sale: SaleRequest) => {
    const { deliver, purchase } = sale
    const locked = payment.lock === null ? undefined : unlockOffer(dataKey, request, payment.lock, clock())
    const units = locked?.units ?? terms.units
    const misfit = paymentMismatch(payment, withPrice(terms, units))
    const order = orderOf(payment, request, purchase ?? null)
    if (order === null || misfit !== undefined)
      return answerBefore(order, async () => challenge(misfit ?? 'invalid_payload', request, await deliver()))
    const offer = locked ?? (await offered(units, deliver))
    if ('thrown' in offer) return answerBefore(order, () => Promise.reject(offer.thrown))
    const outcome = await once.take(order, offer)
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
      const outcome = await once.recallPurchase(purchase)
      if (outcome === null || outcome.status === 'refused') return null
      const answer = answerTo(outcome)
      return answer.status === 'paid' ? answer : null
    },
    close: () => listener.close(),
  }
}

/** What is sold at the moment, or why it cannot be. */
async function offered(units: bigint, deliver: SaleRequest['deliver']) {
  try {
    return { units, answer: await deliver() }
  } catch (thrown) {
    return { thrown }
  }
}

/** What a payment is for: method, path and input, whatever the order and the spelling of its members. */
function requestOf({ route, input }: Pick<SaleRequest, 'route' | 'input'>): string {
  const members = typeof input === 'object' && input !== null ? Object.entries(input) : []
  const query = members.map(([name, value]) => `${name}=${encodeURIComponent(plainOf(String(value)))}`)
  return `${route}?${query.sort().join('&')}`
}

/** The same decimal without needless zeros: `100.00` is `100`. */
function plainOf(text: string): string {
  return /^\d+\.\d+$/.test(text) ? text.replace(/\.?0+$/, '') : text
}

/** Null where it is a payment of another kind, which never fits. */
function orderOf(payment: Payment, request: string, purchase: StoredPurchase | null): Order | null {
  const { transfer } = payment
  return transfer === null ? null : { payment, transfer, request, purchase }
}

function settlementPending(
  { id, transaction }: Extract<Outcome, { status: 'pending' }>,
  pollPath: string,
): Failure {
  const where = transaction === null ? 'Whether it was sent is not known' : `It was sent as ${transaction}`
  const location = pollPath.replace('{id}', id)
  return new Failure('settlement_pending', `The payment is not settled yet. ${where}.`, {
    retryAfter: 3,
    paymentId: id,
    ...(transaction === null ? {} : { transaction }),
    location,
    hint: `Ask GET ${location}, or send the same payment again, after \`retryAfter\` seconds. Do not sign a new one.`,
  })
}
