/**
 * Wallets: an account's smart account, its balances and its transfers. May import base, ports, ledger, spending and
 * policies. Invariants: a transfer's row is written before its submission to the chain; its money moves in the ledger
 * exactly once, whatever fails in between; money with an unknown outcome stays held.
 */

import type { Selectable } from 'kysely'
import { z } from 'zod'
import { transferText } from '../../books/spending/request-text.ts'
import type { TransferRow } from '../../books/spending/spend-request.ts'
import type { Json } from '../../core/base/json.ts'
import { type Stablecoin, stablecoins } from '../../core/money/money.ts'
import type {
  Address,
  Authorization,
  AuthorizedOperation,
  Hex,
  SwapRoute,
  Wallet,
  WalletCall,
  WalletOwner,
} from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import type { TransferTable } from '../../storage/schema.ts'
import { authorization, walletOwner } from './signing/wallet-owner.ts'
import { parseRoute } from './transfers/swap-route.ts'

export type TransferState =
  | 'funding'
  | 'reserved'
  | 'submitted'
  | 'settlement_pending'
  | 'confirmed'
  | 'failed'

/** Kind of signer as shown to callers; `sandbox` is the sandbox's own key. */
export type Signer = 'sandbox' | 'passkey' | 'eoa' | 'agent'

/** A transfer as stored. @property validUntil the chain does not execute it after this. */
export interface Transfer {
  readonly id: string
  readonly wallet: Wallet
  readonly authorization: Authorization
  /** Route of a swap, which the destination executes; absent: a plain payment. */
  readonly route?: SwapRoute
  readonly signer: Signer
  readonly validUntil: Date
  readonly decisionId: string
  /** Present: it burns what another transfer of the decision waits for, and has a reservation of this name. */
  readonly fundingId?: string
  readonly token: Stablecoin
  readonly units: bigint
  /** Lower case. */
  readonly destination: Address
  readonly chain: string
  readonly state: TransferState
  readonly transactionHash: Hex | null
  /** Authentication code by the process that wrote the row: transfer-mac.ts. */
  readonly mac: string | null
}

/** Failure code of a failed transfer, repeated to later calls. */
export type TransferFailureCode = 'provider_unavailable' | 'signature_rejected'

/** The database, and the chain whose rows are read. */
export interface OnChain {
  readonly database: Connection
  readonly chain: { readonly name: string }
}

/** Maximum number of addresses per query. */
const MAX_ADDRESSES = 1_000

/** Builds the chain operation of a transfer. */
export function toOperation(transfer: Transfer): AuthorizedOperation {
  const { id, wallet, validUntil, authorization } = transfer
  return { id, wallet, call: buildCall(transfer), validUntil, authorization }
}

/** Builds the call of a payment, or of a swap whose route its destination executes. */
export function buildCall({
  token,
  units,
  destination: to,
  route,
}: Pick<Transfer, 'token' | 'units' | 'destination' | 'route'>): WalletCall {
  return route === undefined
    ? { kind: 'transfer', token, to, units }
    : { kind: 'swap', token, to, units, route }
}

/**
 * The escrow of an account, see {@link Wallet.isEscrow}.
 * @param first key of the gateway that its address is computed from; null: the first owner of the deployment.
 */
export function buildEscrow(accountId: string, first: string | null): Wallet {
  const origin = openedBy(first === null ? null : toAddress(first))
  return { accountId, isEscrow: true, origin, owner: { kind: 'gateway' } }
}

/** First owner of a Safe that the gateway opens. @param first null: the first owner of the deployment. */
export function openedBy(first: Address | null): WalletOwner {
  return first === null ? { kind: 'gateway' } : { kind: 'gateway', first: lowerCase(first) }
}

/** Finds the account whose escrow has this address. */
export async function findEscrowOwner({ kysely }: Connection, address: Address): Promise<string | undefined> {
  const row = await kysely
    .selectFrom('wallet')
    .select('account_id')
    .where('escrow', '=', lowerCase(address))
    .executeTakeFirst()
  return row?.account_id
}

/** Finds the address of an account's escrow; undefined until it is first needed. */
export async function findEscrow({ kysely }: Connection, accountId: string): Promise<Address | undefined> {
  const row = await kysely
    .selectFrom('wallet')
    .select('escrow')
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row === undefined || row.escrow === null ? undefined : toAddress(row.escrow)
}

