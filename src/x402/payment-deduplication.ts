/**
 * The ledger of payments around the stock middlewares: each signed authorization is taken once, whoever sends it and to
 * whichever instance. It is written down before it is checked; who comes second waits for the first and gets the same
 * answer. What may have been paid is looked up on the chain and never asked for again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import type { NewId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { Failure } from '../failures/failure.ts'
import { beginPurchase, findPurchase, type StoredPurchase } from '../payments/purchases.ts'
import { outcomeOf as evidenceOf, resolvePayment } from '../payments/resolve-payment.ts'
import {
  beginPayment,
  failPayment,
  findPayment,
  findPaymentLike,
  forgetPayment,
  leavePending,
  noteTransaction,
  retakePayment,
  type StoredPayment,
  settlePayment,
} from '../payments/store.ts'
import type { Chain, Hex } from '../providers/chain.ts'
import type { Database } from '../storage/database.ts'
import type { Attempts } from './attempt.ts'
import { keyOf, newPaymentOf, type Order, requireSame, signatureHashOf, stored } from './order.ts'
import type { StockMiddlewares } from './stock.ts'
import { type SettlementAttempt, toSettlementAttempt } from './till.ts'

/** How long somebody who comes second waits for the first, and how often they look. */
const WAIT_MS = 4_000
const LOOK_MS = 40
/** When a payment that came to nothing is sent again: soon where nobody saw it broadcast, late where one may still be mined. */
const RESEND_UNSEEN_MS = 3_000
const RESEND_SEEN_MS = 60_000
/** When a transaction that was sent is written down; most are settled, and written down with that, before. */
const NOTE_MS = 100

/** What came of an order. */
export type Outcome =
  | { readonly status: 'paid'; readonly payment: StoredPayment }
  | { readonly status: 'refused'; readonly id: string; readonly reason: string }
  | { readonly status: 'pending'; readonly id: string; readonly transaction: string | null }

/** Takes payments once. */
export interface PaymentDeduplication {
  /**
   * Takes a payment for an answer, or tells what came of it, or of the purchase, before.
   * @throws Failure `payment_reused`, `facilitator_unavailable`, `idempotency_key_reused`, `idempotency_in_progress`.
   */
  take(order: Order, offer: { units: bigint; answer: Record<string, unknown> }): Promise<Outcome>
  /** What came of a payment that was sent before; null where it never was. @throws Failure as `take`. */
  recall(order: Order): Promise<Outcome | null>
  /** What came of whichever payment was sent under an idempotency key. @throws Failure `idempotency_key_reused`. */
  recallPurchase(purchase: StoredPurchase): Promise<Outcome | null>
}

/** What it is made of. @property operation what is sold, such as `x402.fx`. @property token address of what is paid with. */
export interface OnceParts {
  readonly database: Database
  readonly chain: Chain
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
  readonly operation: string
  readonly token: string
  readonly settings: { readonly dataKey: Uint8Array }
  /** Another facilitator carries the payments. */
  readonly isRemote: boolean
  /** Whether a payment is its payer's own. */
  readonly isSigned: (order: Order) => Promise<boolean>
  readonly attempts: Attempts
  readonly stock: StockMiddlewares
}

