/**
 * Requests for money that are paid by x402: to the wallet of the account that asks, at its own price. A request is one payment's at a
 * time, so that no second payer is charged; a payment that may have been made is never asked for again. The money is booked when the
 * chain shows it, as every deposit is.
 */
import { Failure } from '../../../core/failures/failure.ts'
import type { Money } from '../../../core/money/money.ts'
import type { Chain } from '../../../providers/chain/port.ts'
import type { AddressScreening } from '../../../providers/screening/port.ts'
import {
  claimRequest,
  isPayable,
  PAY_OPERATION,
  type PaymentRequest,
  readOutstanding,
  readStatus,
  releaseRequest,
} from '../../../records/requests/store.ts'
import { toAddress } from '../../wallets/store.ts'
import { purchasedAnswer } from '../payments/receipt.ts'
import { createChallenge } from './challenge.ts'
import { type Order, toPaymentKey } from './order.ts'
import { chooseNetwork, decodePayment, type Payment, paymentMismatch } from './payment.ts'
import type { Outcome } from './payment-deduplication.ts'
import type { ChallengeOutcome, PaidOutcome, SentPayment } from './sale.ts'
import { facilitatorUnavailable } from './settlement-attempt.ts'
import { buildTerms, type Terms } from './terms.ts'
import { openTill, type TillParts } from './till.ts'

/** How long a payment has a request to itself: longer than one without an outcome is waited for. */
const CLAIM_MS = 15 * 60_000

type SharedTillParts = Omit<TillParts, 'operation' | 'payTo' | 'price' | 'path' | 'description' | 'schemes'>

export interface RequestSeller {
  /**
   * Takes a payment for a request, or answers the challenge.
   * @throws Failure `conflict` for a request that takes no payment, `aml_blocked`, `screening_unavailable`, `invalid_request`,
   * `payment_reused`, `facilitator_unavailable`, `settlement_pending`.
   */
  sell(sale: RequestSale): Promise<PaidOutcome | ChallengeOutcome>
}

/** @property wallet where it is paid to. @property path of its x402 URL. @property payment null: not paid yet. */
export interface RequestSale {
  readonly request: PaymentRequest
  readonly wallet: string
  readonly path: string
  readonly payment: SentPayment | null
  readonly paymentPlace: string
}

