/** An approval as its owner and its agent see it. */
import { z } from 'zod'
import { parseJson, toJson } from '../base/json.ts'
import { UNTRUSTED_TEXT_KEY } from '../base/untrusted-text.ts'
import type { Approval } from './approvals.ts'

/** The states that an approval can be in. */
export const approvalStatus = z.enum(['pending', 'approved', 'rejected', 'expired'])

/** The view. */
export const approvalView = z.strictObject({
  approvalId: z.string().describe('`appr_…`'),
  status: approvalStatus.describe('`approved` calls have run, or do: see `answer` and `problem`.'),
  agentId: z.string().describe('The key that asked: `key_…`'),
  operation: z.string().describe('What it asked for, such as `wallets.transfer`.'),
  input: z.looseObject({}).describe('The exact call that is approved or rejected.'),
  decisionId: z.string().describe('The decision that asked: `dec_…`'),
  answer: z
    .looseObject({})
    .nullable()
    // Some of what tools answer is written by merchants, banks and others, and here no schema says which.
    .meta({ description: 'What the approved call answered.', [UNTRUSTED_TEXT_KEY]: true }),
  problem: z.looseObject({}).nullable().describe('What the approved call was refused with.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
  expiresAt: z.string().describe('Until when it can be approved, ISO 8601 UTC.'),
  decidedAt: z.string().nullable().describe('ISO 8601 UTC.'),
})

const members = z.looseObject({})

/** {@link approvalView} of an approval. */
export function viewApproval(approval: Approval): z.input<typeof approvalView> {
  return {
    approvalId: approval.id,
    status: approval.status,
    agentId: approval.keyId,
    operation: approval.operation,
    input: members.parse(toJson(parseJson(approval.input))),
    decisionId: approval.decisionId,
    answer: members.nullable().parse(approval.answer),
    problem: members.nullable().parse(approval.problem),
    createdAt: approval.createdAt.toISOString(),
    expiresAt: approval.expiresAt.toISOString(),
    decidedAt: approval.decidedAt?.toISOString() ?? null,
  }
}
