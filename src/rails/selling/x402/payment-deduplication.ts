/**
 * Payment ledger around the stock middlewares: each signed authorization is taken once across all instances. A
 * payment is stored before it is verified; concurrent duplicates wait for the first and get its result. A payment
 * that may have been made is looked up on the chain and never requested again.
 */
import type { Clock } from '../../../core/base/clock.ts'
import type { NewId } from '../../../core/base/ids.ts'
import type { Log } from '../../../core/base/log.ts'
import { type Cancel, timers } from '../../../core/base/timers.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Chains } from '../../../providers/chain/chains.ts'
import type { Chain, Hex } from '../../../providers/chain/port.ts'
import type { Database } from '../../../storage/database.ts'
import { isLatestVoucher, isVoucherCharged } from '../payments/channels.ts'
import { beginPurchase, findPurchase, type StoredPurchase } from '../payments/purchases.ts'
import { encodeReceipt } from '../payments/receipt.ts'
import { readOutcome as readEvidence, resolvePayment } from '../payments/resolve-payment.ts'
import {
  claimPaymentForResend,
  deletePayment,
  failPayment,
  findPayment,
  findPaymentLike,
  insertPayment,
  markPending,
  recordTransaction,
  type StoredPayment,
  settlePayment,
} from '../payments/store.ts'
import type { Attempts } from './attempt.ts'
import {
  buildNewPayment,
  hashSignature,
  isSameRequest,
  type Order,
  requireSamePayment,
  toPaymentKey,
  toStoredPayment,
} from './order.ts'
import { type SettlementAttempt, toSettlementAttempt } from './settlement-attempt.ts'
import type { StockMiddlewares } from './stock.ts'

/** Wait limit and poll interval of a duplicate request. */
const WAIT_MS = 4_000
const POLL_INTERVAL_MS = 40
/** Delay before a failed payment is resent: short if no transaction was seen, long if one may still be mined. */
const RESEND_UNSEEN_MS = 3_000
const RESEND_SEEN_MS = 60_000
/** Delay before a sent transaction is recorded; most are settled and recorded earlier. */
const NOTE_MS = 100

/** @property isRepeated an earlier call has made the payment. */
export type Outcome =
  | { readonly status: 'paid'; readonly payment: StoredPayment; readonly isRepeated?: true }
  | {
      readonly status: 'refused'
      readonly id: string
      readonly reason: string
      /** State of the payment's channel, for a client whose own is behind. */
      readonly correction?: Readonly<Record<string, unknown>> | null
    }
  | { readonly status: 'pending'; readonly id: string; readonly transaction: string | null }

export interface PaymentDeduplication {
  /**
   * Takes a payment, or returns the outcome of an earlier attempt with the same payment or purchase.
   * @throws Failure `payment_reused`, `facilitator_unavailable`, `idempotency_key_reused`, `idempotency_in_progress`.
   */
  take(order: Order, offer: { units: bigint; answer: Record<string, unknown> }): Promise<Outcome>
  /** Returns the outcome of an earlier payment, or null. @throws Failure as `take`. */
  recall(order: Order): Promise<Outcome | null>
  /** Returns the outcome of the payment under an idempotency key, or null. @throws Failure `idempotency_key_reused`. */
  recallPurchase(purchase: StoredPurchase): Promise<Outcome | null>
}

/** Marks a payment that an earlier call has made. */
function markRepeated(outcome: Outcome | null): Outcome | null {
  return outcome?.status === 'paid' ? { ...outcome, isRepeated: true } : outcome
}

/** @property operation name of the sold operation, such as `x402.fx`. @property token address of the payment token. */
export interface PaymentDeduplicationDependencies {
  readonly database: Database
  readonly chain: Chain
  /** For payments that were begun on another chain under the same identifier or idempotency key. */
  readonly chains: Pick<Chains, 'of'>
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
  readonly operation: string
  readonly token: string
  readonly settings: { readonly dataKey: Uint8Array }
  /** Payments settle through a remote facilitator. */
  readonly isRemote: boolean
  /** True if the payer signed the payment. */
  readonly isSigned: (order: Order) => Promise<boolean>
  readonly attempts: Attempts
  readonly stock: StockMiddlewares
}

