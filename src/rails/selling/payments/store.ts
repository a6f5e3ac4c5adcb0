/** Payments in the database: each signed authorization is stored once, across all senders and instances. */
import type { Selectable } from 'kysely'
import type { Connection, Statement } from '../../../storage/database.ts'
import type { PaymentTable } from '../../../storage/schema.ts'

/** The database, and the chain whose payments are read. */
interface OnChain {
  readonly database: Connection
  readonly chain: { readonly name: string }
}

export type StoredPayment = Selectable<PaymentTable>

/** Identity of an authorization: EIP-3009 spends each nonce once. Lower case. */
export type PaymentKey = Pick<StoredPayment, 'chain' | 'token' | 'payer' | 'nonce'>

export type NewPayment = PaymentKey &
  Pick<
    StoredPayment,
    | 'id'
    | 'pay_to'
    | 'since_block'
    | 'identifier'
    | 'request'
    | 'signature_hash'
    | 'operation'
    | 'network'
    | 'scheme'
    | 'receipt_header'
    | 'asset'
    | 'units'
    | 'answer'
    | 'valid_before'
  >

const begin: Statement = {
  name: 'payment_begin',
  text: `
    insert into payment (id, chain, token, payer, nonce, identifier, request, signature_hash, operation, network,
      receipt_header, asset, units, answer, valid_before, pay_to, since_block, created_at, sent_at, updated_at, scheme)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $18, $18, $19)
    on conflict do nothing returning id`,
}

const settle: Statement = {
  name: 'payment_settle',
  text: 'select payment_settle($1, $2, $3, $4) as settled',
}

/**
 * Records a payment before any processing.
 * @returns false when it, or another payment with its identifier, is already recorded.
 */
export async function insertPayment(database: Connection, payment: NewPayment, at: Date): Promise<boolean> {
  const rows = await database.call<{ id: string }>(begin, [
    payment.id,
    payment.chain,
    payment.token,
    payment.payer,
    payment.nonce,
    payment.identifier,
    payment.request,
    payment.signature_hash,
    payment.operation,
    payment.network,
    payment.receipt_header,
    payment.asset,
    payment.units,
    JSON.stringify(payment.answer),
    payment.valid_before,
    payment.pay_to,
    payment.since_block,
    at,
    payment.scheme,
  ])
  return rows.length === 1
}

/** Finds the payment of an authorization, or else the payment with the same payer and identifier. */
export async function findPaymentLike(
  { kysely }: Connection,
  { chain, token, payer, nonce }: PaymentKey,
  identifier: string | null,
): Promise<StoredPayment | undefined> {
  const same = await kysely
    .selectFrom('payment')
    .selectAll()
    .where('chain', '=', chain)
    .where('token', '=', token)
    .where('payer', '=', payer)
    .where('nonce', '=', nonce)
    .executeTakeFirst()
  if (same !== undefined || identifier === null) return same
  return kysely
    .selectFrom('payment')
    .selectAll()
    .where('payer', '=', payer)
    .where('identifier', '=', identifier)
    .executeTakeFirst()
}

export async function findPayment({ kysely }: Connection, id: string): Promise<StoredPayment | undefined> {
  return kysely.selectFrom('payment').selectAll().where('id', '=', id).executeTakeFirst()
}

/** Records the hash of a payment's transaction directly after the broadcast. */
export async function recordTransaction(
  { kysely }: Connection,
  id: string,
  transaction: string,
): Promise<void> {
  await kysely
    .updateTable('payment')
    .set({ transaction_hash: transaction })
    .where('id', '=', id)
    .where('state', 'in', ['taking', 'pending'])
    .execute()
}

/** Settles a payment once: state, meter and books change together. @param receipt value of the receipt header. */
export async function settlePayment(
  database: Connection,
  { id, transaction, receipt, at }: { id: string; transaction: string | null; receipt: string; at: Date },
): Promise<void> {
  await database.call(settle, [id, transaction, receipt, at])
}

/** Reverses a settled payment that the chain has lost, once. @returns whether this call reversed it. */
export async function reversePayment(
  database: Connection,
  { id, at }: { id: string; at: Date },
): Promise<boolean> {
  const [row] = await database.call<{ reversed: boolean }>(
    { name: 'payment_reverse', text: 'select payment_reverse($1, $2) as reversed' },
    [id, at],
  )
  return row?.reversed === true
}

/** Finds settled payments on a chain since a moment that were not reversed. */
export async function paymentsSettledSince(
  { database: { kysely }, chain }: OnChain,
  since: Date,
): Promise<readonly StoredPayment[]> {
  return (
    kysely
      .selectFrom('payment')
      .selectAll()
      .where('chain', '=', chain.name)
      .where('state', '=', 'settled')
      // A voucher is in no block.
      .where('scheme', '<>', 'batch-settlement')
      .where('updated_at', '>=', since)
      .where('reversed_at', 'is', null)
      .execute()
  )
}

