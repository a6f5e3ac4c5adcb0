/**
 * Requests: money that an account asks others for. May import the books and the rails. Invariants: an arrival counts for one request
 * at most; a request is matched by evidence or by its owner's hand, never by a payer's word; what arrives is the account's, matched
 * or not.
 */
import type { Selectable } from 'kysely'
import { sql } from 'kysely'
import { cutPage, type Page } from '../../core/base/page.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Asset, assetDecimals } from '../../core/money/money.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import type { PaymentRequestTable, RequestArrivalTable } from '../../storage/schema.ts'

export type PaymentRequest = Selectable<PaymentRequestTable>
export type RequestArrival = Selectable<RequestArrivalTable>
export type RequestStatus = PaymentRequest['status']

export const requestStatuses = ['open', 'partly_paid', 'paid', 'expired', 'canceled'] as const

/** Name of what x402 payments of requests are for. */
export const PAY_OPERATION = 'requests.pay'

/** Requests of an account that are neither paid nor over, and those of one key among them. */
const MAX_OPEN = 1_000
const MAX_OPEN_OF_KEY = 100
/** Arrivals that an owner may link by hand, at a time. */
const MAX_UNMATCHED = 20
/** Arrivals that a view shows. */
const MAX_PAYMENTS = 100

/** Whose requests: an account's, or those of one of its keys. */
export interface RequestOwner {
  readonly accountId: string
  readonly keyId: string | null
}

export function noSuchRequest(): Failure {
  return new Failure('not_found', 'You have no such request.', { hint: 'Read GET /api/requests.' })
}

/** True while a payment is asked for. @param now of the calendar. */
export function isPayable({ status, expires_at }: PaymentRequest, now: Date): boolean {
  return (status === 'open' || status === 'partly_paid') && now < expires_at
}

/** The status now: one whose time is over is expired, although no job has noted it. @param now of the calendar. */
export function readStatus(request: PaymentRequest, now: Date): RequestStatus {
  const isOpen = request.status === 'open' || request.status === 'partly_paid'
  return isOpen && !isPayable(request, now) ? 'expired' : request.status
}

/** What is left to pay, in smallest units. */
export function readOutstanding({ units, received_units }: PaymentRequest): bigint {
  return units > received_units ? units - received_units : 0n
}

const lock: Statement = {
  name: 'requests_lock',
  text: 'select id from account where id = $1 for no key update',
}

/** Writes a request. @throws Failure `conflict` when too many are open. */
export async function insertRequest(
  connection: Connection,
  row: Omit<PaymentRequest, 'status' | 'received_units' | 'claim' | 'claimed_until'>,
): Promise<PaymentRequest> {
  await callForRow(connection, lock, [row.account_id])
  const { all, own } = await connection.kysely
    .selectFrom('payment_request')
    .select(({ fn }) => [
      fn.countAll<string>().as('all'),
      fn
        .countAll<string>()
        .filterWhere('key_id', '=', row.key_id ?? '')
        .as('own'),
    ])
    .where('account_id', '=', row.account_id)
    .where('status', 'in', ['open', 'partly_paid'])
    .executeTakeFirstOrThrow()
  if (Number(all) >= MAX_OPEN || Number(own) >= MAX_OPEN_OF_KEY)
    throw new Failure('conflict', 'Too many requests are open.', {
      reason: 'too_many_open',
      hint: 'Cancel those that nobody will pay: DELETE /api/requests/{id}.',
    })
  return connection.kysely.insertInto('payment_request').values(row).returningAll().executeTakeFirstOrThrow()
}

/** Finds a request. @param isLocked until the transaction ends. */
export async function findRequest(
  { kysely }: Connection,
  { accountId, keyId, id, isLocked = false }: RequestOwner & { id: string; isLocked?: boolean },
): Promise<PaymentRequest | undefined> {
  let query = kysely
    .selectFrom('payment_request')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
  if (keyId !== null) query = query.where('key_id', '=', keyId)
  return (isLocked ? query.forUpdate() : query).executeTakeFirst()
}

/** Finds a request by the token of its page. */
export async function findRequestByToken(
  { kysely }: Connection,
  token: string,
): Promise<PaymentRequest | undefined> {
  return kysely.selectFrom('payment_request').selectAll().where('token', '=', token).executeTakeFirst()
}

/** Lists requests, newest first. */
export async function listRequests(
  { kysely }: Connection,
  { accountId, keyId, page }: RequestOwner & { page: Page },
) {
  let query = kysely
    .selectFrom('payment_request')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
  if (keyId !== null) query = query.where('key_id', '=', keyId)
  if (page.after !== null) query = query.where('id', '<', page.after)
  return cutPage(await query.execute(), page)
}

