/**
 * The ledger of payments around the stock middlewares: each signed authorization is taken once, whoever sends it and to
 * whichever instance. It is written down before it is checked; who comes second waits for the first and gets the same
 * answer. What may have been paid is looked up on the chain and never asked for again.
 */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import { Failure } from '../../failure.ts'
import type { NewId } from '../../ids.ts'
import type { Log } from '../../log.ts'
import { isSpent, resolvePayment } from '../../payments/resolve-payment.ts'
import {
  beginPayment,
  findPayment,
  findPaymentLike,
  forgetPayment,
  leavePending,
  type NewPayment,
  noteTransaction,
  retakePayment,
  type StoredPayment,
  settlePayment,
} from '../../payments/store.ts'
import type { Chain, Hex } from '../../providers/chain.ts'
import type { Database } from '../../storage/database.ts'
import type { Attempts } from './attempt.ts'
import type { Payment } from './payment.ts'
import type { StockMiddlewares } from './stock.ts'
import { receiptHeaders, type Taken, takenOf } from './till.ts'

/** How long somebody who comes second waits for the first, and how often they look. */
const WAIT_MS = 4_000
const LOOK_MS = 40
/** When a payment that came to nothing is sent again: soon where nobody saw it broadcast, late where one may still be mined. */
const RESEND_UNSEEN_MS = 3_000
const RESEND_SEEN_MS = 60_000
/** When a transaction that was sent is written down; most are settled, and written down with that, before. */
const NOTE_MS = 100
/** The last moment that every store can hold. */
const LATEST_SECONDS = 253_402_300_799n

/** A payment that was sent for something. @property request what for: its method, path and query. */
export interface Order {
  readonly payment: Payment
  readonly transfer: NonNullable<Payment['transfer']>
  readonly request: string
}

/** What came of an order. */
export type Outcome =
  | { readonly status: 'paid'; readonly payment: StoredPayment }
  | { readonly status: 'refused'; readonly id: string; readonly reason: string }
  | { readonly status: 'pending'; readonly id: string; readonly transaction: string | null }

/** Takes payments once. */
export interface Once {
  /** Takes a payment for an answer, or tells what came of it before. @throws Failure `payment_reused`, `facilitator_unavailable`. */
  take(order: Order, offer: { units: bigint; answer: Record<string, unknown> }): Promise<Outcome>
  /** What came of a payment that was sent before; null where it never was. @throws Failure as `take`. */
  recall(order: Order): Promise<Outcome | null>
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
  readonly attempts: Attempts
  readonly stock: StockMiddlewares
}

