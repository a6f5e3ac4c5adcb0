/** Matches what arrived to the requests that it pays, by evidence. Safe to repeat: an arrival is matched once. */
import { sql } from 'kysely'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { PAY_OPERATION, type PaymentRequest, type RequestArrival } from './store.ts'

/** How long an arrival waits for an x402 payment of the same amount to end, before it counts as another one. */
const PENDING_PAYMENT_MS = 15 * 60_000
const BATCH = 100

interface Matching {
  readonly database: Database
  readonly onCalendar: (at: Date) => Date
  readonly log: Log
}

/** The request that an arrival pays. @property paymentId the x402 payment that brought it. */
interface Match {
  readonly requestId: string
  readonly kind: 'transfer' | 'x402' | 'bank'
  readonly paymentId?: string
}

/** Matches new arrivals, the oldest first, and undoes those that were taken back. @returns how many changed. */
export async function matchArrivals(
  { database, onCalendar, log }: Matching,
  { at, signal }: { at: Date; signal: AbortSignal },
): Promise<number> {
  const fresh = await database.kysely
    .selectFrom('request_arrival')
    .select('entry_id')
    .where('state', '=', 'new')
    .orderBy('at')
    .limit(BATCH)
    .execute()
  let changed = 0
  for (const { entry_id: entryId } of fresh) {
    if (signal.aborted) break
    const isDecided = await database
      .transaction((connection) => matchArrival(connection, entryId, { at, onCalendar }))
      .catch((err: unknown) => {
        log.error({ err, entryId }, 'matching an arrival to a request failed')
        return false
      })
    if (isDecided) changed += 1
  }
  return changed + (await reverseArrivals(database, at))
}

/** @returns false while it cannot be decided. */
async function matchArrival(
  connection: Connection,
  entryId: string,
  { at, onCalendar }: { at: Date; onCalendar: (at: Date) => Date },
): Promise<boolean> {
  const arrival = await connection.kysely
    .selectFrom('request_arrival')
    .selectAll()
    .where('entry_id', '=', entryId)
    .where('state', '=', 'new')
    .forUpdate()
    .skipLocked()
    .executeTakeFirst()
  if (arrival === undefined) return false
  const match = await findMatch(connection, arrival, { at, onCalendar })
  if (match === 'undecided') return false
  if (match !== null) await countArrival(connection, arrival, { ...match, onCalendar, at })
  else
    await connection.kysely
      .updateTable('request_arrival')
      .set({ state: 'unmatched' })
      .where('entry_id', '=', entryId)
      .execute()
  return true
}

async function findMatch(
  connection: Connection,
  arrival: RequestArrival,
  times: { at: Date; onCalendar: (at: Date) => Date },
): Promise<Match | 'undecided' | null> {
  const named = await findByReference(connection, arrival)
  if (named !== undefined) return named
  // Money that a payment returns is no new payment.
  if (await isRefund(connection, arrival)) return null
  return (await findByX402(connection, arrival, times.at)) ?? findByAmount(connection, arrival, times)
}

/** A bank deposit pays the request whose reference its payer wrote, and no other. Undefined: it is none. */
async function findByReference(
  { kysely }: Connection,
  arrival: RequestArrival,
): Promise<Match | null | undefined> {
  const deposit = await kysely
    .selectFrom('deposit')
    .select('payer_reference')
    .where('id', '=', arrival.entry_id)
    .executeTakeFirst()
  if (deposit === undefined) return undefined
  if (deposit.payer_reference === null) return null
  const request = await kysely
    .selectFrom('payment_request')
    .select('id')
    .where('account_id', '=', arrival.account_id)
    .where('reference', '=', deposit.payer_reference)
    .where('asset', '=', arrival.asset)
    .executeTakeFirst()
  return request === undefined ? null : { requestId: request.id, kind: 'bank' }
}

async function isRefund({ kysely }: Connection, { entry_id: entryId }: RequestArrival): Promise<boolean> {
  const row = await kysely
    .selectFrom('refund')
    .select('entry_id')
    .where('entry_id', '=', entryId)
    .executeTakeFirst()
  return row !== undefined
}

