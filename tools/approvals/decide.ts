import { z } from 'zod'
import { approvalView } from '../../src/books/approvals/approval-view.ts'
import {
  type Approval,
  agreeToApproval,
  decideApproval,
  findApproval,
} from '../../src/books/approvals/approvals.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { type Context, requirePerson } from '../../src/kernel/context.ts'
import { requireRole } from '../../src/kernel/gates/scope.ts'
import { requireStepUp } from '../../src/kernel/gates/step-up.ts'
import { findOwnerChange } from '../../src/kernel/owner-changes.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { requireValidCredential } from '../../src/kernel/standing.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { lockPeople } from '../../src/people/identity/members/memberships.ts'
import { findIssuedKey } from '../../src/people/identity/store.ts'
import { viewNamedApproval } from '../../src/records/contacts/approvals.ts'
import type { Connection } from '../../src/storage/database.ts'

export default defineTool({
  name: 'approvals.decide',
  title: 'Approve or reject',
  summary: 'Approve or reject the exact call that an agent requested. Approving runs it once.',
  description:
    'Approving needs a fresh second factor; rejecting does not. Approving overrules the rules in "violations", once and for this call only; it counts in the budgets. The call runs under the key’s current policy, budget and balance, so it can still fail; "problem" then gives the reason. Repeating an approval whose call has no outcome yet completes it. Above the amounts of `approvals` in PUT /api/agents/policy it stays `pending` until `needed` different people have agreed, and never the one who asked: `conflict`. One rejection is enough.',
  route: 'POST /api/approvals/{id}',
  who: 'person',
  role: 'approver',
  effect: 'write',
  proof: 'conditional',
  ownTransactions: true,
  stops: true,
  // Names of contacts are stored sealed in one place only.
  shownOnce: ['contact'],
  policies: 'response',
  input: z.strictObject({
    id: z.string().max(64).describe('`approvalId`: `appr_…`'),
    decision: z.enum(['approve', 'reject']).describe('Decision of the owner.'),
    note: z.string().trim().min(1).max(500).optional().describe('Note to the agent, at most 500 characters.'),
  }),
  output: approvalView,
  failures: ['not_found', 'conflict', 'step_up_required', 'mfa_enrollment_required', 'settlement_pending'],
  example: { id: 'appr_01h455vb4pex5vsknk084sn02q', decision: 'reject' },
  run: async (context, { id, decision, note = null }) => {
    if (decision === 'approve') requireStepUp(context)
    const { account, person } = requirePerson(context)
    const asked = await findApproval(context.database, {
      ...{ accountId: account.id, keyId: null, id },
      now: context.onCalendar(context.now),
    })
    // A change is made by whoever approves it.
    if (decision === 'approve' && asked !== undefined && findOwnerChange(asked.operation) !== undefined)
      requireRole({ person }, 'owner')
    const verdict = await (decision === 'approve' ? agree : reject)(context, { id, note })
    const decided = verdict ?? (await requireSameDecision(context, { id, decision }))
    if (decided.status !== 'approved' || decided.answer !== null || decided.problem !== null)
      return viewNamedApproval(context, decided)
    return viewNamedApproval(context, await context.runApproved(context, decided, findIssuedKey))
  },
})

interface Decided {
  readonly id: string
  readonly note: string | null
}

/** Rejects for everybody: one no is enough. @returns undefined when it is no longer pending. */
function reject(context: Context, { id, note }: Decided): Promise<Approval | undefined> {
  return context.database.transaction((transaction) =>
    close(context, transaction, { id, note, status: 'rejected' }),
  )
}

/**
 * Agrees, and approves with the last of the people who must. The account's people stay as they are meanwhile. @returns the approval,
 * pending while others must agree; undefined when it is no longer pending. @throws Failure `conflict` for who asked for it.
 */
function agree(context: Context, { id, note }: Decided): Promise<Approval | undefined> {
  const { account, person } = requirePerson(context)
  const at = context.onCalendar(context.now)
  return context.database.transaction(async (transaction) => {
    await lockPeople(transaction, [account.id])
    await requireValidCredential(transaction, context.principal)
    const by = { accountId: account.id, personId: person.id, id, at }
    const verdict = await agreeToApproval(transaction, by)
    if (verdict === 'ended') return undefined
    if (verdict === 'own')
      throw new Failure('conflict', 'You asked for this payment: others must agree to it.', {
        reason: 'own_request',
        hint: 'Ask another owner or approver of the account (GET /api/people).',
      })
    if (verdict === 'enough') return close(context, transaction, { id, note, status: 'approved' })
    const waiting = await findApproval(transaction, { accountId: account.id, keyId: null, id, now: at })
    if (waiting === undefined) return undefined
    const { needed, keyId } = waiting
    const object = { kind: 'approval' as const, id }
    await recordChange(context, { action: 'approval.agreed', object, after: { keyId, needed } }, transaction)
    return waiting
  })
}

async function close(
  context: Context,
  transaction: Connection,
  { id, note, status }: Decided & { status: 'approved' | 'rejected' },
): Promise<Approval | undefined> {
  const { account } = requirePerson(context)
  const at = context.onCalendar(context.now)
  const own = await decideApproval(transaction, { accountId: account.id, keyId: null, id, status, note, at })
  if (own === undefined) return undefined
  const rules = own.violations.map(({ rule }) => rule)
  const after = { keyId: own.keyId, ...(rules.length === 0 ? {} : { violated: rules }) }
  const object = { kind: 'approval' as const, id }
  await recordChange(context, { action: `approval.${status}`, object, after }, transaction)
  return own
}

/** Repeating the same decision returns the approval; a different decision is rejected. */
async function requireSameDecision(
  context: Context,
  { id, decision }: { id: string; decision: 'approve' | 'reject' },
): Promise<Approval> {
  const status = decision === 'approve' ? 'approved' : 'rejected'
  const owner = { accountId: requirePerson(context).account.id, keyId: null }
  const approval = await findApproval(context.database, {
    ...owner,
    id,
    now: context.onCalendar(context.now),
  })
  if (approval === undefined) throw new Failure('not_found', 'You have no such approval.')
  if (approval.status === status) return approval
  throw new Failure('conflict', `This approval is ${approval.status}.`, {
    reason: approval.status,
    hint: 'An approval is decided once, before it expires; the agent can request a new one.',
  })
}
