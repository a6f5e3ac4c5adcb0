import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { railIds } from '../../../src/providers/rail-controls.ts'

export default defineTool({
  name: 'admin.rails.list',
  title: 'Rail controls',
  summary: 'Read which rails are switched on.',
  route: 'GET /api/admin/rails',
  who: 'admin',
  scopes: [],
  effect: 'read',
  stepUp: true,
  mcp: false,
  input: z.strictObject({}),
  output: z.strictObject({
    rails: z
      .array(
        z.strictObject({
          rail: z.enum(railIds).describe('The rail.'),
          status: z
            .enum(['enabled', 'disabled', 'unknown'])
            .describe('`unknown` while its control cannot be read.'),
          reason: z.string().nullable().describe('Why it is off, for people.'),
        }),
      )
      .describe('Every rail of this deployment.'),
  }),
  failures: [],
  example: {},
  run: async ({ railControls }) => ({
    rails: await Promise.all(
      railIds.map(async (rail) => {
        try {
          const { enabled, reason } = await railControls.read(rail)
          return { rail, status: enabled ? ('enabled' as const) : ('disabled' as const), reason }
        } catch (error) {
          if (!(error instanceof Failure)) throw error
          return { rail, status: 'unknown' as const, reason: error.message }
        }
      }),
    ),
  }),
})