const arrivalsOf: Statement = {
  name: 'request_arrivals_of',
  text: `select a.* from unnest($1::text[]) r (id)
    cross join lateral (select * from request_arrival a where a.request_id = r.id order by a.at, a.entry_id limit $2) a`,
}

/** Lists what arrived for each request, oldest first. */
export async function listPayments(
  database: Connection,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly RequestArrival[]>> {
  const rows = await database.call<RequestArrival>(arrivalsOf, [ids, MAX_PAYMENTS])
  return new Map(ids.map((id) => [id, rows.filter(({ request_id }) => request_id === id)]))
}

/** Lists arrivals of a request's asset since it was made that belong to no request, newest first. */
export async function listUnmatched(
  { kysely }: Connection,
  { account_id, asset, created_at }: PaymentRequest,
): Promise<readonly RequestArrival[]> {
  return kysely
    .selectFrom('request_arrival')
    .selectAll()
    .where('account_id', '=', account_id)
    .where('state', '=', 'unmatched')
    .where('asset', '=', asset)
    .where('at', '>=', created_at)
    .where('reversed_at', 'is', null)
    .orderBy('at', 'desc')
    .limit(MAX_UNMATCHED)
    .execute()
}

/**
 * Cancels a request that is not paid. Canceling it again changes nothing.
 * @throws Failure `conflict` while an x402 payment of it is being made, and for one that is paid or expired.
 */
export async function cancelRequest(
  { kysely }: Connection,
  request: PaymentRequest,
  { now, at }: { now: Date; at: Date },
): Promise<PaymentRequest> {
  if (request.status === 'canceled') return request
  const status = readStatus(request, now)
  if (status === 'paid' || status === 'expired')
    throw new Failure('conflict', `The request is ${status}: there is nothing to cancel.`, {
      reason: status,
    })
  if (isClaimed(request, at))
    throw new Failure('conflict', 'The request is being paid at this moment.', {
      reason: 'being_paid',
      retryAfter: 5,
      hint: 'Read it again in some seconds.',
    })
  return kysely
    .updateTable('payment_request')
    .set({ status: 'canceled', updated_at: at })
    .where('id', '=', request.id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** True while an x402 payment has the request to itself. @param at the machine's time. */
function isClaimed({ claimed_until }: PaymentRequest, at: Date): boolean {
  return claimed_until !== null && claimed_until > at
}

/**
 * Keeps a request for one x402 payment, so that no second payer is charged meanwhile. The same payment claims it again.
 * @param units what the payment pays. @returns whether it is the payment's.
 */
export async function claimRequest(
  { kysely }: Connection,
  {
    id,
    claim,
    units,
    until,
    now,
    at,
  }: { id: string; claim: string; units: bigint; until: Date; now: Date; at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await kysely
    .updateTable('payment_request')
    .set({ claim, claimed_until: until })
    .where('id', '=', id)
    .where('status', 'in', ['open', 'partly_paid'])
    .where('expires_at', '>', now)
    .where(({ eb, ref }) => eb(sql<bigint>`${ref('units')} - ${ref('received_units')}`, '=', units))
    .where(({ or, eb }) =>
      or([eb('claim', 'is', null), eb('claim', '=', claim), eb('claimed_until', '<=', at)]),
    )
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Frees a request whose x402 payment was refused. */
export async function releaseRequest(
  { kysely }: Connection,
  { id, claim }: { id: string; claim: string },
): Promise<void> {
  await kysely
    .updateTable('payment_request')
    .set({ claim: null, claimed_until: null })
    .where('id', '=', id)
    .where('claim', '=', claim)
    .execute()
}

/** Notes that requests have expired. One that is being paid expires when its payment has ended. @returns how many. */
export async function expireRequests(
  { kysely }: Connection,
  { now, at }: { now: Date; at: Date },
): Promise<number> {
  const { numUpdatedRows } = await kysely
    .updateTable('payment_request')
    .set({ status: 'expired', updated_at: now })
    .where('status', 'in', ['open', 'partly_paid'])
    .where('expires_at', '<=', now)
    .where(({ or, eb }) => or([eb('claimed_until', 'is', null), eb('claimed_until', '<=', at)]))
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

/** Erases what was written on the requests of an account. */
export async function eraseRequests({ kysely }: Connection, accountId: string): Promise<void> {
  await kysely
    .updateTable('payment_request')
    .set({ memo: null, payee: null })
    .where('account_id', '=', accountId)
    .execute()
}

export function parseAsset(text: string): Asset {
  const known = Object.keys(assetDecimals).find((asset): asset is Asset => asset === text)
  if (known === undefined) throw new Error(`a request is stored in the unknown asset ${text}`)
  return known
}
