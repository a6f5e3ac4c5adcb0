/**
 * x402: callers without an account pay for a single response. The only folder that imports `x402-hono` and `@x402/*`;
 * also imports the base, the chain port and the payments domain. Both generations are challenged at once, for every chain,
 * served by their stock middlewares, and settled by the till of the chain that was paid on. `payment-deduplication.ts` wraps them: the response is
 * built before settlement, so a failed request costs nothing, and a payment that may have been made is never
 * requested again. Payment headers are never logged.
 */
import { z } from 'zod'
import { Failure } from '../../../core/failures/failure.ts'
import { chainFacts, toCaip2 } from '../../../core/money/chains.ts'
import type { Chain } from '../../../providers/chain/port.ts'
import type { StoredPurchase } from '../payments/purchases.ts'
import { purchasedAnswer } from '../payments/receipt.ts'
import { type Challenge, createChallenge } from './challenge.ts'
import { buildDiscovery } from './discovery.ts'
import { lockOffer, unlockOffer } from './lock.ts'
import type { Order } from './order.ts'
import { chooseNetwork, decodePayment, type Payment, paymentMismatch } from './payment.ts'
import type { Outcome } from './payment-deduplication.ts'
import type { ChallengeOutcome, ListedSeller, PaidOutcome, SaleRequest } from './sale.ts'
import { facilitatorUnavailable, receiptHeaders } from './settlement-attempt.ts'
import { withPrice } from './terms.ts'
import { openTill, type Till, type TillParts } from './till.ts'

/** A seller with the private listeners that its settlements use. */
export interface Paywall extends ListedSeller {
  close(): Promise<void>
}

/** @property example a valid query, for discovery. @property pollPath route that reports a payment's status. */
export interface PaywallParts extends TillParts {
  readonly example: Readonly<Record<string, string>>
  readonly pollPath: string
  /** What an answer costs by `upto`, at most the maximum; the maximum by default. */
  readonly metered?: (answer: Readonly<Record<string, unknown>>, maximum: bigint) => bigint
}

/** Creates the paywall of one path. @throws Error when the configuration is not supported. */
export async function createPaywall(parts: PaywallParts): Promise<Paywall> {
  const { chains, clock, log, dataKey, example, pollPath } = parts
  const { metered = (_answer, maximum) => maximum } = parts
  const till = await openTill(parts, chains.all[0])
  const { units: price } = till.terms
  const buildOffers = (more: readonly Till[]) => {
    const offered = [till.terms, ...more.map(({ terms }) => terms)] as const
    return {
      more,
      tills: [till, ...more],
      discovery: buildDiscovery(offered, example),
      challengeWith: createChallenge(offered, example),
    }
  }
  let selling = buildOffers([])
  const sellOn = async (chain: Chain) => {
    const opened = await openTill(parts, chain)
    selling = buildOffers([...selling.more, opened])
  }
  chains.onJoin((chain) => {
    sellOn(chain).catch((err: unknown) =>
      log.error({ err, chain: chain.name }, 'a chain joined, and nothing is sold on it'),
    )
  })
  for (const chain of chains.all.slice(1)) await sellOn(chain)
  const challengeWith: Challenge = (reason, lock) => selling.challengeWith(reason, lock)
  const challenge = (
    reason: string,
    request: string,
    {
      answer,
      correction = null,
    }: { answer: Record<string, unknown>; correction?: Correction | null | undefined },
  ) => {
    const lock = lockOffer(dataKey, request, { units: price, answer }, clock())
    const challenged = challengeWith(reason, lock)
    return correction === null ? challenged : correct(challenged, correction)
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
    { payments }: Till,
    order: Order | null,
    otherwise: () => Promise<ChallengeOutcome>,
  ) => {
    const before = order === null ? null : await payments.recall(order)
    return before === null ? otherwise() : answerTo(before)
  }
  /** A payment on a chain that has not answered yet may have been made before: a new one is never requested for it. */
  const requireAnswering = ({ network }: Payment) => {
    const name = chains.absent.find((one) => one === network || toCaip2(chainFacts(one)) === network)
    if (name !== undefined) throw facilitatorUnavailable()
  }
  const closeChannel = async (
    { closeChannel: close, terms }: Till,
    payment: Payment,
    { request, deliver, units }: { request: string; deliver: SaleRequest['deliver']; units: bigint },
  ): Promise<PaidOutcome | ChallengeOutcome> => {
    const taken = await close(payment, units)
    if (taken.status === 'refused')
      return challenge(taken.reason, request, { answer: await deliver(), correction: taken.correction })
    if (taken.status === 'pending') throw closingPending()
    const { receipt } = taken
    log.info({ network: terms.network.v2 }, 'a payment channel was closed at its payer’s wish')
    const answer = { channelId: payment.channel?.voucher.channelId, status: 'closed' }
    return { status: 'paid', replayed: false, answer, receipt, receiptHeader: receiptHeaders[2] }
  }
  const sellFor = async (payment: Payment, request: string, sale: SaleRequest) => {
    const { deliver, purchase } = sale
    const locked = payment.lock === null ? undefined : unlockOffer(dataKey, request, payment.lock, clock())
    const units = locked?.units ?? price
    // A payment of no chain here is judged by the default's terms, which it does not match.
    const paid = selling.tills.find(({ terms }) => payment.network === chooseNetwork(payment, terms)) ?? till
    if (paid === till) requireAnswering(payment)
    const mismatch = paymentMismatch(payment, withPrice(paid.terms, units))
    if (payment.channel?.type === 'refund' && mismatch === undefined)
      return closeChannel(paid, payment, { request, deliver, units })
    const order = toOrder(payment, request, purchase ?? null)
    if (order === null || mismatch !== undefined)
      return answerFromEarlierPayment(paid, order, async () =>
        challenge(mismatch ?? 'invalid_payload', request, { answer: await deliver() }),
      )
    const offer = locked ?? (await offerAt(units, deliver))
    if ('thrown' in offer) return answerFromEarlierPayment(paid, order, () => Promise.reject(offer.thrown))
    const taken = payment.permit === null ? offer : { ...offer, units: metered(offer.answer, units) }
    const outcome = await paid.payments.take(order, taken)
    const { status } = outcome
    const id = status === 'paid' ? outcome.payment.id : outcome.id
    log.info(
      { paymentId: id, generation: payment.generation, network: payment.network, status },
      'x402 payment',
    )
    return status === 'refused'
      ? challenge(outcome.reason, request, { answer: offer.answer, correction: outcome.correction })
      : answerTo(outcome)
  }
  return {
    get discovery() {
      return selling.discovery
    },
    sell: async (sale) => {
      const request = nameRequest(sale)
      if (sale.payment !== null) return sellFor(decodePayment(sale.payment), request, sale)
      return challenge(`${sale.paymentPlace} is required`, request, { answer: await sale.deliver() })
    },
    recall: async (purchase) => {
      const outcome = await till.payments.recallPurchase(purchase)
      if (outcome === null || outcome.status === 'refused') return null
      const answer = answerTo(outcome)
      return answer.status === 'paid' ? answer : null
    },
    close: async () => void (await Promise.all(selling.tills.map((one) => one.close()))),
  }
}

