import { z } from 'zod'
import { approvableOperations } from '../../src/books/approvals/approvable-operations.ts'
import { approvalStatus } from '../../src/books/approvals/approval-view.ts'
import { findUsedUp, usedUpView } from '../../src/books/approvals/used-up.ts'
import { violationView } from '../../src/books/spending/violation-view.ts'
import { visibleText } from '../../src/core/base/untrusted-text.ts'
import { approvalUrl } from '../../src/kernel/gates/approval.ts'
import { defineTool } from '../../src/kernel/tool.ts'

export default defineTool({
  name: 'approvals.request',
  title: 'Ask the owner',
  summary:
    'Ask the owner for exactly one call that the policy denies, or for a change that only the owner makes.',
  description:
    'The owner sees the call, the violated rules and your reason; an approved call runs by itself, and GET /api/approvals/{id} returns its answer: do not make the call again. Sanctions, identity checks, switched-off rails, missing funds and a paused key cannot be approved.',
  restDescription:
    'A call that waits already keeps its one approval, with the new reason. At most 10 requests of a key are open at a time.',
  route: 'POST /api/approvals',
  who: 'account',
  scopes: [],
  effect: 'write',
  proof: 'none',
  ownTransactions: true,
  mcp: true,
  policies: 'response',
  input: z.strictObject({
    operation: z
      .preprocess(
        // A tool may be named as it is over MCP.
        (name) => (typeof name === 'string' ? name.replaceAll('_', '.') : name),
        z.enum(approvableOperations),
      )
      .describe(
        '`agents.policy`: another policy for yourself, {"policy": …}. The owner makes it and `cards.update`.',
      ),
    input: z
      .looseObject({})
      .describe('Input of the call, exactly as it would be sent, with its `idempotency_key`.'),
    reason: z
      .string()
      .trim()
      .min(1)
      .max(500)
      .refine((text) => visibleText(text) !== '', 'must have visible text')
      .describe('Why the owner should allow it.'),
  }),
  output: z.strictObject({
    approvalId: z.string().describe('`appr_…`'),
    approvalUrl: z.string().describe('Page where the owner decides: show it to the owner.'),
    status: approvalStatus.describe('`pending` until the owner decides.'),
    violations: z
      .array(violationView)
      .describe('Rules that the call breaks; empty if the policy denies nothing.'),
    usesUp: usedUpView,
    expiresAt: z.string().describe('When the request expires, ISO 8601 UTC.'),
    hint: z.string().describe('How to get the answer.'),
  }),
  failures: [
    'insufficient_scope',
    'insufficient_funds',
    'aml_blocked',
    'kyc_required',
    'policy_denied',
    'rail_disabled',
    'signature_rejected',
    'chain_not_supported',
    'controls_unavailable',
    'screening_unavailable',
    'rates_unavailable',
    'not_found',
    'conflict',
    'approval_rejected',
    'idempotency_key_reused',
  ],
  example: {
    operation: 'wallets.transfer',
    input: { destination: '0x000000000000000000000000000000000000dEaD', amount: '120', token: 'USDC' },
    reason: 'Invoice 17 is due today and 20 USD above my limit.',
  },
  run: async (context, request) => {
    const approval = await context.askOwner(context, request)
    const { id, status, violations, expiresAt } = approval
    return {
      approvalId: id,
      approvalUrl: approvalUrl(context.settings, id),
      status,
      violations: [...violations],
      usesUp: await findUsedUp(context.database, approval, context.onCalendar(context.now)),
      expiresAt: expiresAt.toISOString(),
      hint: `Show approvalUrl to the owner, then poll GET /api/approvals/${id}: the approved call runs by itself, once.`,
    }
  },
})
