/** Purchases and purses in the database. */

import type { Selectable } from 'kysely'
import { type RawBuilder, sql } from 'kysely'
import { z } from 'zod'
import type { SignedPurchase } from '../../books/evidence/purchase-outcome.ts'
import { pursePlace } from '../../books/ledger/accounts.ts'
import type { Clock } from '../../core/base/clock.ts'
import { toJson } from '../../core/base/json.ts'
import type { Log } from '../../core/base/log.ts'
import { cutPage, type Page } from '../../core/base/page.ts'
import type { AccountPrincipal } from '../../core/base/principal.ts'
import { keyedHash } from '../../core/base/seal.ts'
import { timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'
import { chainFacts, chainNames } from '../../core/money/chains.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import { type EscrowPayment, hashEscrowPayment } from '../../providers/payment-escrow.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import type { PurchaseTable } from '../../storage/schema.ts'
import { buildEscrowPayment } from './escrow.ts'
import { type PayableAsset, type PurchaseTerms, payableAssets, protocols } from './terms.ts'

export type Purchase = Selectable<PurchaseTable>

export interface Purse {
  readonly id: string
  readonly address: Address
  /** Moved to the purse at a time, in smallest units of an asset; 0n: only what is needed. */
  readonly chunk: bigint
}

/** 1 USDC, EURC or PYUSD. */
export const DEFAULT_CHUNK = 1_000_000n

export async function findPurse({ kysely }: Connection, id: string): Promise<Purse | undefined> {
  const row = await kysely.selectFrom('purse').selectAll().where('id', '=', id).executeTakeFirst()
  return row === undefined ? undefined : { id, address: toHex(row.address), chunk: row.chunk }
}

/** A purse to open. @property home the wallet of its account. @property chain absent: the wallet's. */
export interface NewPurse extends Purse {
  readonly chain?: string
  readonly accountId: string
  readonly home: Address
  readonly at: Date
}

/** Authenticates where the money of a purse may return to: who only writes to the database cannot redirect it. */
export function purseMac(
  dataKey: Uint8Array,
  { id, accountId, home }: Pick<NewPurse, 'id' | 'accountId' | 'home'>,
): string {
  return keyedHash(dataKey, 'purse home', `${id} ${accountId} ${home.toLowerCase()}`)
}

/** Opens a purse unless it exists. */
export async function openPurse(
  { database: { kysely }, dataKey }: { database: Connection; dataKey: Uint8Array },
  purse: NewPurse,
): Promise<void> {
  const { id, accountId, address, home, chunk, chain = null, at } = purse
  await kysely
    .insertInto('purse')
    .values({
      id,
      account_id: accountId,
      address: address.toLowerCase(),
      home: home.toLowerCase(),
      mac: purseMac(dataKey, purse),
      chunk,
      chain,
      created_at: at,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Condition on a purse's row: its money is on a chain. @param table name of the row in its query. */
export function isPurseOn(table: string, chain: string): RawBuilder<boolean> {
  const purse = sql.table(table)
  return sql<boolean>`coalesce(${purse}.chain, (select w.chain from wallet w where w.account_id = ${purse}.account_id)) = ${chain}`
}

/** Sets the chunk of a purse, which is opened if it does not exist. */
export async function setChunk(
  parts: { database: Connection; dataKey: Uint8Array },
  purse: NewPurse,
): Promise<void> {
  await openPurse(parts, purse)
  await parts.database.kysely
    .updateTable('purse')
    .set({ chunk: purse.chunk })
    .where('id', '=', purse.id)
    .execute()
}

/** A signed authorization to keep. @property validBefore null for a voucher. @property credential the header that pays, sealed. */
export interface SignedCredential {
  readonly validBefore: Date | null
  readonly sinceBlock: bigint
  readonly credential: Uint8Array
  readonly credentialHash: string
  /** Where its operator's money is kept, and the nonce that the terms prescribe: of a payment by `auth-capture`. */
  readonly escrow?: { readonly store: Address; readonly nonce: Hex }
  /** Of a voucher: the amount of all purchases by its channel so far, in smallest units. */
  readonly cumulative?: bigint
}

export interface NewPurchase extends Omit<PurchaseTerms, 'travelRuleId' | 'seconds' | 'sinceBlock'> {
  readonly accountId: string
  readonly keyId: string | null
  readonly decisionId: string
  readonly chain: string
  readonly payer: Address
  readonly nonce: Hex
  readonly busyUntil: Date
  readonly at: Date
  /** Its authorization, if its money is in the purse; null: it is signed later. */
  readonly signed: SignedCredential | null
}

const insertion: Statement = {
  name: 'purchase_insert',
  text: 'select verdict from purchase_insert($1, $2)',
}

/**
 * Writes a purchase while its money is reserved, so that this and a job that releases the money exclude each other.
 * @returns `signed`: its authorization is kept, and may leave the process. `reserved`: none is kept: its money is not in the purse,
 * or its key or account was stopped. `none`: the reservation has ended, another call wrote the row, or the nonce was used before.
 */
export async function insertPurchase(
  connection: Connection,
  purchase: NewPurchase,
): Promise<'signed' | 'reserved' | 'none'> {
  const { verdict } = await callForRow<{ verdict: 'signed' | 'reserved' | 'none' }>(connection, insertion, [
    JSON.stringify(toRow(purchase)),
    purchase.signed?.credential ?? null,
  ])
  return verdict
}

/** The row of a purchase as the reserve writes it, with its authorization. */
export function purchaseRowText(purchase: NewPurchase): string {
  const { signed } = purchase
  const credential = signed === null ? null : Buffer.from(signed.credential).toString('base64')
  return JSON.stringify({ ...toRow(purchase), credential })
}

/** The row of a purchase as it is once the reserve wrote it with its authorization. */
export function viewSigned(purchase: NewPurchase): Purchase {
  const { signed, at } = purchase
  if (signed === null) throw new Error(`${purchase.purchaseId} is not signed`)
  return {
    ...toRow(purchase),
    ...{ state: 'signed', is_canceled: false, attempts: 0, busy_until: purchase.busyUntil },
    ...{ created_at: at, updated_at: at, units: BigInt(purchase.units), offer: purchase.offer },
    ...{ valid_before: signed.validBefore, since_block: signed.sinceBlock, credential: signed.credential },
    cumulative: signed.cumulative ?? null,
    ...{ transaction_hash: null, charged: null, reversed_at: null, failure_code: null, failure: null },
    ...{ delivered_at: null, delivered: null, delivered_hash: null },
    ...{ escrow_store: null, escrow_refundable: null, escrow_look_at: null },
  }
}

function toRow(purchase: NewPurchase) {
  const { signed } = purchase
  return {
    id: purchase.purchaseId,
    account_id: purchase.accountId,
    key_id: purchase.keyId,
    decision_id: purchase.decisionId,
    purse_id: purchase.purseId,
    url: purchase.url,
    origin: purchase.origin,
    seller: purchase.seller,
    resource: purchase.resource,
    method: purchase.method,
    request_hash: purchase.requestHash,
    purpose: purchase.purpose,
    protocol: purchase.protocol,
    scheme: purchase.scheme,
    chain: purchase.chain,
    network: purchase.network,
    asset: purchase.asset,
    token: purchase.token,
    payer: purchase.payer.toLowerCase(),
    pay_to: purchase.payTo,
    units: purchase.units,
    nonce: purchase.nonce.toLowerCase(),
    // As text: a `json` column keeps what the seller wrote.
    offer: JSON.stringify(purchase.offer),
    busy_until: purchase.busyUntil.toISOString(),
    created_at: purchase.at.toISOString(),
    valid_before: signed?.validBefore?.toISOString() ?? null,
    since_block: signed?.sinceBlock.toString() ?? null,
    credential_hash: signed?.credentialHash ?? null,
    cumulative: signed?.cumulative?.toString() ?? null,
  }
}

/** Checks whether another purchase has the nonce: it belongs to one for ever. */
export async function isNonceTaken(
  { kysely }: Connection,
  { payer, token, nonce }: { payer: Address; token: Address; nonce: Hex },
): Promise<boolean> {
  const row = await kysely
    .selectFrom('purchase')
    .select('id')
    .where('payer', '=', payer.toLowerCase())
    .where('token', '=', token)
    .where('nonce', '=', nonce.toLowerCase())
    .executeTakeFirst()
  return row !== undefined
}

/** Reads how much money of a purchase is held, and whether it has reached its purse, or was given back. */
export async function whereIsMoney(
  { kysely }: Connection,
  { decision_id: decisionId, purse_id: purseId }: Pick<Purchase, 'decision_id' | 'purse_id'>,
): Promise<{ readonly place: 'purse' | 'wallet' | 'released'; readonly units: bigint }> {
  const row = await kysely
    .selectFrom('reservation')
    .select(['held', 'status', 'units'])
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  if (row?.status !== 'reserved') return { place: 'released', units: 0n }
  const place = row.held?.split(':')[1] === pursePlace(purseId) ? 'purse' : 'wallet'
  return { place, units: row.units }
}

/**
 * Keeps the signed authorization before it is sent. @returns false when the purchase was given up meanwhile, or its key or account
 * was stopped: then the authorization must not leave the process.
 */
export async function keepSigned(
  { kysely }: Connection,
  {
    id,
    validBefore,
    sinceBlock,
    credential,
    credentialHash,
    escrow,
    at,
  }: SignedCredential & { readonly id: string; readonly at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await kysely
    .updateTable('purchase')
    .set({
      state: 'signed',
      valid_before: validBefore,
      since_block: sinceBlock,
      credential,
      credential_hash: credentialHash,
      updated_at: at,
      ...(escrow === undefined ? {} : { nonce: escrow.nonce, escrow_store: escrow.store }),
    })
    .where('id', '=', id)
    .where('state', '=', 'reserved')
    .where('is_canceled', '=', false)
    .where(
      sql<boolean>`key_is_active(key_id)
        and not exists (select from account a where a.id = account_id and a.status = 'locked')`,
    )
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/**
 * Keeps what the seller delivered after a number of further paid requests. @param isWaived the seller takes nothing for it, so that the
 * payment is to be cancelled. @returns false if there was a delivery: the first stays.
 */
export async function keepDelivered(
  { kysely }: Connection,
  {
    id,
    delivered,
    hash,
    attempts,
    isWaived = false,
    at,
  }: { id: string; delivered: Uint8Array; hash: string; attempts: number; isWaived?: boolean; at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await kysely
    .updateTable('purchase')
    .set((eb) => ({
      delivered_at: at,
      delivered,
      delivered_hash: hash,
      attempts: eb('attempts', '+', attempts),
      // It may be settled meanwhile.
      is_canceled: isWaived ? sql<boolean>`state = 'signed'` : eb.ref('is_canceled'),
      updated_at: at,
    }))
    .where('id', '=', id)
    .where('delivered_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Counts paid requests that brought nothing. */
export async function countAttempts(
  { kysely }: Connection,
  { id, attempts }: { id: string; attempts: number },
): Promise<void> {
  await kysely
    .updateTable('purchase')
    .set((eb) => ({ attempts: eb('attempts', '+', attempts) }))
    .where('id', '=', id)
    .execute()
}

/** Notes why nothing came. Of an unpaid purchase, the authorization is to be cancelled, or none is to be signed. */
export async function markUndelivered(
  { kysely }: Connection,
  { id, code, failure, at }: { id: string; code: string; failure: string; at: Date },
): Promise<void> {
  await kysely
    .updateTable('purchase')
    .set({
      is_canceled: sql<boolean>`state <> 'settled'`,
      failure_code: code,
      failure,
      updated_at: at,
    })
    .where('id', '=', id)
    .where('state', '<>', 'failed')
    .where('delivered_at', 'is', null)
    .execute()
}

export async function findPurchase(
  { kysely }: Connection,
  by: { readonly id: string } | { readonly decisionId: string },
): Promise<Purchase | undefined> {
  const query = kysely.selectFrom('purchase').selectAll()
  return (
    'id' in by ? query.where('id', '=', by.id) : query.where('decision_id', '=', by.decisionId)
  ).executeTakeFirst()
}

/** A key sees its own purchases, a person all of the account. */
export interface PurchaseOwner {
  readonly accountId: string
  readonly keyId: string | null
}

/** Reads a purchase as its caller may see it. @throws Failure `not_found`. */
export async function readOwnPurchase(
  { kysely }: Connection,
  caller: AccountPrincipal,
  id: string,
): Promise<Purchase> {
  const query = kysely
    .selectFrom('purchase')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', caller.account.id)
  const purchase = await (caller.kind === 'key'
    ? query.where('key_id', '=', caller.key.id)
    : query
  ).executeTakeFirst()
  if (purchase === undefined) throw new Failure('not_found', 'You have no such purchase.')
  return purchase
}

export async function listPurchases(
  { kysely }: Connection,
  { accountId, keyId, page }: PurchaseOwner & { page: Page },
): Promise<{ rows: readonly Purchase[]; nextCursor: string | null }> {
  let query = kysely
    .selectFrom('purchase')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
  if (keyId !== null) query = query.where('key_id', '=', keyId)
  if (page.after !== null) query = query.where('id', '<', page.after)
  return cutPage(await query.execute(), page)
}

/**
 * Claims a purchase until a moment, unless another process works on it.
 * @returns the purchase as it is now; undefined when it is claimed or has ended otherwise.
 */
export async function claimPurchase(
  { kysely }: Connection,
  { id, until, at }: { id: string; until: Date; at: Date },
): Promise<Purchase | undefined> {
  return kysely
    .updateTable('purchase')
    .set({ busy_until: until })
    .where('id', '=', id)
    .where('busy_until', '<=', at)
    .returningAll()
    .executeTakeFirst()
}

/** A claim outlives its process by this: less than payments are valid, so that another process can present them again. */
export const BUSY_MS = 10_000
const RENEWAL_MS = 3_000

/** Works on a claimed purchase: its claim is renewed meanwhile, and ends with the work. */
export async function whileClaimed<Result extends Purchase | null>(
  { database, clock, log }: { database: Connection; clock: Clock; log: Log },
  id: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const setBusy = async (until: number) => {
    const busyUntil = new Date(until)
    await database.kysely
      .updateTable('purchase')
      .set({ busy_until: busyUntil })
      .where('id', '=', id)
      .execute()
  }
  const endRenewals = timers.every(
    RENEWAL_MS,
    () =>
      void setBusy(clock().getTime() + BUSY_MS).catch((err: unknown) =>
        log.warn({ err, purchaseId: id }, 'the claim of a purchase could not be renewed'),
      ),
  )
  let result: Result | undefined
  try {
    result = await work()
    return result
  } finally {
    endRenewals()
    // Nobody claims a purchase that is over.
    if (result === undefined || result === null || !isOver(result)) await setBusy(clock().getTime())
  }
}

/** How long a paid purchase without an answer is asked for again. */
const REPEAT_MS = 24 * 60 * 60_000

/** Last moment at which a repeated call may still bring what was bought; null once it came, or the purchase has failed. */
export function deliverableUntil({
  state,
  delivered_at: deliveredAt,
  is_canceled: isCanceled,
  valid_before: validBefore,
  created_at: createdAt,
}: Purchase): Date | null {
  if (deliveredAt !== null || state === 'failed') return null
  if (state === 'settled') return new Date(createdAt.getTime() + REPEAT_MS)
  return isCanceled ? null : validBefore
}

/** Nothing is left to do: it is unpaid for ever, or paid and delivered. */
export function isOver({ state, delivered_at: deliveredAt }: Purchase): boolean {
  return state === 'failed' || (state === 'settled' && deliveredAt !== null)
}

/**
 * Finds unclaimed purchases on a chain without a final outcome. @param before only unsigned purchases that began earlier are found,
 * because a repeated call may still continue the others.
 */
export async function openPurchases(
  { kysely }: Connection,
  { chain, at, before, limit }: { chain: string; at: Date; before: Date; limit: number },
): Promise<string[]> {
  const rows = await kysely
    .selectFrom('purchase')
    .select('id')
    .where('state', 'in', ['reserved', 'signed'])
    .where('chain', '=', chain)
    // A voucher that is out is ended by the next one of its channel, or with its channel.
    .where((eb) => eb.or([eb('scheme', '<>', 'batch-settlement'), eb('state', '=', 'reserved')]))
    .where((eb) =>
      eb.or([eb('state', '=', 'signed'), eb('is_canceled', '=', true), eb('created_at', '<', before)]),
    )
    // What is in escrow may be there for weeks.
    .where((eb) => eb.or([eb('escrow_look_at', 'is', null), eb('escrow_look_at', '<=', at)]))
    .where('busy_until', '<=', at)
    .orderBy('busy_until')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** Locks a reservation, so that neither a purchase nor a transfer is written for it meanwhile. */
export async function lockReservation({ kysely }: Connection, decisionId: string): Promise<void> {
  await kysely
    .selectFrom('reservation')
    .select('decision_id')
    .where('decision_id', '=', decisionId)
    .forUpdate()
    .execute()
}

/** Deletes what was delivered, and the credentials of what was paid, a day after. The hashes stay. */
export async function deleteOldDeliveries({ kysely }: Connection, before: Date): Promise<void> {
  await kysely
    .updateTable('purchase')
    .set({ delivered: null, credential: null })
    .where('delivered', 'is not', null)
    .where('delivered_at', '<', before)
    .where('state', 'in', ['settled', 'failed'])
    .execute()
  // Those of an answer that was never whole too.
  await kysely.deleteFrom('purchase_answer').where('written_at', '<', before).execute()
}

/**
 * Erases what sellers delivered to an account, and what was sent to them by approved calls that have ended. The URL, the purpose and
 * the hashes stay: decisions and evidence are signed over them.
 */
export async function erasePurchases({ kysely }: Connection, accountId: string): Promise<void> {
  await kysely
    .updateTable('purchase')
    .set({ delivered: null })
    .where('account_id', '=', accountId)
    .where('delivered', 'is not', null)
    .execute()
  await kysely
    .deleteFrom('purchase_answer')
    .where('purchase_id', 'in', (of) =>
      of.selectFrom('purchase').select('id').where('account_id', '=', accountId),
    )
    .execute()
  await kysely
    .updateTable('approval')
    .set({ input: sql<string>`(input::jsonb - 'headers' - 'body' - 'bodyBase64')::text` })
    .where('account_id', '=', accountId)
    .where('operation', '=', 'purchases.buy')
    .where(({ eb, or }) =>
      or([
        eb('answer', 'is not', null),
        eb('problem', 'is not', null),
        eb('status', 'in', ['rejected', 'withdrawn']),
      ]),
    )
    .execute()
}

/** Facts that the account remembers of a seller. Prices are in smallest units. */
export interface KnownSeller {
  readonly payees: readonly string[]
  readonly purchases: number
  /** Of the latest purchase from the seller. */
  readonly last: { readonly payTo: string; readonly price: string; readonly asset: string } | null
  /** Of the latest purchase of the same resource in the same asset. */
  readonly price: string | null
}

const known: Statement = {
  name: 'seller_known',
  text: 'select payees, purchases, last, price from seller_known($1, $2, $3, $4)',
}

const lastPurchase = z.object({ payTo: z.string(), price: z.string(), asset: z.string() })

export async function findKnownSeller(
  connection: Connection,
  {
    accountId,
    seller,
    resource,
    asset,
  }: { accountId: string; seller: string; resource: string; asset: PayableAsset | null },
): Promise<KnownSeller> {
  const { payees, purchases, last, price } = await callForRow<{
    payees: string[]
    purchases: bigint
    last: unknown
    price: bigint | null
  }>(connection, known, [accountId, seller, resource, asset])
  return {
    payees,
    purchases: Number(purchases),
    last: last === null ? null : lastPurchase.parse(last),
    price: price?.toString() ?? null,
  }
}

/** What was paid of a purchase, or reserved for it. @returns smallest units. */
export function chargedUnits({ charged, units }: Pick<Purchase, 'charged' | 'units'>): bigint {
  return charged ?? units
}

const stored = z.object({ asset: z.enum(payableAssets), protocol: z.enum(protocols) })

/** Asset and protocol of a stored purchase. */
export function parseKind({ asset, protocol }: Purchase): z.output<typeof stored> {
  return stored.parse({ asset, protocol })
}

/** The payment of a signed purchase by `auth-capture`, as the escrow keeps it. */
export function escrowPayment(purchase: Purchase): EscrowPayment {
  const { id: purchaseId, offer, units, valid_before: validBefore } = purchase
  if (validBefore === null) throw new Error(`${purchaseId} is not signed`)
  return buildEscrowPayment({
    ...{ purchaseId, offer: toJson(offer), units, validBefore: validBefore.getTime() / 1000 },
    ...{ payer: toHex(purchase.payer), payTo: toHex(purchase.pay_to), token: toHex(purchase.token) },
  })
}

/** Hash under which the escrow keeps the payment of a purchase. */
export function hashEscrow(purchase: Purchase): Hex {
  return hashEscrowPayment(escrowPayment(purchase), chainFacts(storedChain.parse(purchase.chain)).id)
}

const storedChain = z.enum(chainNames)

/** The payment that a signed purchase makes. */
export function signedPurchase(purchase: Purchase): SignedPurchase {
  const { scheme, valid_before: validBefore } = purchase
  if (validBefore === null || scheme === 'batch-settlement')
    throw new Error(`${purchase.id} makes no payment of its own`)
  return {
    token: toHex(purchase.token),
    from: toHex(purchase.payer),
    to: toHex(purchase.pay_to),
    scheme,
    units: purchase.units,
    nonce: toHex(purchase.nonce),
    validBefore,
    ...(scheme === 'auth-capture' ? { escrowHash: hashEscrow(purchase) } : {}),
  }
}

export function toHex(text: string): Hex {
  return `0x${text.replace(/^0x/, '')}`
}