export function createRequestSeller(
  parts: SharedTillParts & {
    readonly screening: AddressScreening
    readonly onCalendar: (at: Date) => Date
  },
): RequestSeller {
  const { chains, clock, database, log, onCalendar, origin, screening } = parts

  const buildRequestTerms = (sale: RequestSale, chain: Chain): Terms =>
    buildTerms({ chain, origin, ...describeSale(sale) })

  const challenge = (sale: RequestSale, reason: string): ChallengeOutcome => {
    requirePayable(sale.request, onCalendar(clock()))
    const [first, ...more] = chains.all
    const offered = [first, ...more.filter(({ name }) => name !== first.name)].map((chain) =>
      buildRequestTerms(sale, chain),
    )
    const [terms, ...others] = offered
    if (terms === undefined) throw facilitatorUnavailable()
    return createChallenge([terms, ...others], {})(reason, null)
  }

  const take = async (sale: RequestSale, payment: Payment): Promise<PaidOutcome | ChallengeOutcome> => {
    const chain = chains.all.find(
      (one) => payment.network === chooseNetwork(payment, buildRequestTerms(sale, one)),
    )
    if (chain === undefined) return challenge(sale, 'invalid_network')
    const { transfer } = payment
    if (transfer === null || payment.scheme !== 'exact') return challenge(sale, 'unsupported_scheme')
    const { request } = sale
    const order: Order = { payment, transfer, request: `${PAY_OPERATION} ${request.token}`, purchase: null }
    const till = await openTill(
      { ...parts, operation: PAY_OPERATION, schemes: 'exact', ...describeSale(sale) },
      chain,
    )
    try {
      const before = await till.payments.recall(order)
      if (before !== null) return answerTo(before, sale)
      requirePayable(request, onCalendar(clock()))
      const mismatch = paymentMismatch(payment, till.terms)
      if (mismatch !== undefined) return challenge(sale, mismatch)
      await requireClear(transfer.authorization.from)
      const { payer, nonce } = toPaymentKey({ chain, token: till.terms.asset }, order)
      const claim = `${chain.name} ${payer} ${nonce}`
      await requireClaim(request, { claim, units: till.terms.units })
      const outcome = await till.payments
        .take(order, { units: till.terms.units, answer: buildAnswer(sale, till.terms) })
        .catch(async (error: unknown) => {
          // Any other error leaves open whether it was sent.
          if (error instanceof Failure) await releaseRequest(database, { id: request.id, claim })
          throw error
        })
      if (outcome.status === 'refused') await releaseRequest(database, { id: request.id, claim })
      log.info({ requestId: request.id, status: outcome.status }, 'x402 payment of a request')
      return answerTo(outcome, sale)
    } finally {
      await till.close()
    }
  }

  const answerTo = (outcome: Outcome, sale: RequestSale): PaidOutcome | ChallengeOutcome => {
    if (outcome.status === 'pending') throw stillPending(outcome)
    if (outcome.status === 'refused') return challenge(sale, outcome.reason)
    const { payment, isRepeated = false } = outcome
    return {
      status: 'paid',
      replayed: isRepeated,
      answer: purchasedAnswer(payment),
      receipt: payment.receipt ?? '',
      receiptHeader: payment.receipt_header,
    }
  }

  /** Money of a listed payer would lie in the wallet unbooked, so it is not taken. */
  const requireClear = async (payer: string) => {
    const screened = await screening.screen(toAddress(payer))
    if (screened.result === 'clear') return
    throw new Failure('aml_blocked', 'This payer cannot pay here. Nothing was charged.', {
      screening: screened,
    })
  }

  const requireClaim = async ({ id }: PaymentRequest, { claim, units }: { claim: string; units: bigint }) => {
    const at = clock()
    const until = new Date(at.getTime() + CLAIM_MS)
    if (await claimRequest(database, { id, claim, units, until, now: onCalendar(at), at })) return
    throw new Failure('conflict', 'Another payment of this request is being made. Nothing was charged.', {
      reason: 'being_paid',
      retryAfter: 5,
      hint: 'Read the request’s page again: it may be paid by then.',
    })
  }

  return {
    sell: async (sale) =>
      sale.payment === null
        ? challenge(sale, `${sale.paymentPlace} is required`)
        : take(sale, decodePayment(sale.payment)),
  }
}

function describeSale({ request, wallet, path }: RequestSale) {
  const price: Money = { asset: 'USDC', units: readOutstanding(request) }
  const { memo, payee } = request
  const description = [memo ?? 'Payment request', payee === null ? null : `to ${payee}`].filter(
    (one) => one !== null,
  )
  return { payTo: wallet, price, path, description: description.join(' ') }
}

/** What a payer gets. @property request the token, which the page is named by. */
function buildAnswer({ request }: RequestSale, { price, payTo }: Terms): Record<string, unknown> {
  return {
    request: request.token,
    paid: price,
    asset: 'USDC',
    payTo,
    memo: request.memo,
    payee: request.payee,
  }
}

/** @throws Failure `conflict`. */
function requirePayable(request: PaymentRequest, now: Date): void {
  if (isPayable(request, now) && readOutstanding(request) > 0n) return
  const status = readStatus(request, now)
  throw new Failure('conflict', `The request is ${status}. Nothing was charged.`, {
    reason: status,
    hint: status === 'paid' ? 'It needs no other payment.' : 'Ask the payee for another request.',
  })
}

function stillPending({ id, transaction }: Extract<Outcome, { status: 'pending' }>): Failure {
  return new Failure('settlement_pending', `The payment ${id} was sent and is not confirmed yet.`, {
    paymentId: id,
    ...(transaction === null ? {} : { transaction }),
    retryAfter: 3,
    hint: 'Send the same payment again after `retryAfter` seconds; it is taken once. Sign no other one.',
  })
}
