import { z } from 'zod'
import { defineTool } from '../../../src/kernel/tool.ts'
import { railIds } from '../../../src/providers/rail-controls/port.ts'
import { readRailStatus } from '../../../src/rails/rails.ts'

export default defineTool({
  name: 'rails.controls.get',
  title: 'Rail control',
  summary: 'Read whether a rail is switched on.',
  description:
    'For administrators. `unknown` while the control plane does not answer; calls on the rail then answer 503 `controls_unavailable`.',
  route: 'GET /api/rails/{id}/controls',
  who: 'admin',
  effect: 'read',
  proof: 'step-up',
  input: z.strictObject({ id: z.enum(railIds).describe('Id of the rail.') }),
  output: z.strictObject({
    id: z.enum(railIds).describe('Id of the rail.'),
    status: z
      .enum(['enabled', 'disabled', 'unknown'])
      .describe('State of the rail; `unknown` while its control cannot be read.'),
    reason: z.string().nullable().describe('Human-readable reason why it is disabled or unknown.'),
  }),
  failures: [],
  example: { id: 'wallet-transfer' },
  run: async ({ railControls }, { id }) => ({ id, ...(await readRailStatus(railControls, id)) }),
})
