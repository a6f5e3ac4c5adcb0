/**
 * Delivers events to webhook endpoints, at least once. A gateway claims an endpoint for a while, so that its deliveries are
 * sent by one gateway at a time, a few side by side. An endpoint that only fails is tried rarely, with one delivery.
 */
import type { Clock } from '../../../core/base/clock.ts'
import type { Log } from '../../../core/base/log.ts'
import { timers } from '../../../core/base/timers.ts'
import { VERSION } from '../../../core/base/version.ts'
import { isPublicFetchError, type PublicFetch } from '../../../providers/public-fetch.ts'
import { signWebhook } from '../../../providers/standard-webhooks.ts'
import { type Connection, callForRow, type Statement } from '../../../storage/database.ts'
import { type StoredEvent, viewEvent } from '../catalogue.ts'
import { signingSecrets } from './endpoints.ts'

const TIMEOUT_MS = 10_000
/** The answer's body is of no interest, but reading it lets the connection be used again. */
const MAX_ANSWER_BYTES = 4_096
/** Deliveries side by side to one endpoint. */
const SIDE_BY_SIDE = 8
/** Longer than one round of deliveries. */
const CLAIM_MS = 15_000
/** Failures in a row after which only one delivery is tried, after pauses that double. */
const MANY_FAILURES = 10
const FIRST_PAUSE_MS = 5_000
const MAX_PAUSE_MS = 6 * 60 * 60 * 1000
/** From then on a failed attempt is the last, and an endpoint that only failed is disabled. */
const GIVES_UP_MS = 48 * 60 * 60 * 1000

export interface DeliveryParts {
  readonly database: Connection
  readonly clock: Clock
  readonly log: Log
  readonly settings: { readonly mode: 'sandbox' | 'production'; readonly dataKey: Uint8Array }
  readonly fetch: PublicFetch
}

const claimStatement: Statement = {
  name: 'webhook_claim',
  text: 'select id, account_id, failures from webhook_claim($1, $2, $3)',
}

/** Then a busy endpoint goes behind those that wait: slow receivers never hold every worker for good. */
const TURN_MS = 30_000

/** An endpoint that this gateway delivers to. */
export interface ClaimedEndpoint {
  readonly id: string
  readonly account_id: string
  readonly failures: number
}

/** Claims endpoints with deliveries that are due. */
export function claimEndpoints(
  { database, clock }: DeliveryParts,
  limit: number,
): Promise<ClaimedEndpoint[]> {
  const now = clock()
  const until = new Date(now.getTime() + CLAIM_MS)
  return database.call<ClaimedEndpoint>(claimStatement, [limit, now, until])
}

const dueStatement: Statement = {
  name: 'webhook_due',
  text: `select d.id, d.tries, w.url, w.secret, w.previous_secret, w.previous_until, e.account_id, e.sequence, e.id as event_id,
      e.agent_id, e.type, e.object_kind, e.object_id, e.data, e.at, e.task
    from webhook_delivery d join webhook_endpoint w on w.id = d.endpoint_id
      cross join lateral (
        select * from published_event p
        where p.account_id = d.account_id and p.last_sequence >= d.sequence and p.id = d.event_id
        order by p.last_sequence limit 1
      ) e
    where d.endpoint_id = $1 and d.status = 'pending' and d.next_attempt_at <= $2
    order by d.next_attempt_at, d.id
    limit $3`,
}

type StoredColumns = Omit<StoredEvent, 'id'>

/** A delivery with its event, and its endpoint as its owner has set it by now. */
interface DueRow extends StoredColumns {
  readonly id: string
  readonly tries: number
  readonly url: string
  readonly secret: Uint8Array
  readonly previous_secret: Uint8Array | null
  readonly previous_until: Date | null
  readonly event_id: string
}

const recordStatement: Statement = {
  name: 'webhook_record',
  text: 'select webhook_record($1, $2::jsonb, $3, $4, $5, $6) as status',
}

/**
 * Delivers to a claimed endpoint until nothing is due, it is paused, or others have waited for long enough. @returns `given_up` if it
 * disabled the endpoint.
 */
export async function deliverTo(
  parts: DeliveryParts,
  endpoint: ClaimedEndpoint,
  signal: AbortSignal,
): Promise<'given_up' | 'done'> {
  const { database, clock } = parts
  let { failures } = endpoint
  const leavesAt = clock().getTime() + TURN_MS
  while (!signal.aborted) {
    const isPaused = failures >= MANY_FAILURES
    const due = await database.call<DueRow>(dueStatement, [endpoint.id, clock(), isPaused ? 1 : SIDE_BY_SIDE])
    const results = await Promise.all(due.map((delivery) => attemptDelivery(parts, endpoint.id, delivery)))
    const now = clock()
    const isReached = results.some(({ is_delivered }) => is_delivered)
    failures = isReached ? 0 : failures + results.length
    const isPausing = failures >= MANY_FAILURES
    const isOver = due.length === 0 || isPausing || now.getTime() >= leavesAt
    const { status } = await callForRow<{ status: 'active' | 'disabled' | 'given_up' | null }>(
      database,
      recordStatement,
      [
        endpoint.id,
        JSON.stringify(results),
        now,
        new Date(now.getTime() - GIVES_UP_MS),
        isPausing ? new Date(now.getTime() + pauseMs(failures - MANY_FAILURES)) : null,
        isOver ? now : new Date(now.getTime() + CLAIM_MS),
      ],
    )
    if (status === 'given_up') return 'given_up'
    if (status !== 'active' || isOver) return 'done'
  }
  return 'done'
}

/** @param earlier failures before. */
function pauseMs(earlier: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(earlier, 20), MAX_PAUSE_MS)
}

async function attemptDelivery(
  { clock, settings, fetch, log }: DeliveryParts,
  endpointId: string,
  { id, tries, url, secret, previous_secret, previous_until, event_id, ...event }: DueRow,
) {
  const at = clock()
  const startedAt = timers.monotonic()
  const body = JSON.stringify(viewEvent({ ...event, id: event_id }))
  const sealed = { id: endpointId, secret, previous_secret, previous_until }
  const signed = signWebhook({ id: event_id, body, at }, ...signingSecrets(settings.dataKey, sealed, at))
  const answer = await fetch({
    url,
    method: 'POST',
    headers: { ...signed, 'content-type': 'application/json', 'user-agent': `Bursar/${VERSION}` },
    body,
    maxBytes: MAX_ANSWER_BYTES,
    timeoutMs: TIMEOUT_MS,
    loopback: settings.mode === 'sandbox',
  }).then(
    ({ status }) => ({ status, problem: status >= 200 && status < 300 ? null : 'status' }),
    (error: unknown) => {
      if (!isPublicFetchError(error))
        log.error({ err: error, endpointId }, 'a delivery failed for an unknown reason')
      return { status: null, problem: isPublicFetchError(error) ? error.problem : 'protocol' }
    },
  )
  return {
    id,
    is_delivered: answer.problem === null,
    attempt: {
      at: at.toISOString(),
      httpStatus: answer.status,
      ms: Math.round(timers.monotonic() - startedAt),
      error: answer.problem,
    },
    next: new Date(clock().getTime() + pauseMs(tries)).toISOString(),
  }
}
