import { z } from 'zod'
import { nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import {
  deliveryView,
  readDeliveries,
  viewDelivery,
} from '../../../src/records/events/webhooks/deliveries.ts'
import { endpointId, requireEndpoint } from '../../../src/records/events/webhooks/endpoints.ts'

export default defineTool({
  name: 'webhook_endpoints.deliveries.list',
  title: 'Webhook deliveries',
  summary: 'List the deliveries to a webhook endpoint with their attempts, newest first.',
  description: 'Each attempt has its time, status and duration. Continue with `cursor`.',
  route: 'GET /api/webhook-endpoints/{id}/deliveries',
  who: 'person',
  effect: 'read',
  input: z.strictObject({ id: endpointId, ...pageMembers }),
  output: z.strictObject({
    deliveries: z.array(deliveryView).describe('Deliveries of this page, newest first.'),
    nextCursor,
  }),
  failures: ['not_found'],
  example: { id: 'whk_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id, ...page }) => {
    const { database } = context
    await requireEndpoint(database, { accountId: requirePerson(context).account.id, id })
    const { rows, nextCursor } = await readDeliveries(database, id, toPage(page))
    return { deliveries: rows.map(viewDelivery), nextCursor }
  },
})