export async function findWallet(database: Connection, accountId: string): Promise<Address | undefined> {
  const row = await database.kysely
    .selectFrom('wallet')
    .select('address')
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row === undefined ? undefined : toAddress(row.address)
}

export async function findOwnedWallet(
  database: Connection,
  accountId: string,
): Promise<(Wallet & { address: Address }) | undefined> {
  const row = await database.kysely
    .selectFrom('wallet')
    .select(['address', 'origin', 'owner', 'card_cover'])
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row === undefined ? undefined : { ...parseWallet(accountId, row), address: toAddress(row.address) }
}

/** Finds the account whose wallet has this address, in our own books. */
export async function findWalletOwner(database: Connection, address: Address): Promise<string | undefined> {
  const row = await database.kysely
    .selectFrom('wallet')
    .select('account_id')
    .where('address', '=', lowerCase(address))
    .executeTakeFirst()
  return row?.account_id
}

/** Finds the accounts of the wallets at these addresses. @param addresses lower case. */
export async function findWalletsByAddress(
  { kysely }: Connection,
  addresses: readonly Address[],
): Promise<ReadonlyMap<Address, string>> {
  const found = new Map<Address, string>()
  const distinct = [...new Set(addresses)]
  for (let start = 0; start < distinct.length; start += MAX_ADDRESSES) {
    const rows = await kysely
      .selectFrom('wallet')
      .select(['account_id', 'address'])
      .where('address', 'in', distinct.slice(start, start + MAX_ADDRESSES))
      .execute()
    for (const row of rows) found.set(toAddress(row.address), row.account_id)
  }
  return found
}

export async function insertWallet(
  database: Connection,
  wallet: Wallet & { address: Address; chain: string; at: Date },
): Promise<void> {
  await database.kysely
    .insertInto('wallet')
    .values({
      account_id: wallet.accountId,
      address: lowerCase(wallet.address),
      chain: wallet.chain,
      created_at: wallet.at,
      origin: JSON.stringify(wallet.origin),
      owner: JSON.stringify(wallet.owner),
    })
    .execute()
}

/** Lists the next wallets, ordered by account id. */
export async function readWalletPage(
  database: Connection,
  after: string,
  limit: number,
): Promise<{ accountId: string; address: Address }[]> {
  const rows = await database.kysely
    .selectFrom('wallet')
    .select(['account_id', 'address'])
    .where('account_id', '>', after)
    .orderBy('account_id')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ accountId: row.account_id, address: toAddress(row.address) }))
}

export async function allWallets(database: Connection): Promise<{ accountId: string; address: Address }[]> {
  const rows = await database.kysely.selectFrom('wallet').select(['account_id', 'address']).execute()
  return rows.map((row) => ({ accountId: row.account_id, address: toAddress(row.address) }))
}

/**
 * Inserts a transfer's row if its money is still reserved, so that this insert and a job that releases the money
 * exclude each other. Uses up the intent.
 * @returns the paying wallet, or undefined when the reservation has ended or the intent was already used.
 */
export async function insertTransfer(
  database: Connection,
  { accountId, decisionId, row }: { accountId: string; decisionId: string; row: TransferRow },
): Promise<Wallet | undefined> {
  const [inserted] = await database.call<{ written: Json }>(
    {
      name: 'wallets_insert_transfer',
      text: `select t.written
        from (select decision_id from reservation where decision_id = $2 and status = 'reserved' for update) r
          cross join lateral transfer_insert(array[$1::text], array[r.decision_id], array[$3::jsonb]) t`,
    },
    [accountId, decisionId, transferText(row)],
  )
  const written = inserted?.written ?? null
  return row.payer === 'escrow' ? escrowWritten(accountId, written) : walletWritten(accountId, written)
}

const writtenWallet = z.object({ origin: z.unknown(), owner: z.unknown(), card_cover: z.string() })
const writtenEscrow = z.object({ escrow_first: z.string().nullable() })

/** Reads the wallet that `transfer_insert` returned; undefined where it wrote nothing. */
export function walletWritten(accountId: string, written: Json | null): Wallet | undefined {
  if (written === null) return undefined
  const { card_cover, ...owners } = writtenWallet.parse(written)
  return parseWallet(accountId, { ...owners, card_cover: BigInt(card_cover) })
}

