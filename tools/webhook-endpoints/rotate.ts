import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import {
  endpointId,
  requireEndpoint,
  rotateSecret,
  shownSecret,
} from '../../src/records/events/webhooks/endpoints.ts'

export default defineTool({
  name: 'webhook_endpoints.rotate',
  title: 'Rotate a webhook secret',
  summary: 'Replace the secret of a webhook endpoint; both secrets sign for 24 hours.',
  description:
    'Only the current and the new secret sign: a second rotation within the day ends the oldest at once.',
  route: 'POST /api/webhook-endpoints/{id}/rotate',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  shownOnce: ['secret'],
  input: z.strictObject({ id: endpointId }),
  output: z.strictObject({
    secret: shownSecret,
    previousUntil: z.string().describe('Until then the secret before signs, too; ISO 8601 UTC.'),
  }),
  failures: ['not_found'],
  example: { id: 'whk_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const accountId = requirePerson(context).account.id
    const endpoint = await requireEndpoint(context.database, { accountId, id, isLocked: true })
    const { secret, previousUntil } = await rotateSecret(context, endpoint, context.now)
    await recordChange(context, {
      action: 'webhook_endpoint.rotated',
      object: { kind: 'webhook_endpoint', id },
    })
    return { secret, previousUntil: previousUntil.toISOString() }
  },
})
