/**
 * Channels by which an owner is told of requests for approval and of what needs attention: Slack, Telegram, and mail at once.
 * Invariants: a channel only tells, and nothing that comes from it decides; its secret is sealed, and is shown to nobody.
 */
import { z } from 'zod'
import type { NewId } from '../../core/base/ids.ts'
import { seal, unseal } from '../../core/base/seal.ts'
import { visibleName } from '../../core/base/untrusted-text.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { ChatTarget } from '../../providers/chats/port.ts'
import { readPublicUrl } from '../../providers/public-url.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'

/** Channels of an account at most, browsers not counted. */
const MAX_CHANNELS = 10
const MAX_NAME = 60
/** Failures in a row from which on an owner is shown that a channel fails: one may be chance. */
const SHOWN_FAILURES = 3

export const channelName = z.string().max(MAX_NAME).optional().describe('Your name for it.')

export const channelMembers = {
  webhookUrl: z.string().max(2_048).describe('Of Slack: URL of an incoming webhook, a secret.'),
  botToken: z
    .string()
    .regex(/^\d{1,20}:[A-Za-z0-9_-]{1,128}$/, 'must be the token that BotFather gave')
    .describe('Of Telegram: token of your bot, a secret.'),
  chatId: z
    .union([z.string().regex(/^(-?\d{1,20}|@\w{3,64})$/, 'must be a number, or @name'), z.int()])
    .describe('Of Telegram: chat that the bot writes to.'),
  address: z.email().max(254).describe('Of e-mail: an address that you sign in with.'),
}

export const channelView = z.strictObject({
  id: z.string().describe('`ntf_…`, or `push_…` of a browser.'),
  type: z.enum(['slack', 'telegram', 'email', 'webpush']).describe('Kind of channel.'),
  name: z.string().nullable().describe('Your name for it.'),
  label: z.string().describe('Host, chat or masked address: no secret.'),
  status: z
    .enum(['active', 'failing'])
    .describe('`failing`: the last three attempts failed; it is tried on.'),
  failingSince: z.string().nullable().describe('First failure since the last success, ISO 8601 UTC.'),
  problem: z.string().nullable().describe('Code of the last failure, such as `http_404` or `unreachable`.'),
  lastSentAt: z.string().nullable().describe('ISO 8601 UTC; null: nothing was sent yet.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
})
channelView.register(z.globalRegistry, { id: 'NotificationChannel' })

export type ChannelView = z.output<typeof channelView>

/** Where a new channel leads. @property label no secret. */
export type NewTarget =
  | ChatTarget
  | { readonly type: 'email'; readonly destinationHash: string; readonly label: string }

interface ChannelParts {
  readonly database: Connection
  readonly settings: { readonly mode: 'sandbox' | 'production'; readonly dataKey: Uint8Array }
}

const lock: Statement = {
  name: 'channels_lock',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 1))::text as locked',
}

/** Makes a channel, which is told what happens from now on. Call within a transaction. @throws Failure `conflict`, `url_not_allowed`. */
export async function createChannel(
  { database, settings, newId }: ChannelParts & { readonly newId: NewId },
  { accountId, target, name, at }: { accountId: string; target: NewTarget; name: string | null; at: Date },
): Promise<ChannelView> {
  const label = readLabel(settings, target)
  // Concurrent calls stay within the limit.
  await callForRow(database, lock, [accountId])
  const known = await database.kysely
    .selectFrom('notification_channel')
    .select('destination_hash')
    .where('account_id', '=', accountId)
    .execute()
  if (known.length >= MAX_CHANNELS)
    throw new Failure('conflict', `The account has ${MAX_CHANNELS} channels, the most it may have.`, {
      hint: 'Remove one first.',
    })
  if (
    target.type === 'email' &&
    known.some(({ destination_hash }) => destination_hash === target.destinationHash)
  )
    throw new Failure('conflict', 'The address has a channel already.', {
      hint: 'GET /api/notifications/channels lists them.',
    })
  const id = newId('ntf', at)
  const row = await database.kysely
    .insertInto('notification_channel')
    .values({
      id,
      account_id: accountId,
      type: target.type,
      name: name === null || name.trim() === '' ? null : visibleName(name, MAX_NAME),
      label,
      sealed:
        target.type === 'email'
          ? null
          : seal(settings.dataKey, { purpose: 'message channel', owner: id }, JSON.stringify(target)),
      destination_hash: target.type === 'email' ? target.destinationHash : null,
      created_at: at,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return viewChannel(row)
}

/** @throws Failure `url_not_allowed`. */
function readLabel({ mode }: ChannelParts['settings'], target: NewTarget): string {
  if (target.type === 'email') return target.label
  if (target.type === 'telegram') return `chat ${target.chatId}`
  const read = readPublicUrl(target.webhookUrl, { loopback: mode === 'sandbox' })
  if ('url' in read) return read.url.host
  // The detail names parts of the host alone, and never the path, which is the secret.
  throw new Failure('url_not_allowed', read.detail, {
    reason: read.refused,
    hint: 'Send the https URL that Slack shows under Incoming Webhooks.',
  })
}

type ChannelRow = Awaited<ReturnType<typeof readChannels>>[number]

function readChannels({ kysely }: Connection, accountId: string) {
  return kysely
    .selectFrom('notification_channel')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('id', 'desc')
    .execute()
}

export async function listChannels(database: Connection, accountId: string): Promise<ChannelView[]> {
  return (await readChannels(database, accountId)).map(viewChannel)
}

function viewChannel(row: ChannelRow): ChannelView {
  return {
    id: row.id,
    type: row.type,
    name: row.name,
    label: row.label,
    status: row.failures >= SHOWN_FAILURES ? 'failing' : 'active',
    failingSince: row.failing_since?.toISOString() ?? null,
    problem: row.problem,
    lastSentAt: row.sent_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
  }
}

/** Removes a channel and what waits for it; what was sent stays in the inbox. @throws Failure `not_found`. */
export async function deleteChannel(
  { kysely }: Connection,
  { accountId, id }: { accountId: string; id: string },
): Promise<void> {
  const row = await kysely
    .deleteFrom('notification_channel')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .returning('id')
    .executeTakeFirst()
  if (row === undefined)
    throw new Failure('not_found', 'You have no such channel.', {
      hint: 'GET /api/notifications/channels lists them.',
    })
  await kysely.deleteFrom('owner_message').where('channel_id', '=', id).where('sent_at', 'is', null).execute()
}

/** Removes all channels of an account that was recovered, because an intruder may have made some. */
export async function removeChannels({ kysely }: Connection, accountId: string): Promise<void> {
  await kysely.deleteFrom('notification_channel').where('account_id', '=', accountId).execute()
  await kysely
    .deleteFrom('owner_message')
    .where('account_id', '=', accountId)
    .where('sent_at', 'is', null)
    .execute()
}

const target: z.ZodType<ChatTarget> = z.discriminatedUnion('type', [
  z.object({ type: z.literal('slack'), webhookUrl: z.string() }),
  z.object({ type: z.literal('telegram'), botToken: z.string(), chatId: z.string() }),
])

/** Opens a sealed channel. */
export function openChannel(
  dataKey: Uint8Array,
  { id, sealed }: { id: string; sealed: Uint8Array },
): ChatTarget {
  return target.parse(JSON.parse(unseal(dataKey, { purpose: 'message channel', owner: id }, sealed)))
}
