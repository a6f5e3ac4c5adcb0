import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { requirePerson } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { endpointId, requireEndpoint, sendPing } from '../../src/records/events/webhooks/endpoints.ts'

export default defineTool({
  name: 'webhook_endpoints.test',
  title: 'Test a webhook endpoint',
  summary: 'Send an event of type `ping` to a webhook endpoint, whatever types it receives.',
  description: 'The outcome is among its deliveries.',
  route: 'POST /api/webhook-endpoints/{id}/test',
  who: 'person',
  effect: 'write',
  proof: 'none',
  input: z.strictObject({ id: endpointId }),
  output: z.strictObject({ sent: z.boolean().describe('Always true: the event is on its way.') }),
  failures: ['not_found', 'conflict'],
  example: { id: 'whk_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const endpoint = await requireEndpoint(context.database, {
      accountId: requirePerson(context).account.id,
      id,
    })
    if (endpoint.status !== 'active')
      throw new Failure('conflict', 'The webhook endpoint is disabled.', {
        hint: 'Activate it: PATCH /api/webhook-endpoints/{id} {"status": "active"}.',
      })
    await sendPing(context.database, endpoint, context.now)
    return { sent: true }
  },
})