/** Failure of a payment whose nonce was spent on something other than it. */
export const DISPLACED = 'authorization_used_otherwise_or_canceled'

/** Lists payments that something else has displaced since a moment: the block that shows it may be replaced. */
export async function paymentsDisplacedSince(
  { database: { kysely }, chain }: OnChain,
  since: Date,
): Promise<readonly StoredPayment[]> {
  return kysely
    .selectFrom('payment')
    .selectAll()
    .where('chain', '=', chain.name)
    .where('state', '=', 'failed')
    .where('failure', '=', DISPLACED)
    .where('updated_at', '>=', since)
    .execute()
}

/** Marks a payment as pending when processing stopped without a known outcome. */
export async function markPending(
  { kysely }: Connection,
  { id, transaction, at }: { id: string; transaction: string | null; at: Date },
): Promise<void> {
  await kysely
    .updateTable('payment')
    .set((eb) => ({
      state: 'pending',
      transaction_hash: eb.fn.coalesce(eb.val(transaction), 'transaction_hash'),
      updated_at: at,
    }))
    .where('id', '=', id)
    .where('state', '=', 'taking')
    .execute()
}

/** Deletes a payment that was certainly not broadcast and frees its authorization and idempotency key. */
export async function deletePayment({ kysely }: Connection, id: string): Promise<void> {
  await kysely
    .with('ended', (from) =>
      from.deleteFrom('payment').where('id', '=', id).where('state', '=', 'taking').returning('id'),
    )
    .deleteFrom('idempotency')
    .where('payment_id', 'in', (from) => from.selectFrom('ended').select('id'))
    .execute()
}

/** Deletes a voucher's payment that was not charged and no longer can be by an earlier request: the voucher may be sent again. */
export async function dropVoucher({ kysely }: Connection, id: string): Promise<void> {
  await kysely
    .with('ended', (from) =>
      from
        .deleteFrom('payment')
        .where('id', '=', id)
        .where('scheme', '=', 'batch-settlement')
        .where('state', 'in', ['taking', 'pending'])
        .returning('id'),
    )
    .deleteFrom('idempotency')
    .where('payment_id', 'in', (from) => from.selectFrom('ended').select('id'))
    .execute()
}

/** Fails a payment that can never be made and frees its identifier and idempotency key. */
export async function failPayment(
  { kysely }: Connection,
  { id, failure, at }: { id: string; failure: string; at: Date },
): Promise<void> {
  await kysely
    .with('ended', (from) =>
      from
        .updateTable('payment')
        .set({ state: 'failed', failure, identifier: null, updated_at: at })
        .where('id', '=', id)
        .where('state', 'in', ['taking', 'pending'])
        .returning('id'),
    )
    .deleteFrom('idempotency')
    .where('payment_id', 'in', (from) => from.selectFrom('ended').select('id'))
    .execute()
}

/**
 * Claims a pending payment to send it again; only one concurrent caller succeeds.
 * @param before latest time of the previous send.
 */
export async function claimPaymentForResend(
  { kysely }: Connection,
  { id, before, at }: { id: string; before: Date; at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await kysely
    .updateTable('payment')
    .set({ state: 'taking', sent_at: at, updated_at: at })
    .where('id', '=', id)
    .where('state', '=', 'pending')
    .where('sent_at', '<=', before)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/**
 * Finds payments on a chain with an unknown outcome, the longest unchecked first.
 * @param abandoned payments still being taken are included if last updated before this time.
 */
export async function openPayments(
  { database: { kysely }, chain }: OnChain,
  { before, abandoned, limit }: { before: Date; abandoned: Date; limit: number },
): Promise<readonly StoredPayment[]> {
  return kysely
    .selectFrom('payment')
    .selectAll()
    .where('chain', '=', chain.name)
    .where((eb) =>
      eb.or([
        eb.and([eb('state', '=', 'pending'), eb('updated_at', '<', before)]),
        eb.and([eb('state', '=', 'taking'), eb('updated_at', '<', abandoned)]),
      ]),
    )
    .orderBy('updated_at')
    .limit(limit)
    .execute()
}

/**
 * Claims a payment for resolution: moves it to the end of the queue and marks it pending.
 * @returns whether it was unchanged since it was read.
 */
export async function claimPayment(
  { kysely }: Connection,
  { id, updated_at }: Pick<StoredPayment, 'id' | 'updated_at'>,
  at: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await kysely
    .updateTable('payment')
    .set({ state: 'pending', updated_at: at })
    .where('id', '=', id)
    .where('updated_at', '=', updated_at)
    .where('state', 'in', ['taking', 'pending'])
    .executeTakeFirst()
  return numUpdatedRows === 1n
}
