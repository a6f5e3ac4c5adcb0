/**
 * Lets calls wait for the owner's approval. A client that can open URLs gets the approval page, where the owner signs
 * in and decides; no response of a client or model approves anything.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-mode-elicitation-requests
 */
import { z } from 'zod'
import { parseJson } from '../src/core/base/json.ts'
import { createPoller } from '../src/core/base/poller.ts'
import { timers } from '../src/core/base/timers.ts'
import type { Services } from '../src/kernel/context.ts'
import { findDecidedApprovals } from '../src/kernel/decided-approvals.ts'
import type { McpCaller } from './caller.ts'
import { currentPrincipal } from './current-principal.ts'
import type { ToolResult } from './result.ts'

/** Poll interval for decisions. */
const POLL_INTERVAL_MS = 1_000

/** Maximum waiting calls per key. Further calls return `approval_required` immediately. */
const MAX_WAITING = 10

export interface PendingApproval {
  readonly id: string
  /** Description of the call. */
  readonly message: string
  /** URL of the approval page. */
  readonly url: string
}

/** @property look called on each poll while the approval is pending. */
interface Waiting {
  readonly withinMs: number
  readonly signal: AbortSignal
  readonly look?: () => Promise<void>
}

export interface Approvals {
  /** Returns the approval that a result waits for, or null. */
  parsePending(result: ToolResult): PendingApproval | null
  /**
   * Waits until the approval is decided and the approved call has finished. @returns the current caller, for
   * repeating the call; null on timeout, or when the key is no longer valid.
   */
  awaitDecision(caller: McpCaller, approval: PendingApproval, waiting: Waiting): Promise<McpCaller | null>
}

/** Tells a client that asked for progress, at each poll, that the call still waits. */
export function reportWaiting(
  progressToken: string | number | undefined,
  notify: (progress: {
    method: 'notifications/progress'
    params: { progressToken: string | number; progress: number; message: string }
  }) => Promise<void>,
): () => Promise<void> {
  let polls = 0
  return async () => {
    polls += 1
    if (progressToken === undefined) return
    const params = { progressToken, progress: polls, message: 'Waiting for the owner.' }
    await notify({ method: 'notifications/progress', params })
  }
}

const problem = z.looseObject({
  code: z.literal('approval_required'),
  detail: z.string(),
  approvalId: z.string(),
  approvalUrl: z.string(),
  // A reason means that the approval is already decided.
  reason: z.undefined().optional(),
})

export function createApprovals({
  database,
  clock,
  onCalendar,
  log,
}: Pick<Services, 'database' | 'clock' | 'onCalendar' | 'log'>): Approvals {
  const waiters = createPoller({
    everyMs: POLL_INTERVAL_MS,
    look: (ids) => findDecidedApprovals(database, { ids, now: onCalendar(clock()) }),
  })
  /** Number of waiting calls, by key. */
  const waitingByKey = new Map<string, number>()
  return {
    parsePending({ isError, content: [{ text }] }) {
      if (isError !== true) return null
      const { data } = problem.safeParse(parseJson(text))
      if (data === undefined) return null
      const { approvalId: id, detail: message, approvalUrl: url } = data
      return { id, message, url }
    },
    awaitDecision: (caller, approval, waiting) =>
      awaitDecision(caller, approval, waiting).catch((err: unknown) => {
        // The call already has a result: it requires approval.
        log.warn({ err, approvalId: approval.id }, 'waiting for an approval failed')
        return null
      }),
  }

  async function awaitDecision(
    caller: McpCaller,
    { id }: PendingApproval,
    { withinMs, signal, look }: Waiting,
  ): Promise<McpCaller | null> {
    const keyId = caller.principal.key.id
    const count = waitingByKey.get(keyId) ?? 0
    // The result says how to retry.
    if (count >= MAX_WAITING) return null
    waitingByKey.set(keyId, count + 1)
    try {
      const stop = AbortSignal.any([signal, timers.deadline(withinMs)])
      const ended = waiters.until(id, stop)
      const isOpen = async () => {
        const wait = timers.sleep(POLL_INTERVAL_MS, { signal: stop }).then(
          () => true,
          () => false,
        )
        return Promise.race([ended.then(() => false), wait])
      }
      if (look !== undefined) while (await isOpen()) await look()
      if ((await ended) === undefined) return null
      const now = clock()
      // The owner may have revoked the key in the meantime.
      const principal = await currentPrincipal(database, caller, now)
      return principal === null ? null : { ...caller, principal, now }
    } finally {
      const left = (waitingByKey.get(keyId) ?? 1) - 1
      if (left === 0) waitingByKey.delete(keyId)
      else waitingByKey.set(keyId, left)
    }
  }
}
