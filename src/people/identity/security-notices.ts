/**
 * Security notices: inform the owner, at every address, about additions to and removals from the account. They are written
 * with the change and sent after it, as many in an hour as the address has budget for; the others are gathered into one
 * message. A notice that cannot be sent does not undo the change, and is retried for a day.
 */
import type { Log } from '../../core/base/log.ts'
import type { Messages } from '../../providers/messages/port.ts'
import type { RateLimit, RateLimiter } from '../../providers/rate-limiter/port.ts'
import type { Connection, Database, Statement } from '../../storage/database.ts'
import { unsealAddress } from './codes/destinations.ts'
import { messageBudget } from './message-budget.ts'

const events = {
  factor_begun: 'Enrollment of a second factor was started for',
  factor_activated: 'A second factor was activated for',
  passkey_added: 'A passkey was added to',
  address_added: 'A sign-in address was added to',
  signer_added: 'A wallet signing key was added to',
  factor_removed: 'The second factor was removed from',
  passkey_removed: 'A passkey was removed from',
  device_allowed: 'A program on another device was signed in to',
  agent_revoked: 'An agent’s key was revoked for',
  api_key_revoked: 'An API key was revoked for',
  browser_added: 'A browser that gets push messages was added to',
  browser_removed: 'A browser that got push messages was removed from',
  channel_added: 'A channel that gets messages was added to',
  channel_removed: 'A channel that got messages was removed from',
  mails_reduced: 'Mails about requests for approval were reduced for',
  session_ended: 'A session was ended by another one of',
  sessions_ended: 'All other sessions were ended by one of',
  person_joined: 'A person who was invited joined',
  person_removed: 'You are no longer one of the people of',
  role_changed: 'Your role was changed in',
  quorum_loosened: 'Fewer people, or none, must agree to payments of',
  recovery_waits: 'An administrator was asked to unlock',
  recovery_released: 'An administrator unlocked, after a recovery, and paused the keys of',
  recovery_blocked: 'An administrator refused to unlock',
} as const

type Notice = keyof typeof events

interface SendingParts {
  readonly settings: {
    readonly dataKey: Uint8Array
    readonly webOrigins: readonly string[]
    readonly rateLimits: ReadonlyMap<string, RateLimit>
  }
  readonly messages: Messages
  readonly rateLimiter: Pick<RateLimiter, 'take'>
  readonly log: Log
}

export interface NoticeParts extends SendingParts {
  readonly database: Connection
  readonly afterCommit: (work: (database: Database) => Promise<void>) => void
}

/** The change's own request sends a notice within this time; then a job does. */
const OWN_MS = 10_000
/** Longer than one attempt. */
const CLAIM_MS = 60_000
const FIRST_RETRY_MS = 15_000
const MAX_RETRY_MS = 60 * 60 * 1000
const LIFETIME_MS = 24 * 60 * 60 * 1000

/** Writes a notice to every address, and sends it after the commit. Accounts without an address receive none. */
export async function sendSecurityNotice(
  { database, afterCommit, ...parts }: NoticeParts,
  { accountId, notice, at }: { accountId: string; notice: Notice; at: Date },
): Promise<void> {
  const addresses = await database.kysely
    .selectFrom('login_destination')
    .select(['destination_hash', 'channel'])
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .execute()
  const told = addresses.filter(({ channel }) => parts.messages.channels.includes(channel))
  if (told.length === 0) return
  const heldUntil = new Date(at.getTime() + OWN_MS)
  await database.kysely
    .insertInto('security_notice')
    .values(told.map(({ destination_hash }) => ({ destination_hash, notice, at, held_until: heldUntil })))
    .execute()
  afterCommit(async (pool) => {
    const due = { dueBy: heldUntil, now: at }
    await Promise.all(
      told.map(({ destination_hash: hash }) => sendTo({ ...parts, database: pool }, { hash, ...due })),
    )
  })
}

/** Sends the notices that wait at some addresses. @returns the number of addresses. */
export async function sendWaitingNotices(
  parts: SendingParts & { readonly database: Database },
  { most, now }: { most: number; now: Date },
): Promise<number> {
  const due = await parts.database.kysely
    .selectFrom('security_notice')
    .select('destination_hash')
    .distinct()
    .where('held_until', '<=', now)
    .limit(most)
    .execute()
  await Promise.all(due.map(({ destination_hash: hash }) => sendTo(parts, { hash, dueBy: now, now })))
  return due.length
}

