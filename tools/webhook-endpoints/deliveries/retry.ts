import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { deliveryView, retryDelivery, viewDelivery } from '../../../src/records/events/webhooks/deliveries.ts'
import { endpointId, requireEndpoint } from '../../../src/records/events/webhooks/endpoints.ts'

export default defineTool({
  name: 'webhook_endpoints.deliveries.retry',
  title: 'Deliver again',
  summary: 'Deliver an event to a webhook endpoint again at once, whether it was delivered or failed.',
  description:
    'The event has the same `webhook-id` as before, so that a receiver that keeps ids takes it once.',
  route: 'POST /api/webhook-endpoints/{id}/deliveries/{deliveryId}/retry',
  who: 'person',
  effect: 'write',
  proof: 'none',
  input: z.strictObject({ id: endpointId, deliveryId: z.string().max(64).describe('`whd_…`') }),
  output: deliveryView,
  failures: ['not_found', 'conflict'],
  example: { id: 'whk_01h455vb4pex5vsknk084sn02q', deliveryId: 'whd_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id, deliveryId }) => {
    const { database, now: at } = context
    const accountId = requirePerson(context).account.id
    const { status } = await requireEndpoint(database, { accountId, id, isLocked: true })
    if (status !== 'active')
      throw new Failure('conflict', 'The webhook endpoint is disabled.', {
        hint: 'Activate it: PATCH /api/webhook-endpoints/{id} {"status": "active"}.',
      })
    const delivery = await retryDelivery(database, { endpointId: id, id: deliveryId, at })
    if (delivery === undefined)
      throw new Failure('not_found', 'The webhook endpoint has no such delivery.', {
        hint: 'GET /api/webhook-endpoints/{id}/deliveries lists those that are kept.',
      })
    return viewDelivery(delivery)
  },
})
