import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { endpointView, listEndpoints, viewEndpoint } from '../../src/records/events/webhooks/endpoints.ts'

export default defineTool({
  name: 'webhook_endpoints.list',
  title: 'Webhook endpoints',
  summary: 'List the account’s webhook endpoints, newest first.',
  description:
    'An endpoint that only fails ends `disabled`; PATCH /api/webhook-endpoints/{id} activates it again.',
  route: 'GET /api/webhook-endpoints',
  who: 'person',
  effect: 'read',
  input: z.strictObject({}),
  output: z.strictObject({ endpoints: z.array(endpointView).describe('All endpoints, newest first.') }),
  failures: [],
  example: {},
  run: async (context) => {
    const endpoints = await listEndpoints(context.database, requirePerson(context).account.id)
    return { endpoints: endpoints.map(viewEndpoint) }
  },
})
