/** Rows of relays: payments signed by third parties, and their progress. */
import type { Selectable } from 'kysely'
import { z } from 'zod'
import type { Stablecoin } from '../../../core/money/money.ts'
import type { Address, Hex } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import type { RelayTable } from '../../../storage/schema.ts'
import { addressOf, lowerCase, type OnChain, stablecoinOf, type TransferState } from '../store.ts'
import type { SignedPayment } from './signed-payment.ts'
import type { Rejection } from './token-authorization.ts'

export interface Relay {
  readonly id: string
  readonly accountId: string
  readonly decisionId: string
  readonly payment: SignedPayment
  readonly chain: string
  readonly state: TransferState
  /** Hash of the paying transaction; the permit's own transaction is not stored. */
  readonly transactionHash: Hex | null
  readonly failure: string | null
  /** Reason for the token's rejection; null for any other failure. */
  readonly rejection: Rejection | null
  readonly createdAt: Date
  /** Time of the last change of its state or transaction. */
  readonly updatedAt: Date
}

export type NewRelay = Omit<Relay, 'state' | 'transactionHash' | 'failure' | 'rejection' | 'updatedAt'>

const digits = z.string().regex(/^\d+$/).transform(BigInt)
const signedParts = z.object({
  validAfter: digits,
  validBefore: digits,
  signature: z.templateLiteral(['0x', z.string()]),
})

const open = ['reserved', 'submitted', 'settlement_pending'] as const

/**
 * Inserts a relay if its reservation still stands and no other relay carries the same payment.
 * @returns whether it was inserted.
 */
export async function insertRelay(database: Connection, relay: NewRelay): Promise<boolean> {
  const rows = await database.call<{ id: string }>(
    {
      name: 'wallets_insert_relay',
      text: `insert into relay (id, account_id, decision_id, kind, token, units, payer, destination, chain, nonce, signed,
          expires_at, created_at, updated_at, state)
        select $1, $2, r.decision_id, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, 'reserved'
        from (select decision_id from reservation where decision_id = $3 and status = 'reserved' for update) r
        on conflict do nothing
        returning id`,
    },
    toParameters(relay),
  )
  return rows.length === 1
}

/** Inserts a relay that failed before it started, so that a repeated call gets the same answer. */
export async function insertRejectedRelay(
  database: Connection,
  relay: NewRelay,
  { failure, rejection }: { failure: string; rejection: Rejection },
): Promise<void> {
  await database.call(
    {
      name: 'wallets_insert_rejected_relay',
      text: `insert into relay (id, account_id, decision_id, kind, token, units, payer, destination, chain, nonce, signed,
          expires_at, created_at, updated_at, state, failure, rejection)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, 'failed', $14, $15)
        on conflict do nothing`,
    },
    [...toParameters(relay), failure, rejection],
  )
}

function toParameters({ payment, createdAt, ...relay }: NewRelay) {
  const [validAfter, validBefore] = [payment.validAfter.toString(), payment.validBefore.toString()]
  return [
    relay.id,
    relay.accountId,
    relay.decisionId,
    payment.kind,
    payment.token,
    payment.units,
    lowerCase(payment.payer),
    lowerCase(payment.destination),
    relay.chain,
    payment.nonce,
    JSON.stringify({ validAfter, validBefore, signature: payment.signature }),
    toMoment(payment.validBefore),
    createdAt,
  ] as const
}

/** Checks whether a relay carries, or has carried, the same payment. */
export async function isRelayed(
  database: Connection,
  { chain, payment }: { chain: string; payment: Pick<SignedPayment, 'kind' | 'token' | 'payer' | 'nonce'> },
): Promise<boolean> {
  const row = await database.kysely
    .selectFrom('relay')
    .select('id')
    .where('chain', '=', chain)
    .where('token', '=', payment.token)
    .where('payer', '=', lowerCase(payment.payer))
    .where('kind', '=', payment.kind)
    .where('nonce', '=', payment.nonce)
    .where('state', '!=', 'failed')
    .executeTakeFirst()
  return row !== undefined
}

/** Updates a relay. @returns false when it was already complete; nothing changed. */
export async function updateRelay(
  database: Connection,
  id: string,
  to: { state: TransferState; transactionHash?: Hex; failure?: string; rejection?: Rejection | null },
  at: Date,
): Promise<boolean> {
  const rows = await database.call<{ id: string }>(
    {
      name: 'wallets_update_relay',
      text: `update relay set state = $2, transaction_hash = coalesce($3, transaction_hash), failure = $4, updated_at = $5,
          rejection = $6
        where id = $1 and state not in ('confirmed', 'failed') returning id`,
    },
    [id, to.state, to.transactionHash ?? null, to.failure ?? null, at, to.rejection ?? null],
  )
  return rows.length === 1
}

