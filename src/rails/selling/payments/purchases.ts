/** Idempotency of purchases: an idempotency key names one payment, even if later calls present another. */
import { idempotencyInProgress, idempotencyKeyReused } from '../../../core/failures/idempotency-failures.ts'
import { type Connection, callForRow, type Database, type Statement } from '../../../storage/database.ts'
import { findPaymentLike, insertPayment, type NewPayment, type StoredPayment } from './store.ts'

/** Content of an idempotency key. @property fingerprint hash of operation and input. */
export interface StoredPurchase {
  readonly principal: string
  readonly key: string
  readonly fingerprint: string
}

/** Retention of an idempotency key: 24 hours. */
const RETENTION_MS = 24 * 60 * 60 * 1000

const claimStatement: Statement = {
  name: 'purchase_claim',
  text: 'select purchase_claim($1, $2, $3, $4, $5) as verdict',
}

/**
 * Records a payment under an idempotency key.
 * @returns false when the key already names a payment, or when the payment was sent before and the key now names that one.
 * @throws Failure `idempotency_key_reused`; `idempotency_in_progress` when a spend of the owner's money uses the key.
 */
export function beginPurchase(
  database: Database,
  purchase: StoredPurchase,
  payment: NewPayment,
  at: Date,
): Promise<boolean> {
  return database.transaction(async (connection) => {
    const { principal, key, fingerprint } = purchase
    const { verdict } = await callForRow<{ verdict: 'claimed' | 'reused' | 'bought' | 'decided' }>(
      connection,
      claimStatement,
      [principal, key, fingerprint, payment.id, at],
    )
    if (verdict === 'reused') throw idempotencyKeyReused()
    if (verdict === 'decided') throw idempotencyInProgress()
    if (verdict === 'bought') return false
    if (await insertPayment(connection, payment, at)) return true
    await nameBefore(connection, payment)
    return false
  })
}

/**
 * Points the claimed key at the payment that was sent before, or frees the key if that payment does not match or has
 * failed.
 */
async function nameBefore(connection: Connection, payment: NewPayment): Promise<void> {
  const { kysely } = connection
  const before = await findPaymentLike(connection, payment, payment.identifier)
  const isSame =
    before?.request === payment.request &&
    (before.nonce !== payment.nonce || before.signature_hash === payment.signature_hash)
  if (before === undefined || !isSame || before.state === 'failed')
    await kysely.deleteFrom('idempotency').where('payment_id', '=', payment.id).execute()
  else
    await kysely
      .updateTable('idempotency')
      .set({ payment_id: before.id })
      .where('payment_id', '=', payment.id)
      .execute()
}

/** Finds the payment that an idempotency key names. @throws Failure `idempotency_key_reused`. */
export async function findPurchase(
  { kysely }: Connection,
  { principal, key, fingerprint }: StoredPurchase,
  now: Date,
): Promise<StoredPayment | undefined> {
  const found = await kysely
    .selectFrom('payment')
    .innerJoin('idempotency', 'idempotency.payment_id', 'payment.id')
    .selectAll('payment')
    .select('idempotency.fingerprint')
    .where('idempotency.principal', '=', principal)
    .where('idempotency.key', '=', key)
    .where('idempotency.decision_id', 'is', null)
    .where('idempotency.created_at', '>=', new Date(now.getTime() - RETENTION_MS))
    .executeTakeFirst()
  if (found === undefined) return undefined
  const { fingerprint: first, ...payment } = found
  if (first !== fingerprint) throw idempotencyKeyReused()
  return payment
}
