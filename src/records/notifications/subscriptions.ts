/**
 * Browsers that get push messages about events of an account. A subscription outlasts the hours of the session that made
 * it, because an agent asks at night too: it ends 30 days later, or when that session is ended, as recovery from a lock does.
 */
import { createECDH } from 'node:crypto'
import { z } from 'zod'
import type { NewId } from '../../core/base/ids.ts'
import { keyedHash, seal, unseal } from '../../core/base/seal.ts'
import { Failure } from '../../core/failures/failure.ts'
import { readPublicUrl } from '../../providers/public-url.ts'
import type { PushSubscription } from '../../providers/push/port.ts'
import type { Connection } from '../../storage/database.ts'
import type { ChannelView } from './channels.ts'

/** Subscriptions of an account at most; the oldest gives way. */
const MAX_SUBSCRIPTIONS = 10
/** A subscription ends this long after it was made. A sign-in of its person in that browser makes a new one. */
const LASTS_MS = 30 * 24 * 60 * 60 * 1000
/** Size of an uncompressed P-256 point. */
const POINT_BYTES = 65
const AUTH_BYTES = 16

const bytes = (length: number) =>
  z
    .string()
    .max(128)
    .regex(/^[A-Za-z0-9_-]+={0,2}$/, 'must be base64url')
    .refine((text) => Buffer.from(text, 'base64url').length === length, `must be ${length} bytes`)

/** `PushSubscription.toJSON()` of a browser. */
export const subscriptionMembers = {
  endpoint: z.string().max(2_048).describe('URL of the push service.'),
  keys: z
    .strictObject({
      p256dh: bytes(POINT_BYTES)
        .refine(isPoint, 'must be a point of P-256')
        .describe('Public key of the browser: 65 bytes, base64url.'),
      auth: bytes(AUTH_BYTES).describe('Secret of the browser: 16 bytes, base64url.'),
    })
    .describe('Keys of the subscription.'),
}

