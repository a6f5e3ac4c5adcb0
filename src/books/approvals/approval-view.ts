/** An approval as its owner and its agent see it. */
import { z } from 'zod'
import { parseJson, toJson } from '../../core/base/json.ts'
import { UNTRUSTED_TEXT_KEY, untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { fundingView } from '../spending/funding-view.ts'
import { violationView } from '../spending/violation-view.ts'
import type { Agreement, Approval } from './approvals.ts'
import { usedUpView } from './used-up.ts'

export const approvalStatus = z.enum(['pending', 'approved', 'rejected', 'withdrawn', 'expired'])

export const approvalView = z.strictObject({
  approvalId: z.string().describe('`appr_…`'),
  status: approvalStatus.describe(
    'An `approved` call has run or is running: see `answer` and `problem`. An `approved` card purchase (`cards.authorize`) passes once if it is tried again within 15 minutes.',
  ),
  agentId: z.string().nullable().describe('`key_…` that asked; null: a person did.'),
  personId: z.string().nullable().describe('`acct_…` whose own call waits; null: an agent’s.'),
  needed: z.int().describe('People who must agree.'),
  agreed: z.int().describe('People who agreed so far.'),
  people: z
    .array(
      z.strictObject({
        personId: z.string().describe('`acct_…`'),
        displayName: z.string().describe('Name of the person.'),
        at: z.string().describe('ISO 8601 UTC.'),
      }),
    )
    .optional()
    .describe('Who agreed; for people only.'),
  operation: z.string().describe('Such as `wallets.transfer`.'),
  input: z.looseObject({}).meta({
    description: 'Input of the exact call.',
    // The merchant of a card purchase named itself.
    [UNTRUSTED_TEXT_KEY]: true,
  }),
  contact: z
    .strictObject({
      name: untrustedTextOrNull('Its name; null: removed.'),
      isChanged: z.boolean().describe('True if its address has changed since: approving pays nobody.'),
    })
    .nullable()
    .optional()
    .describe('Contact that it pays; null: none.'),
  decisionId: z.string().nullable().describe('`dec_…` that required it; null for a change.'),
  reason: untrustedTextOrNull('Given reason; null: none.'),
  violations: z.array(violationView).describe('Rules that it breaks, and an approval overrules once.'),
  usesUp: usedUpView.optional(),
  funding: fundingView.optional().describe('Move from another chain before it, as planned then.'),
  note: z.string().nullable().describe('Note of the owner to the agent; null without one.'),
  answer: z
    .looseObject({})
    .nullable()
    // Tool answers may contain text from merchants, banks and other third parties; this schema does not mark which
    // members.
    .meta({
      description: 'Answer of the approved call; null until it succeeded.',
      [UNTRUSTED_TEXT_KEY]: true,
    }),
  problem: z.looseObject({}).nullable().describe('Its problem; null unless it failed.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
  expiresAt: z.string().describe('ISO 8601 UTC.'),
  decidedAt: z.string().nullable().describe('ISO 8601 UTC; null while pending.'),
})
approvalView.register(z.globalRegistry, { id: 'Approval' })

const members = z.looseObject({})

/** @param agreements who agreed and counts. @param isForPerson people see who it was. */
export function viewApproval(
  approval: Approval,
  { agreements, isForPerson }: { agreements: readonly Agreement[]; isForPerson: boolean } = {
    agreements: [],
    isForPerson: false,
  },
): z.input<typeof approvalView> {
  return {
    approvalId: approval.id,
    status: approval.status,
    agentId: approval.keyId,
    personId: approval.askerId,
    needed: approval.needed,
    agreed: agreements.length,
    ...(isForPerson
      ? { people: agreements.map(({ at, ...person }) => ({ ...person, at: at.toISOString() })) }
      : {}),
    operation: approval.operation,
    input: members.parse(toJson(parseJson(approval.input))),
    decisionId: approval.decisionId,
    reason: approval.reason,
    violations: [...approval.violations],
    note: approval.note,
    answer: members.nullable().parse(approval.answer),
    problem: members.nullable().parse(approval.problem),
    createdAt: approval.createdAt.toISOString(),
    expiresAt: approval.expiresAt.toISOString(),
    decidedAt: approval.decidedAt?.toISOString() ?? null,
  }
}