/**
 * Claims an open relay unless another process has touched it since `before`.
 * @returns whether the caller may resume it.
 */
export async function claimRelay(database: Connection, id: string, before: Date, at: Date): Promise<boolean> {
  const row = await database.kysely
    .updateTable('relay')
    .set({ updated_at: at })
    .where('id', '=', id)
    .where('updated_at', '<', before)
    .where('state', 'in', open)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Finds open relays on a chain last touched before a moment, the longest untouched first. */
export async function openRelays(
  { database, chain }: OnChain,
  { before, limit }: { before: Date; limit: number },
): Promise<Relay[]> {
  const rows = await database.kysely
    .selectFrom('relay')
    .selectAll()
    .where('chain', '=', chain.name)
    .where('state', 'in', open)
    .where('updated_at', '<', before)
    .orderBy('updated_at')
    .limit(limit)
    .execute()
  return rows.map(parseRelay)
}

export async function relaysConfirmedSince({ database, chain }: OnChain, since: Date): Promise<Relay[]> {
  const rows = await database.kysely
    .selectFrom('relay')
    .selectAll()
    .where('chain', '=', chain.name)
    .where('state', '=', 'confirmed')
    .where('updated_at', '>=', since)
    .orderBy('id')
    .execute()
  return rows.map(parseRelay)
}

/** Finds open relays to an address on a chain. */
export async function openRelaysTo({ database, chain }: OnChain, address: Address): Promise<Relay[]> {
  const rows = await database.kysely
    .selectFrom('relay')
    .selectAll()
    .where('chain', '=', chain.name)
    .where('destination', '=', lowerCase(address))
    .where('state', 'in', open)
    .execute()
  return rows.map(parseRelay)
}

/** Finds relays on a chain that may have made a payment: all with equal members that have not failed, in any transaction. */
export async function findMatchingRelays(
  { database, chain }: OnChain,
  sought: {
    readonly payer: Address
    readonly destination: Address
    readonly token: Stablecoin
    readonly units: bigint
  },
): Promise<Relay[]> {
  const rows = await database.kysely
    .selectFrom('relay')
    .selectAll()
    .where('chain', '=', chain.name)
    .where('payer', '=', sought.payer)
    .where('destination', '=', sought.destination)
    .where('token', '=', sought.token)
    .where('units', '=', sought.units)
    .where('state', '!=', 'failed')
    .execute()
  return rows.map(parseRelay)
}

/** Records the new transaction of a confirmed relay after a reorganization. */
export async function updateRelayTransaction(
  { kysely }: Connection,
  { id, transactionHash, at }: { id: string; transactionHash: Hex; at: Date },
): Promise<void> {
  await kysely
    .updateTable('relay')
    .set({ transaction_hash: transactionHash, updated_at: at })
    .where('id', '=', id)
    .where('state', '=', 'confirmed')
    .execute()
}

export async function isReleased(database: Connection, decisionId: string): Promise<boolean> {
  const row = await database.kysely
    .selectFrom('reservation')
    .select('status')
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  return row?.status === 'released'
}

export async function findRelayOfDecision(
  database: Connection,
  decisionId: string,
): Promise<Relay | undefined> {
  const row = await database.kysely
    .selectFrom('relay')
    .selectAll()
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  return row === undefined ? undefined : parseRelay(row)
}

/** Converts Unix seconds to a date, capped at the year 9999 for the database. */
function toMoment(seconds: bigint): Date {
  const latest = BigInt(Date.UTC(9999, 0, 1) / 1000)
  return new Date(Number(seconds < latest ? seconds : latest) * 1000)
}

function parseRelay(row: Selectable<RelayTable>): Relay {
  return {
    id: row.id,
    accountId: row.account_id,
    decisionId: row.decision_id,
    payment: {
      kind: row.kind,
      token: stablecoinOf(row.token),
      units: row.units,
      payer: addressOf(row.payer),
      destination: addressOf(row.destination),
      nonce: row.nonce,
      ...signedParts.parse(row.signed),
    },
    chain: row.chain,
    state: row.state,
    transactionHash: row.transaction_hash === null ? null : toHex(row.transaction_hash),
    failure: row.failure,
    rejection: row.rejection,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

function toHex(text: string): Hex {
  return `0x${text.replace(/^0x/, '')}`
}
