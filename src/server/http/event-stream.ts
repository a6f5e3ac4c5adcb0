/**
 * The stream of an account's events as Server-Sent Events. The client's reading sets the pace: one page is in memory.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
import { accepts } from 'hono/accepts'
import { type AccountPrincipal, includesRole, type Principal } from '../../core/base/principal.ts'
import { timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'
import { requireCaller, type Services } from '../../kernel/context.ts'
import type { Tool } from '../../kernel/tool.ts'
import { findKey, findSession } from '../../people/identity/store.ts'
import { type EventView, viewEvent } from '../../records/events/catalogue.ts'
import { publishEvents } from '../../records/events/publish.ts'
import {
  type EventReader,
  eventQuery,
  findLastEvent,
  findSequence,
  readEvents,
} from '../../records/events/read-events.ts'
import type { HttpContext } from './request.ts'

/** Time until a comment, so that proxies do not close an idle stream. */
const QUIET_MS = 15_000
const PAGE = 100
const headers = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no', Vary: 'Accept' }

/** True if the tool has a stream and the client prefers it. */
export function wantsStream(c: HttpContext, tool: Tool): boolean {
  if (tool.stream !== true) return false
  c.header('Vary', 'Accept')
  const supports = ['application/json', 'text/event-stream']
  return accepts(c, { header: 'Accept', supports, default: 'application/json' }) === 'text/event-stream'
}

/** Adds the position that a reconnecting client has received to its query. */
export function withLastEventId(c: HttpContext, raw: unknown): unknown {
  const last = c.req.header('last-event-id')
  return last === undefined || last === '' ? raw : { ...Object(raw), after: last }
}

/**
 * Opens the stream for a call that has passed the gates. It ends with the client, the process, the credential or its scope.
 * HEAD has the fields alone: a body that is never read is never cancelled either, and would count as a stream for ever.
 * @throws Failure `rate_limited` when the account has too many streams here; `invalid_request`.
 */
export async function openEventStream(
  services: Pick<Services, 'database' | 'clock' | 'log' | 'eventWatches'>,
  {
    principal: given,
    tool,
    raw,
    ending,
    isHead,
  }: { principal: Principal; tool: Tool; raw: unknown; ending: AbortSignal; isHead: boolean },
): Promise<Response> {
  const { database, eventWatches, log } = services
  const principal = requireCaller({ principal: given })
  const { type: types = null, after } = eventQuery.parse(raw)
  const reader = {
    accountId: principal.account.id,
    keyId: principal.kind === 'key' ? principal.key.id : null,
  }
  if (isHead) return new Response(null, { headers })
  const watch = eventWatches.open(reader.accountId)
  if (watch === undefined)
    throw new Failure('rate_limited', 'The account has too many open streams of events.', {
      retryAfter: 60,
      hint: 'Close a stream: one is enough for all types.',
    })
  const closed = new AbortController()
  const signal = AbortSignal.any([closed.signal, ending])
  const end = () => {
    closed.abort()
    watch.close()
  }
  const start = await findStart(services, reader, after).catch((error: unknown) => {
    end()
    throw error
  })
  let { sequence } = start
  const encoder = new TextEncoder()
  // A client that loses the connection before the first event comes back to this position.
  let ahead: string | null = `id: ${start.id}\n\n`

  /** The next text to send; null: the stream is over. */
  async function next(): Promise<string | null> {
    const quietAt = timers.monotonic() + QUIET_MS
    while (!signal.aborted) {
      const head = watch?.head() ?? 0n
      const page = await readEvents(database, reader, { after: sequence, types, limit: PAGE })
      if (page.length > 0) {
        // The credential is checked after the read, so that nothing is sent that happened after its end.
        if (!(await isStillAllowed(services, principal, tool))) return null
        sequence = page.at(-1)?.sequence ?? sequence
        return page.map((event) => formatBlock(viewEvent(event))).join('')
      }
      if (head > sequence) sequence = head
      // Events that this reader does not see wake it, and are no sign of life to it.
      await watch?.wait(sequence, quietAt - timers.monotonic(), signal)
      if (signal.aborted || timers.monotonic() < quietAt) continue
      return (await isStillAllowed(services, principal, tool)) ? ': quiet\n\n' : null
    }
    return null
  }

  // A stream that its client left is closed already.
  const body = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const text = ahead ?? (await next())
          ahead = null
          // A client that went away has closed it.
          if (closed.signal.aborted) return
          if (text !== null) return controller.enqueue(encoder.encode(text))
          end()
          controller.close()
        } catch (err) {
          if (closed.signal.aborted) return
          end()
          log.warn({ err }, 'a stream of events failed; its client reconnects')
          controller.close()
        }
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  )
  return new Response(body, { headers })
}

/** The position after which the stream begins: the given one, or the end. */
async function findStart(
  { database, clock }: Pick<Services, 'database' | 'clock'>,
  reader: EventReader,
  after: string | undefined,
): Promise<{ id: string; sequence: bigint }> {
  if (after !== undefined) return { id: after, sequence: await findSequence(database, reader, after) }
  await publishEvents(database, clock())
  return (await findLastEvent(database, reader)) ?? { id: '0', sequence: 0n }
}

function formatBlock(event: EventView): string {
  return `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}

/** Checks the credential as it is now. */
async function isStillAllowed(
  { database, clock }: Pick<Services, 'database' | 'clock'>,
  principal: AccountPrincipal,
  { scopes, role }: Pick<Tool, 'scopes' | 'role'>,
): Promise<boolean> {
  const now = clock()
  if (principal.kind === 'session') {
    const found = await findSession(database, principal.session.id, now)
    if (found?.account.status !== 'active' || found.person.status !== 'active') return false
    return found.account.id === principal.account.id && includesRole(found.person.role, role)
  }
  const found = await findKey(database, { id: principal.key.id })
  if (found === undefined) return false
  const { key, account } = found
  const isOver = key.expiresAt !== null && key.expiresAt <= now
  const isActive = key.status === 'active' && account.status === 'active' && !isOver
  return isActive && scopes.every((scope) => key.scopes.includes(scope))
}