function escrowWritten(accountId: string, written: Json | null): Wallet | undefined {
  return written === null ? undefined : buildEscrow(accountId, writtenEscrow.parse(written).escrow_first)
}

/** Updates a transfer. A completed transfer never changes again. */
export async function updateTransfer(
  database: Connection,
  id: string,
  to: { state: TransferState; transactionHash?: Hex; failure?: string; code?: TransferFailureCode },
  at: Date,
): Promise<void> {
  await database.call(
    {
      name: 'wallets_update_transfer',
      text: `update transfer set state = $2, transaction_hash = coalesce($3, transaction_hash), failure = $4, updated_at = $5, failure_code = $6
        where id = $1 and state not in ('confirmed', 'failed')`,
    },
    [id, to.state, to.transactionHash ?? null, to.failure ?? null, at, to.code ?? null],
  )
}

/**
 * Claims an open transfer unless another process has touched it since `before`.
 * @returns whether the caller may resume it.
 */
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

/** Gives a claim back, so that another process may take the transfer at once. */
export async function leaveTransfer(
  { kysely }: Connection,
  id: string,
  { claimedAt, at }: { claimedAt: Date; at: Date },
): Promise<void> {
  await kysely
    .updateTable('transfer')
    .set({ updated_at: at })
    .where('id', '=', id)
    .where('updated_at', '=', claimedAt)
    .execute()
}

const transferAndWallet = (database: Connection) =>
  database.kysely
    .selectFrom('transfer')
    .innerJoin('wallet', 'wallet.account_id', 'transfer.account_id')
    .selectAll('transfer')
    .select(['wallet.origin', 'wallet.owner', 'wallet.card_cover', 'wallet.escrow_first'])

/** Finds open transfers on a chain last touched before a moment, the longest untouched first. */
export async function openTransfers(
  { database, chain }: OnChain,
  { before, limit }: { before: Date; limit: number },
): Promise<Transfer[]> {
  const rows = await transferAndWallet(database)
    .where('transfer.chain', '=', chain.name)
    .where('state', 'in', ['reserved', 'submitted', 'settlement_pending'])
    .where('updated_at', '<', before)
    .orderBy('updated_at')
    .limit(limit)
    .execute()
  return rows.map(parseTransfer)
}

export async function transfersConfirmedSince(
  { database, chain }: OnChain,
  since: Date,
): Promise<Transfer[]> {
  const rows = await transferAndWallet(database)
    .where('transfer.chain', '=', chain.name)
    .where('state', '=', 'confirmed')
    .where('updated_at', '>=', since)
    .orderBy('transfer.id')
    .execute()
  return rows.map(parseTransfer)
}

/** Finds open transfers from or to a wallet on a chain. */
export async function readOpenTransfers(
  { database, chain }: OnChain,
  { accountId, address }: { accountId: string; address: Address },
): Promise<Transfer[]> {
  const rows = await transferAndWallet(database)
    .where('transfer.chain', '=', chain.name)
    .where('state', 'in', ['reserved', 'submitted', 'settlement_pending'])
    .where(({ eb, or }) =>
      or([eb('transfer.account_id', '=', accountId), eb('destination', '=', lowerCase(address))]),
    )
    .execute()
  return rows.map(parseTransfer)
}

/** Finds transfers on a chain that may have made a payment: those with equal members that have not failed. */
export async function findMatchingTransfers(
  { database, chain }: OnChain,
  sought: {
    readonly accountId: string
    readonly destination: Address
    readonly token: Stablecoin
    readonly units: bigint
    /** Only transfers that are open, or confirmed in this transaction; `others`: only those confirmed in another one. */
    readonly transaction: Hex
    readonly others: boolean
  },
): Promise<Transfer[]> {
  const query = transferAndWallet(database)
    .where('transfer.chain', '=', chain.name)
    .where('transfer.account_id', '=', sought.accountId)
    .where('destination', '=', sought.destination)
    .where('token', '=', sought.token)
    .where('units', '=', sought.units)
  const rows = await (sought.others
    ? query.where('state', '=', 'confirmed').where('transaction_hash', '!=', sought.transaction)
    : query.where((where) =>
        where.or([
          where('state', 'in', ['reserved', 'submitted', 'settlement_pending']),
          where.and([where('state', '=', 'confirmed'), where('transaction_hash', '=', sought.transaction)]),
        ]),
      )
  ).execute()
  return rows.map(parseTransfer)
}