/** The x402 payment of a request whose transaction brought the arrival. Null: none did. */
async function findByX402(
  { kysely }: Connection,
  arrival: RequestArrival,
  at: Date,
): Promise<Match | 'undecided' | null> {
  const payments = await kysely
    .selectFrom('payment')
    .innerJoin('payment_request', (join) =>
      join.on(({ eb, ref }) =>
        eb(sql<string>`${ref('payment.answer')} ->> 'request'`, '=', ref('payment_request.token')),
      ),
    )
    .select(['payment.id', 'payment.state', 'payment.transaction_hash', 'payment_request.id as request_id'])
    .where('payment.operation', '=', PAY_OPERATION)
    .where('payment_request.account_id', '=', arrival.account_id)
    .where('payment.chain', '=', arrival.place)
    .where('payment.asset', '=', arrival.asset)
    .where('payment.units', '=', arrival.units)
    .where('payment.state', 'in', ['taking', 'pending', 'settled'])
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('request_arrival')
            .select('entry_id')
            .whereRef('request_arrival.payment_id', '=', 'payment.id'),
        ),
      ),
    )
    .execute()
  const own = payments.find(
    ({ transaction_hash }) => transaction_hash?.toLowerCase() === arrival.transaction_hash,
  )
  if (own !== undefined && arrival.transaction_hash !== null)
    return { requestId: own.request_id, kind: 'x402', paymentId: own.id }
  const isOpen = payments.some(({ state }) => state !== 'settled')
  return isOpen && at.getTime() - arrival.at.getTime() < PENDING_PAYMENT_MS ? 'undecided' : null
}

/**
 * A plain transfer says nothing but its amount: it pays the only request that waits for exactly that. Where several do, nobody can
 * know which one was meant, and none is paid until the owner says so.
 */
async function findByAmount(
  { kysely }: Connection,
  arrival: RequestArrival,
  { onCalendar }: { onCalendar: (at: Date) => Date },
): Promise<Match | null> {
  const requests = await kysely
    .selectFrom('payment_request')
    .select('id')
    .where('account_id', '=', arrival.account_id)
    .where('asset', '=', arrival.asset)
    .where('status', 'in', ['open', 'partly_paid'])
    .where('created_at', '<=', arrival.at)
    .where('expires_at', '>', onCalendar(arrival.at))
    .where(({ eb, ref }) => eb(eb(ref('units'), '-', ref('received_units')), '=', arrival.units))
    .limit(2)
    .execute()
  const [only, another] = requests
  if (arrival.place === 'bank' || only === undefined || another !== undefined) return null
  return { requestId: only.id, kind: 'transfer' }
}