export function createPaymentDeduplication(parts: PaymentDeduplicationDependencies): PaymentDeduplication {
  const { database, chain, chains, clock, newId, log, isRemote, isSigned, attempts, stock } = parts
  // Concurrent duplicates in this process share one outcome without querying the database.
  const inFlight = new Map<string, Promise<Outcome>>()

  const take: PaymentDeduplication['take'] = async (order, offer) => {
    const sinceBlock = isRemote ? await chain.blockNumber() : null
    const row = buildNewPayment(parts, order, offer, { id: newId('pay', clock()), sinceBlock })
    const at = clock()
    const { purchase } = order
    const isBegun =
      purchase === null
        ? await insertPayment(database, row, at)
        : await beginPurchase(database, purchase, row, at)
    if (isBegun) return settleFirst(order, toStoredPayment(row, at))
    return (await recall(order)) ?? take(order, offer)
  }

  const recall: PaymentDeduplication['recall'] = async (order) => {
    const { purchase, payment } = order
    const bought = purchase === null ? undefined : await findPurchase(database, purchase, clock())
    const row = bought ?? (await findPaymentLike(database, toPaymentKey(parts, order), payment.identifier))
    if (row === undefined) return null
    if (await isBehind(order, row)) return refuseBehind(order, row)
    requireSamePayment(order, row, isSame(order, row))
    // A different authorization with the same identifier gets the outcome only with the payer's signature.
    if (bought === undefined && !isSame(order, row) && !(await isSigned(order)))
      return { status: 'refused', id: row.id, reason: 'invalid_exact_evm_payload_signature' }
    return markRepeated(await awaitOutcome(row, order))
  }

  /** True for a voucher that paid for something else, or before others: its client does not know what it has paid since. */
  async function isBehind(order: Order, row: StoredPayment): Promise<boolean> {
    if (row.scheme !== 'batch-settlement' || row.state !== 'settled' || !isSame(order, row)) return false
    return !isSameRequest(order, row) || !(await isLatestVoucher(database, row))
  }

  /** The stock scheme refuses such a voucher, and tells the client where its channel stands. */
  async function refuseBehind(order: Order, row: StoredPayment): Promise<Outcome> {
    const taken = await run(order, row)
    if (taken.status !== 'refused') throw new Error(`The voucher of ${row.id} was charged twice.`)
    return { status: 'refused', id: row.id, reason: taken.reason, correction: taken.correction }
  }

  const recallPurchase: PaymentDeduplication['recallPurchase'] = async (purchase) => {
    const row = await findPurchase(database, purchase, clock())
    return row === undefined ? null : markRepeated(await awaitOutcome(row, null))
  }

  async function awaitOutcome(row: StoredPayment, order: Order | null): Promise<Outcome | null> {
    const ended = await waitForOutcome(row)
    if (ended === undefined) return null
    if (ended.state === 'settled') return { status: 'paid', payment: ended }
    if (ended.state === 'failed')
      return { status: 'refused', id: ended.id, reason: ended.failure ?? 'payment_failed' }
    return ended.state === 'pending' ? settleAgain(order, ended) : toPending(ended)
  }

  /**
   * Waits until no instance is processing the payment. Returns it unchanged on timeout, undefined if it was dropped.
   */
  async function waitForOutcome(row: StoredPayment): Promise<StoredPayment | undefined> {
    const deadline = clock().getTime() + WAIT_MS
    let seen: StoredPayment | undefined = row
    while (seen?.state === 'taking' && clock().getTime() < deadline) {
      await timers.sleep(POLL_INTERVAL_MS)
      seen = await findPayment(database, row.id)
    }
    return seen
  }

  async function settleFirst(order: Order, row: StoredPayment): Promise<Outcome> {
    const taken = await run(order, row).catch(async (error: unknown) => {
      if (error instanceof Failure) await deletePayment(database, row.id)
      else await markPending(database, { id: row.id, transaction: null, at: clock() })
      throw error
    })
    if (taken.status !== 'refused') return conclude(row, taken)
    // The charge was kept, and its answer was lost: this row is the first of its voucher.
    if (row.scheme === 'batch-settlement' && (await isVoucherCharged(database, row)))
      return conclude(row, { status: 'paid', transaction: null, receipt: encodeReceipt(row, null) })
    if (taken.isSent && (await mayBePaid(row, taken.transaction))) {
      await markPending(database, { id: row.id, transaction: taken.transaction, at: clock() })
      return settleAgain(order, { ...row, state: 'pending', transaction_hash: taken.transaction })
    }
    await deletePayment(database, row.id)
    return { status: 'refused', id: row.id, reason: taken.reason, correction: taken.correction }
  }

  /**
   * Resolves a payment that may have been made: checks the chain, then resends it if due. Its authorization pays at
   * most once.
   */
  async function settleAgain(order: Order | null, row: StoredPayment): Promise<Outcome> {
    const known = await resolveRow(row)
    if (known.state === 'settled') return { status: 'paid', payment: known }
    if (known.state === 'failed')
      return { status: 'refused', id: row.id, reason: known.failure ?? 'payment_failed' }
    const waitMs = row.transaction_hash === null ? RESEND_UNSEEN_MS : RESEND_SEEN_MS
    const at = clock()
    if (order === null || !isSame(order, row)) return toPending(known)
    const before = new Date(at.getTime() - waitMs)
    if (!(await claimPaymentForResend(database, { id: row.id, before, at }))) return toPending(known)
    const taken = await run(order, row).catch((err: unknown) => {
      log.warn({ err, paymentId: row.id }, 'resending a payment failed')
      return null
    })
    // An earlier transaction may still be mined, so a failed resend does not end the payment.
    const isOpen = taken === null || taken.status === 'refused'
    return conclude(row, isOpen ? { status: 'pending', transaction: null } : taken)
  }

  /**
   * True if a refused payment may still be made: another party may have submitted the authorization, or the
   * facilitator may have sent a transaction and given up too early.
   */
  async function mayBePaid(row: StoredPayment, transaction: string | null): Promise<boolean> {
    // A remote facilitator that refuses without a transaction has not settled, even if the nonce was used elsewhere.
    if (isRemote && transaction === null) return false
    const outcome = await readOutcome(row, transaction).catch(() => null)
    if (outcome === null || outcome.status === 'paid') return true
    if (transaction === null || outcome.status === 'displaced') return false
    const hash: Hex = `0x${transaction.slice(2)}`
    const receipt = await chain.signer
      .waitForTransactionReceipt({ hash, timeout: POLL_INTERVAL_MS })
      .catch(() => null)
    return receipt === null || receipt.status === 'success'
  }

  const readOutcome = async (row: StoredPayment, transaction: string | null) =>
    row.scheme === 'batch-settlement'
      ? ({ status: (await isVoucherCharged(database, row)) ? 'paid' : 'unused' } as const)
      : readEvidence(parts, row, transaction)

  const resolveOnItsChain = async (row: StoredPayment) =>
    resolvePayment({ ...parts, chain: chains.of(row.chain) }, row)

  /** True if the order presents the authorization of a stored payment, and not another one under its name. */
  const isSame = (order: Order, row: StoredPayment) =>
    row.chain === chain.name && row.nonce === toPaymentKey(parts, order).nonce

  async function resolveRow(row: StoredPayment): Promise<StoredPayment> {
    const resolution = await resolveOnItsChain(row).catch((err: unknown) => {
      log.warn({ err, paymentId: row.id }, 'resolving a payment failed')
      return 'pending'
    })
    return resolution === 'pending' ? row : ((await findPayment(database, row.id)) ?? row)
  }

  /** Runs the payment through the stock middleware of its generation. */
  async function run(
    { payment, transfer }: Order,
    { id, units, answer }: StoredPayment,
  ): Promise<SettlementAttempt> {
    let cancelRecording: Cancel | undefined
    const onTransaction = (transaction: string) => {
      cancelRecording = timers.after(NOTE_MS, () => {
        recordTransaction(database, id, transaction).catch((err: unknown) =>
          log.error({ err, paymentId: id, transaction }, 'recording a transaction failed'),
        )
      })
    }
    const deliver = async () => answer
    // Of `upto`, the terms' maximum: the payment was compared with it before.
    const agreed = payment.permit === null ? units : BigInt(transfer.authorization.value)
    const { attempt, response } = await attempts.begin({ id, units, agreed, deliver, onTransaction }, () =>
      stock(payment),
    )
    const taken = toSettlementAttempt(attempt, payment, response)
    if (taken.status === 'paid') cancelRecording?.()
    return taken
  }

  async function conclude(
    row: StoredPayment,
    taken: Exclude<SettlementAttempt, { status: 'refused' }>,
  ): Promise<Outcome> {
    const { transaction } = taken
    const { id } = row
    if (taken.status === 'pending') {
      await markPending(database, { id, transaction, at: clock() })
      return { status: 'pending', id, transaction: transaction ?? row.transaction_hash }
    }
    const { receipt } = taken
    const outcome = await readOutcome(row, transaction).catch((err: unknown) => {
      log.warn({ err, paymentId: id }, 'reading the evidence of a payment failed')
      return null
    })
    if (outcome?.status === 'displaced') {
      log.error({ paymentId: id, transaction }, 'a payment reported as settled moved no money')
      await failPayment(database, { id, failure: 'invalid_transaction_state', at: clock() })
      return { status: 'refused', id, reason: 'invalid_transaction_state' }
    }
    if (outcome?.status !== 'paid') {
      await markPending(database, { id, transaction, at: clock() })
      return { status: 'pending', id, transaction: transaction ?? row.transaction_hash }
    }
    try {
      await settlePayment(database, { id, transaction, receipt, at: clock() })
    } catch (err) {
      // The payment is on the chain but not recorded; the next request finds it there.
      log.error({ err, paymentId: id }, 'recording a settled payment failed')
      return { status: 'pending', id, transaction }
    }
    return { status: 'paid', payment: { ...row, state: 'settled', transaction_hash: transaction, receipt } }
  }

  return {
    take: (order, offer) => {
      const { payer, nonce } = toPaymentKey(parts, order)
      const { principal, key } = order.purchase ?? { principal: '', key: '' }
      const name = `${payer} ${nonce} ${order.request} ${hashSignature(order)} ${principal} ${key}`
      const running = inFlight.get(name)
      if (running !== undefined) return running
      const outcome = take(order, offer).finally(() => inFlight.delete(name))
      inFlight.set(name, outcome)
      return outcome
    },
    recall,
    recallPurchase,
  }
}

function toPending({ id, transaction_hash: transaction }: StoredPayment): Outcome {
  return { status: 'pending', id, transaction }
}
