/**
 * Card transactions after their authorization: clearing, reversal, refund and expiry. Each event moves money once.
 */

import { raiseAlarm } from '../../books/alarms/alarms.ts'
import type { AuthenticateDecisions } from '../../books/spending/authenticate.ts'
import type { MadeRow } from '../../books/spending/decision-content.ts'
import type { Source } from '../../books/spending/sources.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Log } from '../../core/base/log.ts'
import type { CardEvent, CardTransaction } from '../../providers/card-processor/port.ts'
import type { Rates } from '../../providers/rates/port.ts'
import { type Connection, callForRow, type Database, type Statement } from '../../storage/database.ts'
import { clearingSources, nameChains } from './fundings.ts'
import { type CardWithPolicies, findJudgedCard } from './store.ts'

export interface CardTransactionDependencies {
  readonly database: Database
  /** The default first. */
  readonly chains: { readonly all: readonly { readonly name: string }[] }
  readonly rates: Rates
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
  readonly vouch: AuthenticateDecisions
  readonly settings: { readonly cardSpreadBps: number }
}

/** Event kinds that take money and therefore need funding sources. */
const takers: ReadonlySet<string> = new Set<CardEvent['kind']>(['clearing', 'return_reversal'])

/** Maximum settlements per event and chain: each asset from held and from available money, in the wallet and in the escrow. */
const MAX_SETTLEMENTS = 20

/**
 * Takes the same advisory lock as card_authorize, so that no other process opens the transaction between the lookup
 * and the insert.
 */
const open: Statement = {
  name: 'card_open_unasked',
  text: `with locked as materialized (select pg_advisory_xact_lock(hashtext('card'), hashtext($2)))
    insert into card_authorization (id, processor_token, card_id, account_id, key_id, day, reason, status, units, approved, about,
      created_at, updated_at)
    select $1, $2, $3, $4, $5, ($6::timestamptz at time zone 'UTC')::date, 'approved', 'pending', 0, 0, $7::jsonb, $6, $6
    from locked on conflict do nothing`,
}

const statement: Statement = {
  name: 'card_apply',
  text: `select c.*, decisions_made($10) as made from card_apply($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) c`,
}

interface Row {
  readonly verdict: 'applied' | 'repeated' | 'unknown' | 'waiting'
  readonly shortfall: bigint
  readonly made: readonly MadeRow[]
}

/**
 * Applies all events of a transaction.
 * @returns `early` for an out-of-order event whose authorization is not stored yet, and for an event that waits for the
 * chain: apply the transaction again. `unknown` when the card is unknown or not the transaction's own.
 */
export async function applyTransaction(
  parts: CardTransactionDependencies,
  transaction: CardTransaction,
  { isForcePosted: isTakenAsItIs }: { isForcePosted: boolean },
): Promise<'applied' | 'early' | 'unknown'> {
  const { database, log, clock, rates } = parts
  const { token, cardToken, events, status } = transaction
  const card = await findJudgedCard(database, cardToken)
  if (card === undefined) return 'unknown'
  if ((await findCardId(database, token)) === undefined) {
    if (transaction.wasAuthorized && !isTakenAsItIs) return 'early'
    if (events.length === 0) return 'applied'
    await openForcePosted(parts, card, transaction)
  }
  if ((await findCardId(database, token)) !== card.id) {
    log.error({ token, cardId: card.id }, 'a transaction event names a card other than the transaction’s own')
    return 'unknown'
  }
  const table = events.some(({ kind }) => takers.has(kind)) ? await rates.latest(clock()) : null
  for (const event of events) {
    const payer = event.kind === 'return_reversal' ? { ...card, priority: cashFirst(card.priority) } : card
    const fundings =
      table === null || !takers.has(event.kind)
        ? []
        : clearingSources(payer.priority, {
            table,
            chains: nameChains(parts.chains),
            spreadBps: parts.settings.cardSpreadBps,
          })
    const { verdict, shortfall } = await apply(parts, {
      ...event,
      event: event.token,
      token,
      status: null,
      fundings,
      at: clock(),
    })
    if (verdict === 'waiting') return 'early'
    if (shortfall > 0n)
      log.error(
        { token, accountId: card.accountId, cents: shortfall.toString() },
        'a clearing was not covered: the gateway paid it, and its owner owes the amount',
      )
  }
  if (status !== 'pending') await closeAuthorization(parts, { token, status, at: clock() })
  return 'applied'
}

/** Closes an authorization and releases what it still holds. Idempotent. */
export async function closeAuthorization(
  parts: Pick<CardTransactionDependencies, 'database' | 'newId' | 'vouch' | 'log'>,
  { token, status, at }: { token: string; status: Exclude<CardTransaction['status'], 'pending'>; at: Date },
): Promise<void> {
  const event = `${token}:${status}`
  await apply(parts, { event, token, kind: 'close', units: 0n, status, fundings: [], at })
}

const raised: Statement = {
  name: 'card_increment_too_late',
  text: `with known as (select approved from card_increment where authorization_id = $1 and event_token = $2),
      changed as (update card_increment set reason = 'too_late'
        where authorization_id = $1 and event_token = $2 and reason = 'approved' returning 1)
    select k.approved from known k left join changed on true`,
}

