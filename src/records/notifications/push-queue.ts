/**
 * Push messages that wait to be sent: one for each event and subscription. A sent one is deleted. One worker at a time sends to a
 * subscription, few at a time to those of an account, and those that failed come last: no account's browsers hold up another's.
 */
import type { Connection, Statement } from '../../storage/database.ts'
import type { ClaimedEvent } from './queue.ts'

/** Longer than the attempts of one claim. */
const CLAIM_MS = 60_000
/** Subscriptions of an account that are sent to at once, by all gateways. */
const MAX_OF_ACCOUNT = 4
/** Messages of one claim. */
const MAX_MESSAGES = 5
const FIRST_RETRY_MS = 15_000
const MAX_RETRY_MS = 60 * 60 * 1000

// $1 now, $2 claimed until, $3 subscriptions at most, $4 subscriptions of an account at most.
const claimStatement: Statement = {
  name: 'owner_push_claim',
  text: `with due as materialized (
      select p.subscription_id as id, min(p.held_until) as since from owner_push p where p.held_until <= $1 group by p.subscription_id
    ), ranked as materialized (
      select s.id, s.failures > 0 as is_failing, d.since,
        row_number() over (partition by s.account_id order by s.failures, d.since, s.id)
          + (select count(*) from push_subscription b where b.account_id = s.account_id and b.busy_until > $1) as place
      from due d join push_subscription s on s.id = d.id
      where coalesce(s.busy_until <= $1, true) and coalesce(s.paused_until <= $1, true)
    ), free as materialized (
      select s.id from ranked r join push_subscription s on s.id = r.id
      where r.place <= $4 and coalesce(s.busy_until <= $1, true)
      order by r.is_failing, r.place, r.since limit $3
      for no key update of s skip locked
    )
    update push_subscription s set busy_until = $2
    from free, session o, account a
    where s.id = free.id and o.id = s.session_id and a.id = s.account_id
    returning s.id, s.sealed, s.account_id, s.failures,
      o.revoked_at is not null or s.created_at <= $1 - interval '30 days' as is_ended, a.status = 'locked' as is_locked`,
}

/**
 * A subscription with messages that are due. @property is_ended nothing more is sent to it. @property is_locked its account is
 * locked: only messages about that are sent.
 */
export interface ClaimedSubscription {
  readonly id: string
  readonly sealed: Uint8Array
  readonly account_id: string
  readonly failures: number
  readonly is_ended: boolean
  readonly is_locked: boolean
}

/** Claims subscriptions for one gateway, fairly by account. */
export function claimSubscriptions(
  database: Connection,
  { limit, at }: { limit: number; at: Date },
): Promise<ClaimedSubscription[]> {
  return database.call<ClaimedSubscription>(claimStatement, [
    at,
    new Date(at.getTime() + CLAIM_MS),
    limit,
    MAX_OF_ACCOUNT,
  ])
}

/** Lists messages of a claimed subscription that are due, oldest first. */
export function listDuePushes(
  { kysely }: Connection,
  { id, at }: { id: string; at: Date },
): Promise<ClaimedEvent[]> {
  return kysely
    .selectFrom('owner_push')
    .select(['sequence', 'account_id', 'type', 'object_id', 'data', 'at', 'tries', 'expires_at'])
    .where('subscription_id', '=', id)
    .where('held_until', '<=', at)
    .orderBy('sequence')
    .limit(MAX_MESSAGES)
    .execute()
}

interface Row {
  readonly id: string
  readonly sequence: bigint
}

/** Removes a message that was sent, or is not needed any more. */
export async function dropPush({ kysely }: Connection, { id, sequence }: Row): Promise<void> {
  await kysely
    .deleteFrom('owner_push')
    .where('subscription_id', '=', id)
    .where('sequence', '=', sequence)
    .execute()
}

/** Ends a claim after which nothing failed. */
export async function releaseSubscription({ kysely }: Connection, id: string): Promise<void> {
  await kysely
    .updateTable('push_subscription')
    .set({ busy_until: null, paused_until: null, failures: 0 })
    .where('id', '=', id)
    .execute()
}

/**
 * Ends a claim by a failed attempt: all messages of the subscription wait, longer each time. One that has expired is given up.
 */
export async function pauseSubscription(
  { kysely }: Connection,
  { id, failures, push, at }: { id: string; failures: number; push: ClaimedEvent; at: Date },
): Promise<void> {
  const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures, 20), MAX_RETRY_MS)
  const until = new Date(at.getTime() + pauseMs)
  await kysely
    .updateTable('owner_push')
    .set((set) => ({ tries: set('tries', '+', 1) }))
    .where('subscription_id', '=', id)
    .where('sequence', '=', push.sequence)
    .execute()
  await kysely
    .deleteFrom('owner_push')
    .where('subscription_id', '=', id)
    .where('expires_at', '<=', at)
    .execute()
  await kysely
    .updateTable('owner_push')
    .set({ held_until: until })
    .where('subscription_id', '=', id)
    .where('held_until', '<', until)
    .execute()
  await kysely
    .updateTable('push_subscription')
    .set({ busy_until: null, paused_until: until, failures: failures + 1 })
    .where('id', '=', id)
    .execute()
}