/** Counts an arrival for a request. The caller has locked the arrival, which no request has yet. */
async function countArrival(
  connection: Connection,
  arrival: RequestArrival,
  {
    requestId,
    kind,
    paymentId = null,
    linkedBy = null,
    onCalendar,
    at,
  }: Omit<Match, 'paymentId'> & {
    paymentId?: string | null
    linkedBy?: string | null
    onCalendar: (at: Date) => Date
    at: Date
  },
): Promise<PaymentRequest> {
  const { kysely } = connection
  const request = await lockRequest(connection, requestId)
  const arrived = onCalendar(arrival.at)
  const isLate = request.status === 'canceled' || request.expires_at <= arrived
  await kysely
    .updateTable('request_arrival')
    .set({
      state: 'matched',
      request_id: requestId,
      kind,
      payment_id: paymentId,
      linked_by: linkedBy,
      is_late: isLate,
    })
    .where('entry_id', '=', arrival.entry_id)
    .execute()
  // Its expiry is an event of its own, before that of the late money.
  if (isLate && (request.status === 'open' || request.status === 'partly_paid'))
    await kysely
      .updateTable('payment_request')
      .set({ status: 'expired', updated_at: at })
      .where('id', '=', requestId)
      .execute()
  const received = request.received_units + arrival.units
  return kysely
    .updateTable('payment_request')
    .set({
      received_units: received,
      // One that expired while its payment was on its way is paid: the payment was in time.
      ...(isLate ? {} : { status: judgeStatus(request, received) }),
      claim: null,
      claimed_until: null,
      updated_at: at,
    })
    .where('id', '=', requestId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

function judgeStatus({ units }: Pick<PaymentRequest, 'units'>, received: bigint): PaymentRequest['status'] {
  return received >= units ? 'paid' : received > 0n ? 'partly_paid' : 'open'
}

async function lockRequest({ kysely }: Connection, id: string): Promise<PaymentRequest> {
  return kysely
    .selectFrom('payment_request')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirstOrThrow()
}

/** Takes back what the bank, or a reorganization of the chain, took back. */
async function reverseArrivals(database: Database, at: Date): Promise<number> {
  const { kysely } = database
  const banked = kysely
    .selectFrom('request_arrival as a')
    .innerJoin('deposit as d', 'd.id', 'a.entry_id')
    .select('a.entry_id')
    .where('a.request_id', 'is not', null)
    .where('a.reversed_at', 'is', null)
    .where('d.rank', '>', 5)
  const sent = kysely
    .selectFrom('request_arrival as a')
    .innerJoin('transfer as t', 't.id', 'a.entry_id')
    .select('a.entry_id')
    .where('a.request_id', 'is not', null)
    .where('a.reversed_at', 'is', null)
    .where('t.state', '=', 'failed')
  const gone = await banked.unionAll(sent).limit(BATCH).execute()
  for (const { entry_id: entryId } of gone)
    await database.transaction(async (connection) => {
      const arrival = await connection.kysely
        .updateTable('request_arrival')
        .set({ reversed_at: at })
        .where('entry_id', '=', entryId)
        .where('reversed_at', 'is', null)
        .returningAll()
        .executeTakeFirst()
      if (arrival?.request_id == null) return
      const request = await lockRequest(connection, arrival.request_id)
      const received = request.received_units - arrival.units
      const isOver = request.status === 'canceled' || request.status === 'expired'
      await connection.kysely
        .updateTable('payment_request')
        .set({
          received_units: received,
          status: isOver ? request.status : judgeStatus(request, received),
          updated_at: at,
        })
        .where('id', '=', request.id)
        .execute()
    })
  return gone.length
}

/**
 * Links an arrival that no request has to one, by the owner's hand.
 * @throws Failure `not_found`, and `conflict` for an arrival that belongs to a request, was taken back, or is another asset.
 */
export async function linkArrival(
  connection: Connection,
  {
    request,
    entryId,
    linkedBy,
    onCalendar,
    at,
  }: {
    request: PaymentRequest
    entryId: string
    linkedBy: string
    onCalendar: (at: Date) => Date
    at: Date
  },
): Promise<PaymentRequest> {
  const arrival = await connection.kysely
    .selectFrom('request_arrival')
    .selectAll()
    .where('entry_id', '=', entryId)
    .where('account_id', '=', request.account_id)
    .forUpdate()
    .executeTakeFirst()
  if (arrival === undefined)
    throw new Failure('not_found', 'No such money has arrived since the account first asked for any.', {
      hint: 'GET /api/requests/{id} lists in `unmatched` what can be linked.',
    })
  if (arrival.state !== 'unmatched' || arrival.reversed_at !== null || arrival.asset !== request.asset)
    throw new Failure('conflict', 'That money cannot be linked to this request.', {
      reason:
        arrival.state === 'matched'
          ? 'already_linked'
          : arrival.state === 'new'
            ? 'not_matched_yet'
            : 'other_money',
      hint: 'GET /api/requests/{id} lists in `unmatched` what can be linked.',
    })
  const isBanked = await connection.kysely
    .selectFrom('deposit')
    .select('id')
    .where('id', '=', entryId)
    .executeTakeFirst()
  return countArrival(connection, arrival, {
    requestId: request.id,
    kind: isBanked === undefined ? 'transfer' : 'bank',
    linkedBy,
    onCalendar,
    at,
  })
}
