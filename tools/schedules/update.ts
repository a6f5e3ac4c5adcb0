import { z } from 'zod'
import { type Directions, looserMembers } from '../../policies/directions.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { awaitApproval } from '../../src/kernel/gates/approval.ts'
import { parsePolicy } from '../../src/kernel/gates/policy.ts'
import { requireUnpaused } from '../../src/kernel/gates/scope.ts'
import { requireProofToLoosen } from '../../src/kernel/gates/step-up.ts'
import { setScheduleStatus } from '../../src/kernel/schedule-status.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import type { Schedule } from '../../src/records/schedules/store.ts'
import { scheduleView } from '../../src/records/schedules/view.ts'

const NAME = 'schedules.update'

const request = z.strictObject({
  id: z.string().max(64).describe('`sch_…`'),
  status: z
    .enum(['active', 'paused', 'ended'])
    .describe('`ended` is for good. `active` goes on with the next due time, and is the owner’s to allow.'),
})

const directions: Directions<Pick<Schedule, 'status'> & { readonly id: string }> = {
  id: 'never',
  status: (before, after) => after === 'active' && before !== 'active',
}

export default defineTool({
  name: NAME,
  title: 'Pause, resume or end a schedule',
  summary: 'Pause, resume or end a schedule. What it pays, and how often, never changes.',
  description: 'For another amount or payee end it and make a new one. Resuming asks the owner.',
  restDescription: 'Resuming needs a second factor of the owner. A conflict: it has ended.',
  route: 'PATCH /api/schedules/{id}',
  who: 'account',
  scopes: [],
  effect: 'write',
  proof: 'loosening',
  loosens: directions,
  ownTransactions: true,
  stops: true,
  whilePaused: true,
  mcp: true,
  // Names of contacts are stored sealed in one place only.
  shownOnce: ['contact'],
  input: request,
  output: scheduleView,
  failures: [
    'not_found',
    'conflict',
    'approval_required',
    'approval_rejected',
    'step_up_required',
    'mfa_enrollment_required',
  ],
  example: { id: 'sch_01h455vb4pex5vsknk084sn02q', status: 'paused' },
  run: (context, input) =>
    setScheduleStatus(context, input, async ({ status }) => {
      const loosened = looserMembers(directions, { status }, { status: input.status })
      requireProofToLoosen(context, loosened)
      if (loosened.length > 0) await requireOwnersYes(context, input)
    }),
})

/** A key may stop its schedule, and not let it go on. @throws Failure `approval_required`, `approval_rejected`. */
async function requireOwnersYes(context: Context, input: z.output<typeof request>): Promise<void> {
  const caller = requireCaller(context)
  requireUnpaused(caller)
  if (caller.kind !== 'key' || context.approvedBy !== undefined) return
  throw await awaitApproval(context, {
    operation: NAME,
    call: { input, raw: input, isWhole: true },
    key: caller.key,
    accountId: caller.account.id,
    decisionId: null,
    isReplayed: false,
    ttlSeconds: parsePolicy(caller.key)?.approval?.ttlSec,
    what: 'Resuming this schedule',
  })
}
