import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import {
  createEndpoint,
  endpointMembers,
  endpointView,
  shownSecret,
  viewEndpoint,
} from '../../src/records/events/webhooks/endpoints.ts'

export default defineTool({
  name: 'webhook_endpoints.create',
  title: 'Create a webhook endpoint',
  summary: 'Send the account’s events to a URL, signed as Standard Webhooks; at most ten endpoints.',
  description:
    'Requests carry `webhook-id`, `webhook-timestamp` and `webhook-signature`, and an event as GET /api/events returns it. A 2xx answer within 10 s is a delivery; anything else is tried again for two days, and an endpoint that only failed is then disabled. An event may arrive more than once and out of order: see `id` and `sequence`.',
  route: 'POST /api/webhook-endpoints',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  shownOnce: ['secret'],
  input: z.strictObject(endpointMembers),
  output: endpointView.extend({ secret: shownSecret }),
  failures: ['url_not_allowed', 'conflict'],
  example: { url: 'https://example.com/bursar-events', types: ['transfer.confirmed'] },
  run: async (context, { url, types = [], description = null }) => {
    const accountId = requirePerson(context).account.id
    const { endpoint, secret } = await createEndpoint(context, {
      accountId,
      url,
      types,
      description,
      at: context.now,
    })
    await recordChange(context, {
      action: 'webhook_endpoint.created',
      object: { kind: 'webhook_endpoint', id: endpoint.id },
      after: { host: new URL(endpoint.url).host, types: endpoint.types },
    })
    return { ...viewEndpoint(endpoint), secret }
  },
})
