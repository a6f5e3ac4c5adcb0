/**
 * Messages to channels: one row for each thing to tell and channel, which waits to be sent and is then the owner's inbox. One worker at
 * a time sends to a channel, few at a time to those of an account, and those that failed come last. A crash between sending and
 * recording repeats a message.
 */
import type { ChatOutcome } from '../../providers/chats/port.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import type { AnnouncementText } from './announcement.ts'
import type { ToldEvent } from './queue.ts'

/** Longer than the attempts of one claim. */
const CLAIM_MS = 60_000
/** Channels of an account that are sent to at once, by all gateways. */
const MAX_OF_ACCOUNT = 4
/** Messages of one claim. */
const MAX_MESSAGES = 20
const FIRST_RETRY_MS = 5_000
const MAX_RETRY_MS = 60 * 60 * 1000
/** Tries of a message that cannot be written, or that its chat refuses, over more than an hour. */
const MAX_TRIES = 10
const DAY_MS = 24 * 60 * 60 * 1000

/** Pause after a message, and after many of one hour: an agent that keeps asking floods nobody. What comes meanwhile is one message. */
const paces = {
  slack: { pauseMs: 2_000, perHour: 60, thenMs: 60_000 },
  telegram: { pauseMs: 3_000, perHour: 60, thenMs: 60_000 },
  email: { pauseMs: 30_000, perHour: 6, thenMs: 10 * 60_000 },
} as const

// $1 now, $2 claimed until, $3 channels at most, $4 channels of an account at most.
const claimStatement: Statement = {
  name: 'owner_message_claim',
  text: `with due as materialized (
      select m.channel_id as id, min(m.held_until) as since from owner_message m where m.held_until <= $1 group by m.channel_id
    ), ranked as materialized (
      select c.id, c.failures > 0 as is_failing, d.since,
        row_number() over (partition by c.account_id order by c.failures, d.since, c.id)
          + (select count(*) from notification_channel b where b.account_id = c.account_id and b.busy_until > $1) as place
      from due d join notification_channel c on c.id = d.id
      where coalesce(c.busy_until <= $1, true) and coalesce(c.paused_until <= $1, true)
    ), free as materialized (
      select c.id from ranked r join notification_channel c on c.id = r.id
      where r.place <= $4 and coalesce(c.busy_until <= $1, true)
      order by r.is_failing, r.place, r.since limit $3
      for no key update of c skip locked
    )
    update notification_channel c set busy_until = $2
    from free, account a
    where c.id = free.id and a.id = c.account_id
    returning c.id, c.account_id, c.type, c.sealed, c.destination_hash, c.failures, a.status = 'locked' as is_locked,
      (select d.sealed_address from login_destination d where d.destination_hash = c.destination_hash) as sealed_address,
      (select count(*)::int from owner_message s where s.channel_id = c.id and s.sent_at > $1 - interval '1 hour') as sent_lately`,
}

/** A channel with messages that are due. @property is_locked its account is locked: only messages about that are sent. */
export interface ClaimedChannel {
  readonly id: string
  readonly account_id: string
  readonly type: 'slack' | 'telegram' | 'email'
  readonly sealed: Uint8Array | null
  readonly destination_hash: string | null
  readonly sealed_address: Uint8Array | null
  readonly failures: number
  readonly is_locked: boolean
  readonly sent_lately: number
}

/** A message that is due. */
export interface DueMessage extends ToldEvent {
  readonly id: string
  readonly tries: number
}

/** Claims channels for one gateway, fairly by account. */
export function claimChannels(
  database: Connection,
  { limit, at }: { limit: number; at: Date },
): Promise<ClaimedChannel[]> {
  const until = new Date(at.getTime() + CLAIM_MS)
  return database.call<ClaimedChannel>(claimStatement, [at, until, limit, MAX_OF_ACCOUNT])
}

/** Lists messages of a claimed channel that are due, oldest first. Denials come last: agents make as many as they like. */
export function listDueMessages(
  { kysely }: Connection,
  { channelId, at }: { channelId: string; at: Date },
): Promise<DueMessage[]> {
  return kysely
    .selectFrom('owner_message')
    .select(['id', 'account_id', 'type', 'object_id', 'data', 'at', 'tries'])
    .where('channel_id', '=', channelId)
    .where('held_until', '<=', at)
    .orderBy(({ eb }) => eb('type', '=', 'decision.denied'))
    .orderBy('at')
    .orderBy('id')
    .limit(MAX_MESSAGES)
    .execute()
}

/** Keeps the text with which a message is sent next, for the inbox. */
export async function keepText(
  { kysely }: Connection,
  id: string,
  { title, lines, path }: AnnouncementText,
): Promise<void> {
  await kysely
    .updateTable('owner_message')
    .set({ title, body: lines.join('\n'), path })
    .where('id', '=', id)
    .execute()
}

