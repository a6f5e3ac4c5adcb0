/**
 * The notification stream of a session: announces changes of the callable tools, and ends with the session or the
 * key.
 */
import { timers } from '../src/core/base/timers.ts'
import type { Services } from '../src/kernel/context.ts'
import { findMcpSession, type McpSession } from '../src/people/mcp-sessions/sessions.ts'
import type { McpCaller } from './caller.ts'
import { currentPrincipal } from './current-principal.ts'
import { openEventStream } from './event-stream.ts'
import type { Offer } from './offer.ts'

/** Poll interval; tools/list is always current. */
const POLL_INTERVAL_MS = 5_000

/** Each session has one stream per instance; a new one replaces the old. */
export function createWatch(
  { database, clock, log }: Pick<Services, 'database' | 'clock' | 'log'>,
  { offer, ending }: { offer: Offer; ending: AbortSignal },
): (caller: McpCaller, watched: { id: string; session: McpSession }) => Response {
  const open = new Map<string, AbortController>()

  /** Names of the callable tools; null when the session or key has ended. */
  async function readOffer(caller: McpCaller, id: string): Promise<string | null> {
    const now = clock()
    const { key } = caller.principal
    if ((await findMcpSession(database, { id, keyId: key.id, now })) === undefined) return null
    const principal = await currentPrincipal(database, caller, now)
    return principal === null ? null : listNames({ ...caller, principal })
  }
  const listNames = (caller: McpCaller) =>
    offer
      .tools(caller)
      .map(({ name }) => name)
      .join(' ')

  return (caller, { id, session }) => {
    const name = Buffer.from(session.idHash).toString('hex')
    open.get(name)?.abort()
    const ended = new AbortController()
    open.set(name, ended)
    const stream = openEventStream({ headers: { 'mcp-session-id': id }, onCancel: () => ended.abort() })
    const follow = async () => {
      const signal = AbortSignal.any([ended.signal, ending])
      let known = listNames(caller)
      while (!signal.aborted) {
        await timers.sleep(POLL_INTERVAL_MS, { signal }).catch(() => {})
        if (signal.aborted) return
        const now = await readOffer(caller, id)
        if (now === null) return
        if (now !== known) stream.write({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
        known = now
      }
    }
    void follow()
      .catch((err: unknown) => log.warn({ err }, 'an MCP session stream failed'))
      .finally(() => {
        if (open.get(name) === ended) open.delete(name)
        stream.end()
      })
    return stream.response
  }
}