/** The ledger of one paywall. */
export function createOnce(parts: OnceParts): Once {
  const { database, chain, clock, newId, log, attempts, stock } = parts
  // Those who send the same thing to this process at once share one answer without asking the database.
  const underWay = new Map<string, Promise<Outcome>>()

  const take: Once['take'] = async (order, offer) => {
    const row = newPaymentOf(parts, order, offer, newId('pay', clock()))
    const at = clock()
    if (await beginPayment(database, row, at)) return settleFirst(order, stored(row, at))
    return (await recall(order)) ?? take(order, offer)
  }

  const recall: Once['recall'] = async (order) => {
    const row = await findPaymentLike(database, keyOf(parts, order), order.payment.identifier)
    if (row === undefined) return null
    requireSame(order, row, keyOf(parts, order).nonce)
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
  async function settleAgain(order: Order, row: StoredPayment): Promise<Outcome> {
    const known = await resolved(row)
    if (known.state === 'settled') return { status: 'paid', payment: known }
    if (known.state === 'failed')
      return { status: 'refused', id: row.id, reason: known.failure ?? 'payment_failed' }
    const waitMs = row.transaction_hash === null ? RESEND_UNSEEN_MS : RESEND_SEEN_MS
    const at = clock()
    const isSame = row.nonce === keyOf(parts, order).nonce
    const isOurs =
      isSame && (await retakePayment(database, { id: row.id, before: new Date(at.getTime() - waitMs), at }))
    if (!isOurs) return pendingOf(known)
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
    if (await isSpent(chain, row).catch(() => true)) return true
    if (transaction === null) return false
    const hash: Hex = `0x${transaction.slice(2)}`
    const receipt = await chain.signer.waitForTransactionReceipt({ hash, timeout: LOOK_MS }).catch(() => null)
    return receipt === null || receipt.status === 'success'
  }

  async function resolved(row: StoredPayment): Promise<StoredPayment> {
    const resolution = await resolvePayment({ database, chain, clock }, row).catch((err: unknown) => {
      log.warn({ err, paymentId: row.id }, 'a payment cannot be looked into')
      return 'pending'
    })
    return resolution === 'pending' ? row : ((await findPayment(database, row.id)) ?? row)
  }

  /** Once through the stock middleware of its generation. */
  async function run({ payment }: Order, { id, units, answer }: StoredPayment): Promise<Taken> {
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
    const taken = takenOf(attempt, payment, response)
    if (taken.status === 'paid') clearTimeout(noting)
    return taken
  }

  async function conclude(
    row: StoredPayment,
    taken: Exclude<Taken, { status: 'refused' }>,
  ): Promise<Outcome> {
    const { transaction } = taken
    const { id } = row
    if (taken.status === 'pending') {
      await leavePending(database, { id, transaction, at: clock() })
      return { status: 'pending', id, transaction: transaction ?? row.transaction_hash }
    }
    const { receipt } = taken
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
      const name = `${payer} ${nonce} ${order.request} ${signatureHashOf(order)}`
      const running = underWay.get(name)
      if (running !== undefined) return running
      const outcome = take(order, offer).finally(() => underWay.delete(name))
      underWay.set(name, outcome)
      return outcome
    },
    recall,
  }
}

/** What was sent before must be the same thing for the same thing. @throws Failure `payment_reused`. */
function requireSame(order: Order, row: StoredPayment, nonce: string): void {
  const isSigned = row.nonce !== nonce || row.signature_hash === signatureHashOf(order)
  if (row.request === hashOf(order.request) && isSigned) return
  throw new Failure('payment_reused', 'The payment was used for another request; it pays for one alone.', {
    hint: 'Ask without a payment, and pay the new challenge.',
  })
}

function pendingOf({ id, transaction_hash: transaction }: StoredPayment): Outcome {
  return { status: 'pending', id, transaction }
}

function keyOf({ chain, token }: Pick<OnceParts, 'chain' | 'token'>, { transfer }: Order) {
  const { from, nonce } = transfer.authorization
  return {
    chain: chain.name,
    token: token.toLowerCase(),
    payer: from.toLowerCase(),
    nonce: nonce.toLowerCase(),
  }
}

function signatureHashOf({ transfer }: Order): string {
  return hashOf(transfer.signature.toLowerCase())
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function newPaymentOf(
  parts: Pick<OnceParts, 'chain' | 'token' | 'operation'>,
  order: Order,
  { units, answer }: { units: bigint; answer: Record<string, unknown> },
  id: string,
): NewPayment {
  const { payment, transfer, request } = order
  const validBefore = BigInt(transfer.authorization.validBefore)
  const seconds = validBefore < LATEST_SECONDS ? validBefore : LATEST_SECONDS
  return {
    id,
    ...keyOf(parts, order),
    identifier: payment.identifier,
    request: hashOf(request),
    signature_hash: signatureHashOf(order),
    operation: parts.operation,
    network: payment.network,
    receipt_header: receiptHeaders[payment.generation],
    asset: 'USDC',
    units,
    answer,
    valid_before: new Date(Number(seconds) * 1000),
  }
}

function stored(row: NewPayment, at: Date): StoredPayment {
  return {
    ...row,
    state: 'taking',
    transaction_hash: null,
    receipt: null,
    failure: null,
    created_at: at,
    sent_at: at,
    updated_at: at,
  }
}
