import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { deleteEndpoint, endpointId, requireEndpoint } from '../../src/records/events/webhooks/endpoints.ts'

export default defineTool({
  name: 'webhook_endpoints.remove',
  title: 'Delete a webhook endpoint',
  summary: 'Delete a webhook endpoint with its secret and its deliveries.',
  description: 'Events that happen from now on are not sent there. Other endpoints stay.',
  route: 'DELETE /api/webhook-endpoints/{id}',
  who: 'person',
  effect: 'write',
  proof: 'recent',
  input: z.strictObject({ id: endpointId }),
  output: z.strictObject({ deleted: z.boolean().describe('Always true.') }),
  failures: ['not_found'],
  example: { id: 'whk_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const { database } = context
    await requireEndpoint(database, { accountId: requirePerson(context).account.id, id, isLocked: true })
    await deleteEndpoint(database, id)
    await recordChange(context, {
      action: 'webhook_endpoint.deleted',
      object: { kind: 'webhook_endpoint', id },
    })
    return { deleted: true }
  },
})