/** The ledger of one paywall. */
export function createPaymentDeduplication(parts: OnceParts): PaymentDeduplication {
  const { database, chain, clock, newId, log, isRemote, isSigned, attempts, stock } = parts
  // Those who send the same thing to this process at once share one answer without asking the database.
  const underWay = new Map<string, Promise<Outcome>>()

  const take: PaymentDeduplication['take'] = async (order, offer) => {
    const sinceBlock = isRemote ? await chain.blockNumber() : null
    const row = newPaymentOf(parts, order, offer, { id: newId('pay', clock()), sinceBlock })
    const at = clock()
    const { purchase } = order
    const isBegun =
      purchase === null
        ? await beginPayment(database, row, at)
        : await beginPurchase(database, purchase, row, at)
    if (isBegun) return settleFirst(order, stored(row, at))
    return (await recall(order)) ?? take(order, offer)
  }

  const recall: PaymentDeduplication['recall'] = async (order) => {
    const { purchase, payment } = order
    const bought = purchase === null ? undefined : await findPurchase(database, purchase, clock())
    const row = bought ?? (await findPaymentLike(database, keyOf(parts, order), payment.identifier))
    if (row === undefined) return null
    const { nonce } = keyOf(parts, order)
    requireSame(order, row, nonce)
    // Another authorization names the same purchase: it is told of by its payer's signature alone.
    if (bought === undefined && row.nonce !== nonce && !(await isSigned(order)))
      return { status: 'refused', id: row.id, reason: 'invalid_exact_evm_payload_signature' }
    return outcomeOf(row, order)
  }

  const recallPurchase: PaymentDeduplication['recallPurchase'] = async (purchase) => {
    const row = await findPurchase(database, purchase, clock())
    return row === undefined ? null : outcomeOf(row, null)
  }

  async function outcomeOf(row: StoredPayment, order: Order | null): Promise<Outcome | null> {
    const ended = await endOf(row)
    if (ended === undefined) return null
    if (ended.state === 'settled') return { status: 'paid', payment: ended }
    if (ended.state === 'failed')
      return { status: 'refused', id: ended.id, reason: ended.failure ?? 'payment_failed' }
    return ended.state === 'pending' ? settleAgain(order, ended) : pendingOf(ended)
  }

  /** The payment once nobody has it in hand; as it is where that takes too long, undefined where it was let go. */
  async function endOf(row: StoredPayment): Promise<StoredPayment | undefined> {
    const deadline = clock().getTime() + WAIT_MS
    let seen: StoredPayment | undefined = row
    while (seen?.state === 'taking' && clock().getTime() < deadline) {
      await sleep(LOOK_MS)
      seen = await findPayment(database, row.id)
    }
    return seen
  }

  async function settleFirst(order: Order, row: StoredPayment): Promise<Outcome> {
    const taken = await run(order, row).catch(async (error: unknown) => {
      if (error instanceof Failure) await forgetPayment(database, row.id)
      else await leavePending(database, { id: row.id, transaction: null, at: clock() })
      throw error
    })
    if (taken.status !== 'refused') return conclude(row, taken)
    if (taken.isSent && (await mayBePaid(row, taken.transaction))) {
      await leavePending(database, { id: row.id, transaction: taken.transaction, at: clock() })
      return settleAgain(order, { ...row, state: 'pending', transaction_hash: taken.transaction })
    }
    await forgetPayment(database, row.id)
    return { status: 'refused', id: row.id, reason: taken.reason }
  }

  /** A payment that may have been paid: found paid on the chain, else sent again where that is due. Its authorization pays once. */
  async function settleAgain(order: Order | null, row: StoredPayment): Promise<Outcome> {
    const known = await resolved(row)
    if (known.state === 'settled') return { status: 'paid', payment: known }
    if (known.state === 'failed')
      return { status: 'refused', id: row.id, reason: known.failure ?? 'payment_failed' }
    const waitMs = row.transaction_hash === null ? RESEND_UNSEEN_MS : RESEND_SEEN_MS
    const at = clock()
    if (order === null || row.nonce !== keyOf(parts, order).nonce) return pendingOf(known)
    const before = new Date(at.getTime() - waitMs)
    if (!(await retakePayment(database, { id: row.id, before, at }))) return pendingOf(known)
    const taken = await run(order, row).catch((err: unknown) => {
      log.warn({ err, paymentId: row.id }, 'a payment cannot be sent again')
      return null
    })
    // An earlier try may still arrive: that this one came to nothing is no end.
    const isOpen = taken === null || taken.status === 'refused'
    return conclude(row, isOpen ? { status: 'pending', transaction: null } : taken)
  }

  /**
   * Whether a payment can be paid although settling it was refused: somebody else may have carried the authorization to the
   * chain, or the facilitator has sent a transaction and given up on it too early.
   */
  async function mayBePaid(row: StoredPayment, transaction: string | null): Promise<boolean> {
    // What a facilitator elsewhere refuses without a transaction it did not settle, whoever else has used the nonce.
    if (isRemote && transaction === null) return false
    const outcome = await evidenceOf(parts, row, transaction).catch(() => null)
    if (outcome === null || outcome.status === 'paid') return true
    if (transaction === null || outcome.status === 'displaced') return false
    const hash: Hex = `0x${transaction.slice(2)}`
    const receipt = await chain.signer.waitForTransactionReceipt({ hash, timeout: LOOK_MS }).catch(() => null)
    return receipt === null || receipt.status === 'success'
  }

  async function resolved(row: StoredPayment): Promise<StoredPayment> {
    const resolution = await resolvePayment(parts, row).catch((err: unknown) => {
      log.warn({ err, paymentId: row.id }, 'a payment cannot be looked into')
      return 'pending'
    })
    return resolution === 'pending' ? row : ((await findPayment(database, row.id)) ?? row)
  }

  /** Once through the stock middleware of its generation. */
  async function run({ payment }: Order, { id, units, answer }: StoredPayment): Promise<SettlementAttempt> {
    let noting: NodeJS.Timeout | undefined
    const onTransaction = (transaction: string) => {
      noting = setTimeout(() => {
        noteTransaction(database, id, transaction).catch((err: unknown) =>
          log.error({ err, paymentId: id, transaction }, 'a transaction could not be written down'),
        )
      }, NOTE_MS)
    }
    const deliver = async () => answer
    const { attempt, response } = await attempts.begin({ id, units, deliver, onTransaction }, () =>
      stock(payment),
    )
    const taken = toSettlementAttempt(attempt, payment, response)
    if (taken.status === 'paid') clearTimeout(noting)
    return taken
  }

  async function conclude(
    row: StoredPayment,
    taken: Exclude<SettlementAttempt, { status: 'refused' }>,
  ): Promise<Outcome> {
    const { transaction } = taken
    const { id } = row
    if (taken.status === 'pending') {
      await leavePending(database, { id, transaction, at: clock() })
      return { status: 'pending', id, transaction: transaction ?? row.transaction_hash }
    }
    const { receipt } = taken
    const outcome = await evidenceOf(parts, row, transaction).catch((err: unknown) => {
      log.warn({ err, paymentId: id }, 'the evidence of a payment cannot be read yet')
      return null
    })
    if (outcome?.status === 'displaced') {
      log.error(
        { paymentId: id, transaction },
        'a payment that was said to be settled did not move its money',
      )
      await failPayment(database, { id, failure: 'invalid_transaction_state', at: clock() })
      return { status: 'refused', id, reason: 'invalid_transaction_state' }
    }
    if (outcome?.status !== 'paid') {
      await leavePending(database, { id, transaction, at: clock() })
      return { status: 'pending', id, transaction: transaction ?? row.transaction_hash }
    }
    try {
      await settlePayment(database, { id, transaction, receipt, at: clock() })
    } catch (err) {
      // It is paid, and nothing says so yet but the chain: whoever asks again will be told by it.
      log.error({ err, paymentId: id }, 'a settled payment could not be written down')
      return { status: 'pending', id, transaction }
    }
    return { status: 'paid', payment: { ...row, state: 'settled', transaction_hash: transaction, receipt } }
  }

  return {
    take: (order, offer) => {
      const { payer, nonce } = keyOf(parts, order)
      const { principal, key } = order.purchase ?? { principal: '', key: '' }
      const name = `${payer} ${nonce} ${order.request} ${signatureHashOf(order)} ${principal} ${key}`
      const running = underWay.get(name)
      if (running !== undefined) return running
      const outcome = take(order, offer).finally(() => underWay.delete(name))
      underWay.set(name, outcome)
      return outcome
    },
    recall,
    recallPurchase,
  }
}

function pendingOf({ id, transaction_hash: transaction }: StoredPayment): Outcome {
  return { status: 'pending', id, transaction }
}
