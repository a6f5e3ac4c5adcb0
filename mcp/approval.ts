/**
 * Calls that wait for the owner. A client that can open pages for its user is given the page where the owner decides,
 * signed in there; nothing that a client or a model answers approves anything.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-mode-elicitation-requests
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { parseJson } from '../src/base/json.ts'
import { createWaiters } from '../src/base/waiters.ts'
import type { Services } from '../src/kernel/context.ts'
import { waitForDecidedApprovals } from '../src/kernel/decided-approvals.ts'
import type { McpCaller } from './caller.ts'
import { currentPrincipal } from './current-principal.ts'
import type { ToolResult } from './result.ts'

/** How often it is looked whether the owner has decided. */
const LOOK_MS = 1_000

/** Calls of one key that wait at once. Another is told at once that the owner has to decide. */
const MAX_WAITING = 10

/** An approval that somebody has still to decide on. */
export interface PendingApproval {
  readonly id: string
  /** What is asked for, in words. */
  readonly message: string
  /** The page where its owner decides. */
  readonly url: string
}

/** What is waited for. @property look called each time that it is not decided yet. */
interface Waiting {
  readonly withinMs: number
  readonly signal: AbortSignal
  readonly look?: () => Promise<void>
}

/** How calls wait for the owner. */
export interface Approvals {
  /** What a call waits for; null where it does not. */
  pendingOf(result: ToolResult): PendingApproval | null
  /**
   * Waits until the approval is decided and the approved call is through. @returns the caller at that moment, to repeat
   * the call; null where the time was over first, or the key was.
   */
  decided(caller: McpCaller, approval: PendingApproval, waiting: Waiting): Promise<McpCaller | null>
}

const problem = z.looseObject({
  code: z.literal('approval_required'),
  detail: z.string(),
  approvalId: z.string(),
  approvalUrl: z.string(),
  // Whatever has a reason is decided already.
  reason: z.undefined().optional(),
})

/** Prepares the waiting. */
export function createApprovals({
  database,
  clock,
  log,
}: Pick<Services, 'database' | 'clock' | 'log'>): Approvals {
  const lookout = createWaiters({
    everyMs: LOOK_MS,
    look: (ids) => waitForDecidedApprovals(database, { ids, now: clock() }),
  })
  /** Calls that wait here, by key. */
  const waitingOf = new Map<string, number>()
  return {
    pendingOf({ isError, content: [{ text }] }) {
      if (isError !== true) return null
      const { data } = problem.safeParse(parseJson(text))
      if (data === undefined) return null
      const { approvalId: id, detail: message, approvalUrl: url } = data
      return { id, message, url }
    },
    decided: (caller, approval, waiting) =>
      decided(caller, approval, waiting).catch((err: unknown) => {
        // The call has its answer already: it waits for the owner.
        log.warn({ err, approvalId: approval.id }, 'nobody waits for an approval any longer')
        return null
      }),
  }

  async function decided(
    caller: McpCaller,
    { id }: PendingApproval,
    { withinMs, signal, look }: Waiting,
  ): Promise<McpCaller | null> {
    const keyId = caller.principal.key.id
    const count = waitingOf.get(keyId) ?? 0
    // Its answer says how to ask again.
    if (count >= MAX_WAITING) return null
    waitingOf.set(keyId, count + 1)
    try {
      const over = AbortSignal.any([signal, AbortSignal.timeout(withinMs)])
      const ended = lookout.until(id, over)
      const isOpen = async () => {
        const wait = sleep(LOOK_MS, true, { signal: over }).catch(() => false)
        return Promise.race([ended.then(() => false), wait])
      }
      if (look !== undefined) while (await isOpen()) await look()
      if ((await ended) === undefined) return null
      const now = clock()
      // The owner may have revoked the key meanwhile.
      const principal = await currentPrincipal(database, caller, now)
      return principal === null ? null : { ...caller, principal, now }
    } finally {
      const left = (waitingOf.get(keyId) ?? 1) - 1
      if (left === 0) waitingOf.delete(keyId)
      else waitingOf.set(keyId, left)
    }
  }
}
