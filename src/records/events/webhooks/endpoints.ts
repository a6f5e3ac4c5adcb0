/** Webhook endpoints as their owners see and change them. */
import { sql } from 'kysely'
import { z } from 'zod'
import type { NewId } from '../../../core/base/ids.ts'
import { randomToken } from '../../../core/base/ids.ts'
import { seal, unseal } from '../../../core/base/seal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { readPublicUrl } from '../../../providers/public-url.ts'
import type { Connection, Statement } from '../../../storage/database.ts'
import { eventType } from '../catalogue.ts'
import { publishEvents } from '../publish.ts'

/** Endpoints of an account at most. */
const MAX_ENDPOINTS = 10
/** The secret before a rotation signs for this long, too. */
const OVERLAP_MS = 24 * 60 * 60 * 1000
const SECRET_BYTES = 32

/** Request members. */
export const endpointMembers = {
  url: z.string().max(2_048).describe('URL that receives events by POST: https, to the public internet.'),
  types: z.array(eventType).max(100).optional().describe('Types of events to receive; empty or absent: all.'),
  description: z
    .string()
    .max(200)
    .nullable()
    .optional()
    .describe('The owner’s name for the endpoint, at most 200 characters.'),
}

export const endpointId = z.string().max(64).describe('`whk_…`')

export const endpointView = z.strictObject({
  id: endpointId,
  url: z.string().describe('URL that receives the events.'),
  types: z.array(z.string()).describe('Types it receives; empty: all.'),
  description: z.string().nullable().describe('The owner’s name for the endpoint.'),
  status: z
    .enum(['active', 'disabled'])
    .describe('`disabled`: nothing is delivered, and what happens meanwhile is not delivered later.'),
  failingSince: z
    .string()
    .nullable()
    .describe('First failure since the last success, ISO 8601 UTC; null while deliveries succeed.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
})
endpointView.register(z.globalRegistry, { id: 'WebhookEndpoint' })

export const shownSecret = z
  .string()
  .nullable()
  .describe(
    'Secret that signs the deliveries: `whsec_…`. Null in a replayed answer, because it is shown once.',
  )

interface EndpointParts {
  readonly database: Connection
  readonly settings: { readonly mode: 'sandbox' | 'production'; readonly dataKey: Uint8Array }
}

export type Endpoint = NonNullable<Awaited<ReturnType<typeof findEndpoint>>>

export function viewEndpoint(endpoint: Endpoint): z.input<typeof endpointView> {
  return {
    id: endpoint.id,
    url: endpoint.url,
    types: [...endpoint.types],
    description: endpoint.description,
    status: endpoint.status,
    failingSince: endpoint.failing_since?.toISOString() ?? null,
    createdAt: endpoint.created_at.toISOString(),
  }
}

const lock: Statement = {
  name: 'webhooks_lock',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))::text as locked',
}

/**
 * Creates an endpoint, which receives what happens from now on. Call within a transaction.
 * @throws Failure `url_not_allowed`; `conflict` at the limit.
 */
