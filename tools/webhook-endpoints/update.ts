import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { publishEvents } from '../../src/records/events/publish.ts'
import {
  changeEndpoint,
  endpointId,
  endpointMembers,
  endpointView,
  requireEndpoint,
  viewEndpoint,
} from '../../src/records/events/webhooks/endpoints.ts'

export default defineTool({
  name: 'webhook_endpoints.update',
  title: 'Change a webhook endpoint',
  summary: 'Change the URL, types or description of a webhook endpoint, or disable or activate it.',
  description:
    'Disabling ends its open deliveries. What happens while it is disabled is not delivered later: read GET /api/events.',
  route: 'PATCH /api/webhook-endpoints/{id}',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  input: z.strictObject({
    id: endpointId,
    ...endpointMembers,
    url: endpointMembers.url.optional(),
    status: z.enum(['active', 'disabled']).optional().describe('`active` also forgets earlier failures.'),
  }),
  output: endpointView,
  failures: ['not_found', 'url_not_allowed'],
  example: { id: 'whk_01h455vb4pex5vsknk084sn02q', status: 'active' },
  run: async (context, { id, ...to }) => {
    const accountId = requirePerson(context).account.id
    // Earlier events go where it was set to receive them. Before its row is locked: publishers lock rows under their own lock.
    await publishEvents(context.database, context.now)
    const endpoint = await requireEndpoint(context.database, { accountId, id, isLocked: true })
    const changed = await changeEndpoint(context, endpoint, to, context.now)
    const toState = ({ url, types, status }: typeof endpoint) => ({ host: new URL(url).host, types, status })
    await recordChange(context, {
      action: 'webhook_endpoint.updated',
      object: { kind: 'webhook_endpoint', id },
      before: toState(endpoint),
      after: toState(changed),
    })
    return viewEndpoint(changed)
  },
})