/** Builds the current offer, or returns the error. */
async function offerAt(units: bigint, deliver: SaleRequest['deliver']) {
  try {
    return { units, answer: await deliver() }
  } catch (thrown) {
    return { thrown }
  }
}

/** Canonical request: route and input, independent of member order and number spelling. */
function nameRequest({ route, input }: Pick<SaleRequest, 'route' | 'input'>): string {
  const members = typeof input === 'object' && input !== null ? Object.entries(input) : []
  const query = members.map(([name, value]) => `${name}=${encodeURIComponent(trimZeros(String(value)))}`)
  return `${route}?${query.sort().join('&')}`
}

/** Removes trailing zeros: `100.00` becomes `100`. */
function trimZeros(text: string): string {
  return /^\d+\.\d+$/.test(text) ? text.replace(/\.?0+$/, '') : text
}

/** Null for other payment schemes, which are never accepted. */
function toOrder(payment: Payment, request: string, purchase: StoredPurchase | null): Order | null {
  const { transfer } = payment
  return transfer === null ? null : { payment, transfer, request, purchase }
}

type Correction = Readonly<Record<string, unknown>>

/** Adds the state of a channel to the offer by channel, where its client looks for it. */
function correct({ status, v1, v2 }: ChallengeOutcome, correction: Correction): ChallengeOutcome {
  const { accepts, ...rest } = challengeText.parse(JSON.parse(v2))
  const corrected = accepts.map((offer) =>
    offer.scheme === 'batch-settlement' ? { ...offer, extra: { ...offer.extra, ...correction } } : offer,
  )
  return { status, v1, v2: JSON.stringify({ ...rest, accepts: corrected }) }
}

const challengeText = z.looseObject({
  accepts: z.array(z.looseObject({ scheme: z.string(), extra: z.record(z.string(), z.unknown()) })),
})

function closingPending(): Failure {
  return new Failure('settlement_pending', 'The channel is not closed yet.', {
    retryAfter: 3,
    hint: 'Ask again after `retryAfter` seconds. What is left of the channel comes back once.',
  })
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
