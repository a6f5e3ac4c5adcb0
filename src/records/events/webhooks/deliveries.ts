/** Deliveries of events to webhook endpoints, as their owners see them. */
import { z } from 'zod'
import { cutPage, type Page } from '../../../core/base/page.ts'
import type { Connection } from '../../../storage/database.ts'

const attempt = z.strictObject({
  at: z.string().describe('ISO 8601 UTC.'),
  httpStatus: z.int().nullable().describe('Status of the answer; null if none came.'),
  ms: z.int().describe('Duration in milliseconds.'),
  error: z
    .enum(['refused-url', 'unreachable', 'timeout', 'protocol', 'status'])
    .nullable()
    .describe('Why it failed; `status`: the answer was not 2xx. Null if it succeeded.'),
})

export const deliveryView = z.strictObject({
  id: z.string().describe('`whd_…`'),
  eventId: z.string().describe('`evt_…`: the `webhook-id` of its requests.'),
  type: z.string().describe('Type of the event.'),
  status: z.enum(['pending', 'delivered', 'failed']).describe('`failed`: it is not tried again by itself.'),
  attempts: z.array(attempt).describe('The last 20 attempts, oldest first.'),
  nextAttemptAt: z.string().nullable().describe('ISO 8601 UTC; null unless pending.'),
})
deliveryView.register(z.globalRegistry, { id: 'WebhookDelivery' })

type Delivery = Awaited<ReturnType<typeof readDeliveries>>['rows'][number]

export function viewDelivery(delivery: Delivery): z.input<typeof deliveryView> {
  return {
    id: delivery.id,
    eventId: delivery.event_id,
    type: delivery.type,
    status: delivery.status,
    attempts: z.array(attempt).parse(delivery.attempts),
    nextAttemptAt: delivery.next_attempt_at?.toISOString() ?? null,
  }
}

/** Lists an endpoint's deliveries, newest first. */
export async function readDeliveries({ kysely }: Connection, endpointId: string, page: Page) {
  const query = kysely
    .selectFrom('webhook_delivery')
    .selectAll()
    .where('endpoint_id', '=', endpointId)
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
  const rows = await (page.after === null ? query : query.where('id', '<', page.after)).execute()
  return cutPage(rows, page)
}

/** Delivers again at once, also what was delivered. Call within a transaction. @returns undefined if there is no such delivery. */
export async function retryDelivery(
  { kysely }: Connection,
  { endpointId, id, at }: { endpointId: string; id: string; at: Date },
): Promise<Delivery | undefined> {
  // The endpoint first, as a gateway that records its attempts locks it.
  await kysely
    .updateTable('webhook_endpoint')
    .set({ due_at: at })
    .where('id', '=', endpointId)
    .executeTakeFirstOrThrow()
  return kysely
    .updateTable('webhook_delivery')
    .set({ status: 'pending', next_attempt_at: at })
    .where('id', '=', id)
    .where('endpoint_id', '=', endpointId)
    .returningAll()
    .executeTakeFirst()
}
