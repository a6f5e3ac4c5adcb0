/**
 * Wallets: an account's smart account, its balances and its transfers. May import base, ports, ledger, spending and policies.
 * Invariants: a transfer's row is written before the chain hears of it; its money moves in the ledger exactly once, whatever
 * fails in between; what is not known stays held.
 */

import type { Selectable } from 'kysely'
import { type Stablecoin, stablecoins } from '../money.ts'
import type { Address, Hex } from '../providers/chain.ts'
import type { Connection } from '../storage/database.ts'
import type { TransferTable } from '../storage/schema.ts'

/** Where a transfer stands. */
export type TransferState = 'reserved' | 'submitted' | 'settlement_pending' | 'confirmed' | 'failed'

/** A transfer as it is stored. */
export interface Transfer {
  readonly id: string
  readonly accountId: string
  readonly decisionId: string
  readonly token: Stablecoin
  readonly units: bigint
  /** Lower case. */
  readonly destination: Address
  readonly chain: string
  readonly state: TransferState
  readonly transactionHash: Hex | null
}

/** The wallet address of an account, or undefined where it has none. */
export async function findWallet(database: Connection, accountId: string): Promise<Address | undefined> {
  const row = await database.kysely
    .selectFrom('wallet')
    .select('address')
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row === undefined ? undefined : addressOf(row.address)
}

/** The account whose wallet has this address, on our own books. */
export async function findWalletOwner(database: Connection, address: Address): Promise<string | undefined> {
  const row = await database.kysely
    .selectFrom('wallet')
    .select('account_id')
    .where('address', '=', lowerCase(address))
    .executeTakeFirst()
  return row?.account_id
}

/** Remembers an account's wallet. */
export async function insertWallet(
  database: Connection,
  wallet: { accountId: string; address: Address; chain: string; at: Date },
): Promise<void> {
  await database.kysely
    .insertInto('wallet')
    .values({
      account_id: wallet.accountId,
      address: lowerCase(wallet.address),
      chain: wallet.chain,
      created_at: wallet.at,
    })
    .execute()
}

/** Every wallet with its owner. */
export async function allWallets(database: Connection): Promise<{ accountId: string; address: Address }[]> {
  const rows = await database.kysely.selectFrom('wallet').select(['account_id', 'address']).execute()
  return rows.map((row) => ({ accountId: row.account_id, address: addressOf(row.address) }))
}

/**
 * Writes a transfer's row, if and only if its money is still reserved: a job that has given the money back in the meantime
 * and this insert cannot both win. @returns false where the reservation is gone.
 */
export async function insertTransfer(
  database: Connection,
  transfer: Omit<Transfer, 'state' | 'transactionHash'>,
  at: Date,
): Promise<boolean> {
  const rows = await database.call<{ id: string }>(
    {
      name: 'wallets_insert_transfer',
      text: `insert into transfer (id, account_id, decision_id, token, units, destination, chain, state, created_at, updated_at)
        select $1, $2, r.decision_id, $4, $5, $6, $7, 'reserved', $8, $8
        from (select decision_id from reservation where decision_id = $3 and status = 'reserved' for update) r
        on conflict do nothing returning id`,
    },
    [
      transfer.id,
      transfer.accountId,
      transfer.decisionId,
      transfer.token,
      transfer.units,
      transfer.destination,
      transfer.chain,
      at,
    ],
  )
  return rows.length === 1
}

/** Moves a transfer on. A transfer that has ended never moves again. */
export async function updateTransfer(
  database: Connection,
  id: string,
  to: { state: TransferState; transactionHash?: Hex; failure?: string },
  at: Date,
): Promise<void> {
  await database.call(
    {
      name: 'wallets_update_transfer',
      text: `update transfer set state = $2, transaction_hash = coalesce($3, transaction_hash), failure = $4, updated_at = $5
        where id = $1 and state not in ('confirmed', 'failed')`,
    },
    [id, to.state, to.transactionHash ?? null, to.failure ?? null, at],
  )
}

/** Touches an open transfer, unless somebody else has since `before`. @returns whether it is now the caller's to resume. */
export async function claimTransfer(
  database: Connection,
  id: string,
  before: Date,
  at: Date,
): Promise<boolean> {
  const rows = await database.call<{ id: string }>(
    {
      name: 'wallets_claim_transfer',
      text: `update transfer set updated_at = $3
        where id = $1 and updated_at < $2 and state not in ('confirmed', 'failed') returning id`,
    },
    [id, before, at],
  )
  return rows.length === 1
}

/** Transfers that have not ended and were last touched before a moment, the longest untouched first. */
export async function openTransfers(database: Connection, before: Date, limit: number): Promise<Transfer[]> {
  const rows = await database.kysely
    .selectFrom('transfer')
    .selectAll()
    .where('state', 'in', ['reserved', 'submitted', 'settlement_pending'])
    .where('updated_at', '<', before)
    .orderBy('updated_at')
    .limit(limit)
    .execute()
  return rows.map(transferOf)
}

/** The transfer of a decision, or undefined where it has none (yet). */
export async function findTransferOfDecision(
  database: Connection,
  decisionId: string,
): Promise<(Transfer & { failure: string | null }) | undefined> {
  const row = await database.kysely
    .selectFrom('transfer')
    .selectAll()
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  return row === undefined ? undefined : { ...transferOf(row), failure: row.failure }
}

function transferOf(row: Selectable<TransferTable>): Transfer {
  return {
    id: row.id,
    accountId: row.account_id,
    decisionId: row.decision_id,
    token: stablecoinOf(row.token),
    units: row.units,
    destination: addressOf(row.destination),
    chain: row.chain,
    state: row.state,
    transactionHash: row.transaction_hash === null ? null : hexOf(row.transaction_hash),
  }
}

function hexOf(text: string): Hex {
  return `0x${text.replace(/^0x/, '')}`
}

function addressOf(text: string): Address {
  return hexOf(text)
}

function stablecoinOf(text: string): Stablecoin {
  const known = stablecoins.find((symbol) => symbol === text)
  if (known === undefined) throw new Error(`a transfer of ${text} is stored, which is no stablecoin of ours`)
  return known
}

/** An address in the form that is stored and compared. */
export function lowerCase(address: Address): Address {
  return `0x${address.slice(2).toLowerCase()}`
}
