import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import {
  endpointId,
  endpointView,
  requireEndpoint,
  viewEndpoint,
} from '../../src/records/events/webhooks/endpoints.ts'

export default defineTool({
  name: 'webhook_endpoints.get',
  title: 'Webhook endpoint',
  summary: 'Show one webhook endpoint.',
  description: 'Its secret is not shown again: POST /api/webhook-endpoints/{id}/rotate makes another.',
  route: 'GET /api/webhook-endpoints/{id}',
  who: 'person',
  effect: 'read',
  input: z.strictObject({ id: endpointId }),
  output: endpointView,
  failures: ['not_found'],
  example: { id: 'whk_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) =>
    viewEndpoint(
      await requireEndpoint(context.database, { accountId: requirePerson(context).account.id, id }),
    ),
})
