/**
 * Calls that wait for the owner. A client that can open pages for its user is given the page where the owner decides,
 * signed in there; nothing that a client or a model answers approves anything.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-mode-elicitation-requests
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { parseJson } from '../src/json.ts'
import type { Services } from '../src/kernel/context.ts'
import { currentPrincipal } from './current-principal.ts'
import type { McpCaller, Offer } from './offer.ts'
import type { ToolResult } from './result.ts'

/** How often it is looked whether the owner has decided. */
const LOOK_MS = 1_000

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

const standing = z.looseObject({
  status: z.string(),
  answer: z.unknown(),
  problem: z.unknown(),
})

/** Prepares the waiting. @param offer whose `approvals_get` tells how an approval stands. */
export function createApprovals(
  offer: Pick<Offer, 'call'>,
  { database, clock, log }: Pick<Services, 'database' | 'clock' | 'log'>,
): Approvals {
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
    const until = clock().getTime() + withinMs
    while (!signal.aborted) {
      const now = clock()
      // The owner may have revoked the key meanwhile.
      const principal = await currentPrincipal(database, caller, now)
      if (principal === null) return null
      const later = { ...caller, principal, now }
      const { structuredContent } = await offer.call(later, 'approvals_get', { id })
      if (hasEnded(structuredContent)) return later
      if (now.getTime() >= until) return null
      await look?.()
      await sleep(LOOK_MS, undefined, { signal }).catch(() => {})
    }
    return null
  }
}

/** Approved is not enough: the call that was approved is under way, and its answer is what is waited for. */
function hasEnded(approval: unknown): boolean {
  const { data } = standing.safeParse(approval)
  if (data === undefined || data.status === 'pending') return false
  return data.status !== 'approved' || (data.answer ?? data.problem ?? null) !== null
}