export async function createEndpoint(
  { database, settings, newId }: EndpointParts & { readonly newId: NewId },
  given: { accountId: string; url: string; types: readonly string[]; description: string | null; at: Date },
): Promise<{ endpoint: Endpoint; secret: string }> {
  const { accountId, types, description, at } = given
  const url = requireUrl(settings, given.url)
  // Concurrent calls stay within the limit. The account is locked first: all publishers wait for one that waits.
  await database.call(lock, [accountId])
  // Earlier events are published without it.
  await publishEvents(database, at)
  const { count } = await database.kysely
    .selectFrom('webhook_endpoint')
    .select(({ fn }) => fn.countAll<bigint>().as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  if (Number(count) >= MAX_ENDPOINTS)
    throw new Failure(
      'conflict',
      `The account has ${MAX_ENDPOINTS} webhook endpoints, the most it may have.`,
      {
        hint: 'Delete one, or receive more types at one endpoint.',
      },
    )
  const id = newId('whk', at)
  const { secret, sealed } = newSecret(settings.dataKey, id)
  const endpoint = await database.kysely
    .insertInto('webhook_endpoint')
    .values({
      id,
      account_id: accountId,
      url,
      types,
      description,
      secret: sealed,
      created_at: at,
      busy_until: at,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return { endpoint, secret }
}

/** Finds an account's endpoint. @param isLocked locks its row until the transaction ends. */
export async function findEndpoint(
  { kysely }: Connection,
  { accountId, id, isLocked = false }: { accountId: string; id: string; isLocked?: boolean },
) {
  const query = kysely
    .selectFrom('webhook_endpoint')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
  return (isLocked ? query.forUpdate() : query).executeTakeFirst()
}

/** @throws Failure `not_found`. */
export async function requireEndpoint(
  database: Connection,
  which: Parameters<typeof findEndpoint>[1],
): Promise<Endpoint> {
  const endpoint = await findEndpoint(database, which)
  if (endpoint !== undefined) return endpoint
  throw new Failure('not_found', 'You have no such webhook endpoint.', {
    hint: 'GET /api/webhook-endpoints lists them.',
  })
}

export async function listEndpoints({ kysely }: Connection, accountId: string): Promise<Endpoint[]> {
  return kysely
    .selectFrom('webhook_endpoint')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('id', 'desc')
    .execute()
}

/**
 * Changes an endpoint. Activating it, also an active one, or another URL forgets its failures, and its open deliveries are due
 * at once. A disabled one delivers nothing more, and its open deliveries fail. @throws Failure `url_not_allowed`.
 */
export async function changeEndpoint(
  { database, settings }: EndpointParts,
  endpoint: Endpoint,
  to: {
    url?: string | undefined
    types?: string[] | undefined
    description?: string | null | undefined
    status?: 'active' | 'disabled' | undefined
  },
  at: Date,
): Promise<Endpoint> {
  const {
    url = endpoint.url,
    types = endpoint.types,
    description = endpoint.description,
    status = endpoint.status,
  } = to
  if (status === 'disabled') await failOpenDeliveries(database, endpoint.id)
  const isNew = to.status !== undefined || url !== endpoint.url
  const isDue = isNew && status === 'active'
  if (isDue)
    await database.kysely
      .updateTable('webhook_delivery')
      .set({ next_attempt_at: at })
      .where('endpoint_id', '=', endpoint.id)
      .where('status', '=', 'pending')
      .execute()
  return database.kysely
    .updateTable('webhook_endpoint')
    .set({
      url: requireUrl(settings, url),
      types,
      description,
      status,
      ...(isNew ? { failures: 0, failing_since: null, paused_until: null } : {}),
      ...(isDue ? { due_at: at } : {}),
      ...(status === 'disabled' ? { due_at: null } : {}),
    })
    .where('id', '=', endpoint.id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Disables all endpoints of a recovered account, because an intruder may have created some. */
export async function disableEndpoints(database: Connection, accountId: string): Promise<void> {
  const disabled = await database.kysely
    .updateTable('webhook_endpoint')
    .set({ status: 'disabled', due_at: null, paused_until: null })
    .where('account_id', '=', accountId)
    .where('status', '=', 'active')
    .returning('id')
    .execute()
  for (const { id } of disabled) await failOpenDeliveries(database, id)
}

async function failOpenDeliveries({ kysely }: Connection, endpointId: string): Promise<void> {
  await kysely
    .updateTable('webhook_delivery')
    .set({ status: 'failed', next_attempt_at: null })
    .where('endpoint_id', '=', endpointId)
    .where('status', '=', 'pending')
    .execute()
}

/** Deletes an endpoint with its deliveries. */
export async function deleteEndpoint({ kysely }: Connection, id: string): Promise<void> {
  await kysely.deleteFrom('webhook_endpoint').where('id', '=', id).execute()
}

/** Replaces the secret; the one before signs for a day, too. */
export async function rotateSecret(
  { database, settings }: EndpointParts,
  { id, secret: before }: Endpoint,
  at: Date,
): Promise<{ secret: string; previousUntil: Date }> {
  const { secret, sealed } = newSecret(settings.dataKey, id)
  const previousUntil = new Date(at.getTime() + OVERLAP_MS)
  await database.kysely
    .updateTable('webhook_endpoint')
    .set({ secret: sealed, previous_secret: before, previous_until: previousUntil })
    .where('id', '=', id)
    .execute()
  return { secret, previousUntil }
}

/** Writes the event that is delivered to this endpoint only. */
export async function sendPing(
  { kysely }: Connection,
  { id, account_id }: Pick<Endpoint, 'id' | 'account_id'>,
  at: Date,
): Promise<void> {
  await sql`select event_write(${account_id}, null, 'ping', 'webhook_endpoint', ${id}, '{}', ${at})`.execute(
    kysely,
  )
}

/** The secrets that sign now, the newest first. */
export function signingSecrets(
  dataKey: Uint8Array,
  endpoint: Pick<Endpoint, 'id' | 'secret' | 'previous_secret' | 'previous_until'>,
  now: Date,
): readonly [string, ...string[]] {
  const { id: owner, secret, previous_secret: previous, previous_until: until } = endpoint
  const open = (sealed: Uint8Array) => unseal(dataKey, { purpose: 'webhook', owner }, sealed)
  const isPreviousValid = previous !== null && until !== null && until > now
  return isPreviousValid ? [open(secret), open(previous)] : [open(secret)]
}

function newSecret(dataKey: Uint8Array, owner: string): { secret: string; sealed: Uint8Array } {
  const secret = `whsec_${Buffer.from(randomToken(SECRET_BYTES), 'base64url').toString('base64')}`
  return { secret, sealed: seal(dataKey, { purpose: 'webhook', owner }, secret) }
}

/** @throws Failure `url_not_allowed`. */
function requireUrl({ mode }: EndpointParts['settings'], text: string): string {
  const read = readPublicUrl(text, { loopback: mode === 'sandbox' })
  if ('url' in read) return read.url.href
  throw new Failure('url_not_allowed', read.detail, {
    reason: read.refused,
    hint: 'Use an https URL of the public internet, on port 443 or from 1024 up.',
  })
}