/** Finds an account's transfers to the swap desk that are open, or confirmed in a transaction. */
export async function findSwapTransfers(
  { database, chain }: OnChain,
  { accountId, transaction }: { readonly accountId: string; readonly transaction: Hex },
): Promise<Transfer[]> {
  const rows = await transferAndWallet(database)
    .where('transfer.chain', '=', chain.name)
    .where('transfer.account_id', '=', accountId)
    .where('route', 'is not', null)
    .where((where) =>
      where.or([
        where('state', 'in', ['reserved', 'submitted', 'settlement_pending']),
        where('transaction_hash', '=', transaction),
      ]),
    )
    .execute()
  return rows.map(parseTransfer)
}

/** Records the new transaction of a confirmed transfer after a reorganization. */
export async function updateTransferTransaction(
  { kysely }: Connection,
  { id, transactionHash, at }: { id: string; transactionHash: Hex; at: Date },
): Promise<void> {
  await kysely
    .updateTable('transfer')
    .set({ transaction_hash: transactionHash, updated_at: at })
    .where('id', '=', id)
    .where('state', '=', 'confirmed')
    .execute()
}

export async function findTransferOfDecision(
  database: Connection,
  decisionId: string,
): Promise<(Transfer & { failure: string | null; failureCode: TransferFailureCode | null }) | undefined> {
  const row = await transferAndWallet(database)
    .where('decision_id', '=', decisionId)
    .where('funding_id', 'is', null)
    .executeTakeFirst()
  return row === undefined
    ? undefined
    : { ...parseTransfer(row), failure: row.failure, failureCode: row.failure_code }
}

/** Finds the transfer that burns what a payment waits for. */
export async function findTransferOfFunding(
  database: Connection,
  fundingId: string,
): Promise<(Transfer & { failure: string | null; failureCode: TransferFailureCode | null }) | undefined> {
  const row = await transferAndWallet(database).where('funding_id', '=', fundingId).executeTakeFirst()
  return row === undefined
    ? undefined
    : { ...parseTransfer(row), failure: row.failure, failureCode: row.failure_code }
}

function parseTransfer(
  row: Selectable<TransferTable> & WalletColumns & { readonly escrow_first: string | null },
): Transfer {
  const route = parseRoute(row.route)
  return {
    id: row.id,
    wallet:
      row.payer === 'escrow'
        ? buildEscrow(row.account_id, row.escrow_first)
        : parseWallet(row.account_id, row),
    authorization: authorization.parse(row.authorized),
    ...(route === null ? {} : { route }),
    ...(row.funding_id === null ? {} : { fundingId: row.funding_id }),
    signer: row.signer,
    validUntil: row.valid_until,
    decisionId: row.decision_id,
    token: parseStablecoin(row.token),
    units: row.units,
    destination: toAddress(row.destination),
    chain: row.chain,
    state: row.state,
    transactionHash: row.transaction_hash === null ? null : toHex(row.transaction_hash),
    mac: row.mac,
  }
}

/** Columns of a wallet's row that the chain adapter needs. */
export interface WalletColumns {
  readonly origin: unknown
  readonly owner: unknown
  readonly card_cover: bigint
}

export function parseWallet(
  accountId: string,
  { origin, owner, card_cover: cardCover }: WalletColumns,
): Wallet {
  return { accountId, origin: walletOwner.parse(origin), owner: walletOwner.parse(owner), cardCover }
}

function toHex(text: string): Hex {
  return `0x${text.replace(/^0x/, '')}`
}

export function toAddress(text: string): Address {
  return toHex(text)
}

/** Parses a stored stablecoin symbol. @throws Error for an unknown symbol. */
export function parseStablecoin(text: string): Stablecoin {
  const known = stablecoins.find((symbol) => symbol === text)
  if (known === undefined) throw new Error(`the stored symbol ${text} is not a known stablecoin`)
  return known
}

/** Normalizes an address to the lower-case form that is stored and compared. */
export function lowerCase(address: Address): Address {
  return `0x${address.slice(2).toLowerCase()}`
}