export const subscriptionView = z.strictObject({
  id: z.string().describe('`push_…`'),
  host: z.string().describe('Host of the push service.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
})
subscriptionView.register(z.globalRegistry, { id: 'PushSubscription' })

const stored = z.object({
  endpoint: z.string(),
  keys: z.object({ p256dh: z.string(), auth: z.string() }),
})

interface SubscriptionParts {
  readonly database: Connection
  readonly settings: { readonly mode: 'sandbox' | 'production'; readonly dataKey: Uint8Array }
}

/**
 * Subscribes a browser; an endpoint of the account that lasts is subscribed anew. @param requireProof called for any other: its
 * messages say what agents ask for, and the oldest may give way to it. @returns whether the endpoint is new to the account.
 * @throws Failure `url_not_allowed`.
 */
export async function createSubscription(
  { database, settings, newId }: SubscriptionParts & { readonly newId: NewId },
  {
    accountId,
    sessionId,
    subscription,
    requireProof,
    at,
  }: {
    accountId: string
    sessionId: string
    subscription: PushSubscription
    requireProof: () => void
    at: Date
  },
): Promise<{ view: z.input<typeof subscriptionView>; isNew: boolean }> {
  const { keys } = subscription
  const read = readPublicUrl(subscription.endpoint, { loopback: settings.mode === 'sandbox' })
  if ('refused' in read)
    throw new Failure('url_not_allowed', read.detail, {
      hint: 'Send what PushManager.subscribe() of the browser answered.',
      reason: read.refused,
    })
  const id = newId('push', at)
  const { host, href: endpoint } = read.url
  const hash = keyedHash(settings.dataKey, 'push endpoint', endpoint)
  const { kysely } = database
  const known = await liveSubscriptions(kysely, { accountId, now: at })
    .select('live.id')
    .where('live.endpoint_hash', '=', hash)
    .executeTakeFirst()
  if (known === undefined) requireProof()
  await kysely.deleteFrom('push_subscription').where('endpoint_hash', '=', hash).execute()
  await kysely
    .insertInto('push_subscription')
    .values({
      id,
      account_id: accountId,
      session_id: sessionId,
      endpoint_hash: hash,
      sealed: seal(settings.dataKey, { purpose: 'push', owner: id }, JSON.stringify({ endpoint, keys })),
      host,
      created_at: at,
    })
    .execute()
  await kysely
    .deleteFrom('push_subscription')
    .where('account_id', '=', accountId)
    .where(
      'id',
      'not in',
      liveSubscriptions(kysely, { accountId, now: at }).select('live.id').limit(MAX_SUBSCRIPTIONS),
    )
    .execute()
  return { view: { id, host, createdAt: at.toISOString() }, isNew: known === undefined }
}

/** Selects the subscriptions that last, newest first. */
function liveSubscriptions(
  kysely: Connection['kysely'],
  { accountId, now }: { accountId: string; now: Date },
) {
  return kysely
    .selectFrom('push_subscription as live')
    .innerJoin('session', 'session.id', 'live.session_id')
    .where('live.account_id', '=', accountId)
    .where('session.revoked_at', 'is', null)
    .where('live.created_at', '>', new Date(now.getTime() - LASTS_MS))
    .orderBy('live.id', 'desc')
}

/** Lists the browsers that get messages. */
export async function listSubscriptions(
  { kysely }: Connection,
  { accountId, now }: { accountId: string; now: Date },
): Promise<z.input<typeof subscriptionView>[]> {
  const rows = await liveSubscriptions(kysely, { accountId, now })
    .select(['live.id', 'live.host', 'live.created_at'])
    .execute()
  return rows.map(({ id, host, created_at }) => ({ id, host, createdAt: created_at.toISOString() }))
}

/** A browser as one of the channels. */
export function viewBrowserChannel({ id, host, createdAt }: z.input<typeof subscriptionView>): ChannelView {
  const unknown = { name: null, failingSince: null, problem: null, lastSentAt: null }
  return { id, type: 'webpush', label: host, status: 'active', ...unknown, createdAt }
}

export async function listBrowserChannels(
  database: Connection,
  of: { accountId: string; now: Date },
): Promise<ChannelView[]> {
  return (await listSubscriptions(database, of)).map(viewBrowserChannel)
}

/** @throws Failure `not_found`. */
export async function deleteSubscription(
  { kysely }: Connection,
  { accountId, id }: { accountId: string; id: string },
): Promise<void> {
  const row = await kysely
    .deleteFrom('push_subscription')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .returning('id')
    .executeTakeFirst()
  if (row === undefined)
    throw new Failure('not_found', `There is no subscription ${id}.`, {
      hint: 'GET /api/notifications/subscriptions lists them.',
    })
}

/** Erases the browsers of an account. */
export async function eraseSubscriptions({ kysely }: Connection, accountId: string): Promise<void> {
  await kysely.deleteFrom('push_subscription').where('account_id', '=', accountId).execute()
}

/** Deletes the subscriptions that have ended, with their messages. */
export async function sweepSubscriptions({ kysely }: Connection, now: Date): Promise<void> {
  const ended = kysely.selectFrom('session').select('session.id').where('session.revoked_at', 'is not', null)
  await kysely
    .deleteFrom('push_subscription')
    .where(({ eb, or }) =>
      or([eb('session_id', 'in', ended), eb('created_at', '<=', new Date(now.getTime() - LASTS_MS))]),
    )
    .execute()
}

/** Removes a subscription that its push service or its session has ended, with its messages. */
export async function forgetSubscription({ kysely }: Connection, id: string): Promise<void> {
  await kysely.deleteFrom('push_subscription').where('id', '=', id).execute()
}

/** Opens a sealed subscription. */
export function openSubscription(
  dataKey: Uint8Array,
  { id, sealed }: { id: string; sealed: Uint8Array },
): PushSubscription {
  return stored.parse(JSON.parse(unseal(dataKey, { purpose: 'push', owner: id }, sealed)))
}

/** True for a point on the curve: encrypting for any other would fail at each message. */
function isPoint(text: string): boolean {
  const curve = createECDH('prime256v1')
  // Any key shows whether the point is on the curve.
  curve.setPrivateKey(Buffer.alloc(32, 1))
  try {
    curve.computeSecret(Buffer.from(text, 'base64url'))
    return true
  } catch {
    return false
  }
}
