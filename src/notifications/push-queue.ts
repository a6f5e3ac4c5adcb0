/** Push messages that wait to be sent: one for each event and subscription. A sent one is deleted. */
import type { Connection, Statement } from '../storage/database.ts'
import type { ClaimedEvent } from './queue.ts'

/** Longer than one attempt. */
const CLAIM_MS = 30_000
const FIRST_RETRY_MS = 15_000
const LONGEST_RETRY_MS = 60 * 60 * 1000

const claimStatement: Statement = {
  name: 'owner_push_claim',
  text: `with free as materialized (
      select p.subscription_id, p.sequence from owner_push p
      where p.held_until <= $1 order by p.held_until limit $3 for update skip locked
    )
    update owner_push p set held_until = $2, tries = p.tries + 1
    from free join push_subscription s on s.id = free.subscription_id
    join session o on o.id = s.session_id
    join account a on a.id = s.account_id
    where p.subscription_id = free.subscription_id and p.sequence = free.sequence
    returning p.subscription_id, s.sealed, p.sequence, p.account_id, p.type, p.object_id, p.data, p.at, p.tries, p.expires_at,
      o.revoked_at is not null or s.created_at <= $1 - interval '30 days' as is_ended,
      a.status = 'locked' and p.type <> 'security.locked' as is_locked`,
}

/**
 * An event to tell a browser of. @property is_ended its subscription has ended: nothing more is sent to it.
 * @property is_locked the account is locked, and the message is not about that.
 */
export interface ClaimedPush extends ClaimedEvent {
  readonly subscription_id: string
  readonly sealed: Uint8Array
  readonly is_ended: boolean
  readonly is_locked: boolean
}

/** Claims messages that are due for one gateway. */
export function claimPushes(
  database: Connection,
  { limit, at }: { limit: number; at: Date },
): Promise<ClaimedPush[]> {
  return database.call<ClaimedPush>(claimStatement, [at, new Date(at.getTime() + CLAIM_MS), limit])
}

type Row = Pick<ClaimedPush, 'subscription_id' | 'sequence'>

/** Removes a message that was sent, or is not needed any more. */
export async function dropPush({ kysely }: Connection, { subscription_id, sequence }: Row): Promise<void> {
  await kysely
    .deleteFrom('owner_push')
    .where('subscription_id', '=', subscription_id)
    .where('sequence', '=', sequence)
    .execute()
}

/** Schedules the next attempt, later each time; after the last one the message is given up. */
export async function retryPush(database: Connection, push: ClaimedPush, at: Date): Promise<void> {
  const { subscription_id, sequence, tries, expires_at } = push
  if (expires_at <= at) return dropPush(database, push)
  const pause = Math.min(FIRST_RETRY_MS * 2 ** Math.min(tries - 1, 20), LONGEST_RETRY_MS)
  await database.kysely
    .updateTable('owner_push')
    .set({ held_until: new Date(at.getTime() + pause) })
    .where('subscription_id', '=', subscription_id)
    .where('sequence', '=', sequence)
    .execute()
}
