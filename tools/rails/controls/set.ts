import { z } from 'zod'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { railIds } from '../../../src/providers/rail-controls/port.ts'

export default defineTool({
  name: 'rails.controls.set',
  title: 'Switch a rail',
  summary: 'Switch a rail on or off. All instances apply it within two seconds.',
  description:
    'For administrators, with a fresh second factor. Calls on a rail that is off answer 403 `rail_disabled`; what is on its way is finished.',
  route: 'PUT /api/rails/{id}/controls',
  who: 'admin',
  effect: 'write',
  proof: 'step-up',
  ownTransactions: true,
  stops: true,
  input: z.strictObject({
    id: z.enum(railIds).describe('Id of the rail.'),
    enabled: z.boolean().describe('True if money may move on it.'),
    reason: z.string().trim().min(1).max(200).optional().describe('Human-readable reason.'),
  }),
  output: z.strictObject({
    id: z.enum(railIds).describe('Id of the rail.'),
    status: z.enum(['enabled', 'disabled']).describe('New state of the rail.'),
    reason: z.string().nullable().describe('Human-readable reason.'),
  }),
  failures: ['conflict', 'controls_unavailable'],
  example: { id: 'wallet-transfer', enabled: true },
  run: async (context, { id, enabled, reason = null }) => {
    await context.railControls.write({ rail: id, enabled, reason }, context.now, (transaction) =>
      recordChange(
        context,
        { as: 'admin', action: 'rail.switched', object: { kind: 'rail', id }, after: { enabled } },
        transaction,
      ),
    )
    return { id, status: enabled ? ('enabled' as const) : ('disabled' as const), reason }
  },
})