/** Removes messages that need not be sent any more. */
export async function dropMessages({ kysely }: Connection, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await kysely.deleteFrom('owner_message').where('id', 'in', ids).execute()
}

/** Problems of a message, not of its channel: other messages may well be sent. */
const ownProblems: ReadonlySet<string> = new Set([
  'http_400',
  'http_413',
  'invalid_blocks',
  'invalid_blocks_format',
  'invalid_payload',
  'msg_blocks_too_long',
  'msg_too_long',
  'no_text',
  'too_many_attachments',
])

/** True if a message was refused for what it is. */
export function isRefusedItself(outcome: ChatOutcome): boolean {
  return outcome.status === 'failed' && ownProblems.has(outcome.problem)
}

/** Lets a message wait alone, longer each time, and gives it up after its tries. Those of its channel go on. */
export async function setAside(
  { kysely }: Connection,
  { id, tries }: Pick<DueMessage, 'id' | 'tries'>,
  at: Date,
): Promise<void> {
  const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** tries, MAX_RETRY_MS)
  await kysely
    .updateTable('owner_message')
    .set({
      tries: tries + 1,
      held_until: tries + 1 >= MAX_TRIES ? null : new Date(at.getTime() + pauseMs),
    })
    .where('id', '=', id)
    .execute()
}

/** Notes on a channel that one of its messages was refused, for its owner to see. */
export async function noteProblem(
  { kysely }: Connection,
  { id }: ClaimedChannel,
  { problem, at }: { problem: string; at: Date },
): Promise<void> {
  await kysely
    .updateTable('notification_channel')
    .set((set) => ({ failing_since: set.fn.coalesce('failing_since', set.val(at)), problem }))
    .where('id', '=', id)
    .execute()
}

export async function markMessagesSent(
  { kysely }: Connection,
  ids: readonly string[],
  at: Date,
): Promise<void> {
  await kysely
    .updateTable('owner_message')
    .set((set) => ({ sent_at: at, held_until: null, tries: set('tries', '+', 1) }))
    .where('id', 'in', ids)
    .execute()
}

/** Ends a claim after which nothing failed. @param sent messages of this claim. */
export async function releaseChannel(
  { kysely }: Connection,
  { id, type, sent_lately }: ClaimedChannel,
  { sent, at }: { sent: number; at: Date },
): Promise<void> {
  const { pauseMs, perHour, thenMs } = paces[type]
  const pause = sent_lately + sent >= perHour ? thenMs : pauseMs
  await kysely
    .updateTable('notification_channel')
    .set({
      busy_until: null,
      ...(sent === 0
        ? {}
        : {
            paused_until: new Date(at.getTime() + pause),
            failures: 0,
            failing_since: null,
            problem: null,
            sent_at: at,
          }),
    })
    .where('id', '=', id)
    .execute()
}

/** Ends a claim by a failed attempt: all messages of the channel wait, longer each time. Those that have expired are given up. */
export async function pauseChannel(
  { kysely }: Connection,
  { id, failures }: ClaimedChannel,
  {
    outcome: { problem, retryAfterSeconds },
    tried,
    at,
  }: { outcome: Extract<ChatOutcome, { status: 'failed' }>; tried: readonly string[]; at: Date },
): Promise<void> {
  const ownMs = Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures, 20), MAX_RETRY_MS)
  const pauseMs = Math.min(Math.max(ownMs, (retryAfterSeconds ?? 0) * 1_000), MAX_RETRY_MS)
  await kysely
    .updateTable('owner_message')
    .set((set) => ({ tries: set('tries', '+', 1) }))
    .where('id', 'in', tried)
    .execute()
  await kysely
    .updateTable('owner_message')
    .set({ held_until: null })
    .where('channel_id', '=', id)
    .where('held_until', 'is not', null)
    .where('expires_at', '<=', at)
    .execute()
  await kysely
    .updateTable('notification_channel')
    .set((set) => ({
      busy_until: null,
      paused_until: new Date(at.getTime() + pauseMs),
      failures: set('failures', '+', 1),
      failing_since: set.fn.coalesce('failing_since', set.val(at)),
      problem,
    }))
    .where('id', '=', id)
    .execute()
}

/** Erases the channels of an account, and what was sent to them. */
export async function eraseMessages({ kysely }: Connection, accountId: string): Promise<void> {
  await kysely.deleteFrom('notification_channel').where('account_id', '=', accountId).execute()
  await kysely.deleteFrom('owner_message').where('account_id', '=', accountId).execute()
}

/** Deletes old messages, and gives up those that wait for nothing. A budget for a key's life stays: it is told once. */
export async function sweepMessages(
  { kysely }: Connection,
  { now, days }: { now: Date; days: number },
): Promise<void> {
  await kysely
    .deleteFrom('owner_message')
    .where('at', '<', new Date(now.getTime() - days * DAY_MS))
    .where('about', 'not like', 'budget % life %')
    .execute()
}