// $1 destination, $2 due by, $3 claimed until.
const claimStatement: Statement = {
  name: 'security_notice_claim',
  text: `with free as materialized (
      select id from security_notice where destination_hash = $1 and held_until <= $2 for update skip locked
    )
    update security_notice n set held_until = $3, tries = n.tries + 1
    from free where n.id = free.id returning n.id, n.notice, n.at, n.tries`,
}

interface ClaimedNotice {
  readonly id: bigint
  readonly notice: string
  readonly at: Date
  readonly tries: number
}

/** Sends what waits at an address in one message. */
async function sendTo(
  parts: SendingParts & { readonly database: Database },
  { hash, dueBy, now }: { hash: string; dueBy: Date; now: Date },
): Promise<void> {
  const { database, messages, settings, log } = parts
  const until = new Date(now.getTime() + CLAIM_MS)
  const claimed = await database.call<ClaimedNotice>(claimStatement, [hash, dueBy, until])
  if (claimed.length === 0) return
  try {
    const waitSeconds = await takeMessage(parts, hash, now)
    if (waitSeconds > 0) return await hold(database, claimed, new Date(now.getTime() + waitSeconds * 1000))
    const address = await database.kysely
      .selectFrom('login_destination')
      .select(['channel', 'sealed_address as sealed'])
      .where('destination_hash', '=', hash)
      .executeTakeFirst()
    if (address === undefined) return
    const { channel, sealed } = address
    const destination = unsealAddress(settings, { hash, sealed })
    const text = composeText(claimed, settings)
    await messages.send({
      channel,
      destination,
      subject: 'A change to your Bursar account',
      text,
      code: '',
      at: now,
    })
  } catch (err) {
    log.warn({ err }, 'a security notice was not sent and will be retried')
    const tries = Math.min(...claimed.map((notice) => notice.tries))
    const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** Math.min(tries - 1, 20), MAX_RETRY_MS)
    return hold(database, claimed, new Date(now.getTime() + pauseMs), new Date(now.getTime() - LIFETIME_MS))
  }
  await database.kysely.deleteFrom('security_notice').where('id', 'in', listIds(claimed)).execute()
}

/** Counts a message to an address. @returns seconds to wait; 0 if it may be sent. */
async function takeMessage(
  { rateLimiter, settings }: Pick<SendingParts, 'rateLimiter' | 'settings'>,
  hash: string,
  now: Date,
): Promise<number> {
  const { rateClass, client } = messageBudget({ hash }, 'notice')
  const limit = settings.rateLimits.get(rateClass)
  if (limit === undefined) return 0
  const verdict = await rateLimiter.take(`${rateClass}:${client}`, { ...limit, restarts: false }, now)
  return verdict.allowed ? 0 : verdict.resetSeconds
}

/** Waits with claimed notices. @param givenUpBefore older ones are deleted. */
async function hold(
  { kysely }: Connection,
  claimed: readonly ClaimedNotice[],
  until: Date,
  givenUpBefore: Date | null = null,
): Promise<void> {
  await kysely
    .updateTable('security_notice')
    .set({ held_until: until })
    .where('id', 'in', listIds(claimed))
    .execute()
  if (givenUpBefore === null) return
  await kysely
    .deleteFrom('security_notice')
    .where('id', 'in', listIds(claimed))
    .where('at', '<', givenUpBefore)
    .execute()
}

function listIds(claimed: readonly ClaimedNotice[]): bigint[] {
  return claimed.map(({ id }) => id)
}

/** One sentence for each kind of change, because texts are paid by their length. */
function composeText(
  claimed: readonly ClaimedNotice[],
  { webOrigins: [page = ''] }: SendingParts['settings'],
): string {
  const sentences = Object.entries(events).flatMap(([notice, event]) => {
    const times = claimed.flatMap((one) => (one.notice === notice ? [one.at.toISOString()] : [])).sort()
    const last = times.at(-1)
    if (last === undefined) return []
    const when = times.length === 1 ? ` on ${last}` : `, ${times.length} times, last on ${last}`
    return [`${event} your Bursar account${when}.`]
  })
  return `${sentences.join(' ')} If that was not you, lock the account and recover it at ${page}/sign-in.`
}