/**
 * Takes an approved increment back, whose answer was too late: the authorization stays as it was before. Idempotent.
 * @returns whether the request was an increment.
 */
export async function reverseIncrement(
  parts: Pick<CardTransactionDependencies, 'database' | 'newId' | 'vouch' | 'log'>,
  {
    authorizationId,
    token,
    eventToken,
    at,
  }: { authorizationId: string; token: string; eventToken: string; at: Date },
): Promise<boolean> {
  const [increment] = await parts.database.call<{ approved: bigint }>(raised, [authorizationId, eventToken])
  if (increment === undefined) return false
  const { approved: units } = increment
  const event = `${eventToken}:too_late`
  await apply(parts, { event, token, kind: 'reversal', units, status: null, fundings: [], at })
  return true
}

interface Change {
  readonly event: string
  readonly token: string
  readonly kind: string
  readonly units: bigint
  readonly status: string | null
  readonly fundings: readonly Source[]
  readonly at: Date
}

/** Applies a change in a transaction of its own. */
function apply(
  parts: Pick<CardTransactionDependencies, 'database' | 'newId' | 'vouch' | 'log'>,
  change: Change,
): Promise<Row> {
  return parts.database.transaction((connection) => applyChange(parts, connection, change))
}

/** Within a transaction, because a settlement whose decision is not authenticated is never sent. */
async function applyChange(
  { newId, vouch, log }: Pick<CardTransactionDependencies, 'newId' | 'vouch' | 'log'>,
  connection: Connection,
  change: Change,
): Promise<Row> {
  const { fundings, at } = change
  const onChains = new Set(fundings.flatMap(({ chain }) => chain ?? []))
  const row = await callForRow<Row>(connection, statement, [
    change.event,
    change.token,
    change.kind,
    change.units,
    change.status,
    at,
    fundings.map(({ place }) => place),
    fundings.map(({ asset }) => asset),
    fundings.map(({ rate }) => rate.toString()),
    Array.from({ length: MAX_SETTLEMENTS * Math.max(1, onChains.size) }, () => newId('dec', at)),
  ])
  await vouch(connection, row.made)
  if (change.kind === 'refund' && row.verdict === 'applied') await alarmExcess(log, connection, change)
  return row
}

/**
 * Raises an alarm for refunds above what was paid: the network has moved the money, so it stays credited, but no payment of ours
 * explains it. The alarm of a transaction reports the whole excess, not only the latest event's. A return under a name of its own is
 * usual, and none.
 */
async function alarmExcess(log: Pick<Log, 'error'>, connection: Connection, change: Change): Promise<void> {
  const { token, units, at } = change
  const row = await connection.kysely
    .selectFrom('card_authorization')
    .select(['id', 'cleared', 'refunded'])
    .where('processor_token', '=', token)
    .executeTakeFirstOrThrow()
  const excess = row.refunded - row.cleared
  if (units === 0n || row.cleared === 0n || excess <= 0n) return
  const reported = {
    cleared: row.cleared.toString(),
    refunded: row.refunded.toString(),
    excess: excess.toString(),
  }
  await raiseAlarm(
    { database: connection, log },
    { domain: 'cards', objectId: row.id, reason: 'refund_beyond_payment', reported, at },
  )
}

/** Sources from which a refund is taken back: cash first. */
export async function findReversalSources(
  { database, rates, clock, chains, settings }: CardTransactionDependencies,
  cardToken: string,
): Promise<readonly Source[]> {
  const card = await findJudgedCard(database, cardToken)
  return card === undefined
    ? []
    : clearingSources(cashFirst(card.priority), {
        table: await rates.latest(clock()),
        chains: nameChains(chains),
        spreadBps: settings.cardSpreadBps,
      })
}

/** Applies an event that is no part of the network's transaction, in the caller's transaction. @param fundings what pays for a reversal. */
export function applyEvent(
  parts: Pick<CardTransactionDependencies, 'newId' | 'vouch' | 'log'>,
  connection: Connection,
  change: Omit<Change, 'status' | 'kind'> & { readonly kind: CardEvent['kind'] },
): Promise<Pick<Row, 'verdict'>> {
  return applyChange(parts, connection, { ...change, status: null })
}

/** Finds the card of a transaction; undefined when the transaction is unknown. */
async function findCardId(database: Connection, token: string): Promise<string | undefined> {
  const row = await database.kysely
    .selectFrom('card_authorization')
    .select('card_id')
    .where('processor_token', '=', token)
    .executeTakeFirst()
  return row?.card_id
}

/**
 * Opens a force-posted transaction: the network has already moved the money, so it is accepted without an
 * authorization.
 */
async function openForcePosted(
  { database, newId, clock }: CardTransactionDependencies,
  card: CardWithPolicies,
  { token, merchantName }: CardTransaction,
): Promise<void> {
  const at = clock()
  const about = JSON.stringify({ merchant: merchantName })
  await database.call(open, [newId('tx', at), token, card.id, card.accountId, card.keyId, at, about])
}

/** A refund was credited as cash, so its reversal takes cash first. */
function cashFirst(priority: CardWithPolicies['priority']): CardWithPolicies['priority'] {
  return ['USD', ...priority.filter((asset) => asset !== 'USD')]
}
