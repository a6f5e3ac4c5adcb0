import { z } from 'zod'
import { requireCaller } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { cancelRequest, findRequest, listPayments, noSuchRequest } from '../../src/records/requests/store.ts'
import { requestView, viewRequest } from '../../src/records/requests/view.ts'

export default defineTool({
  name: 'requests.remove',
  title: 'Cancel a request',
  summary: 'Cancel a request for money: its page says so, and it is not paid by x402 any more.',
  description: 'Use it when it was wrong or is not owed any more. A key cancels its own only.',
  restDescription: 'What arrives for it all the same is the account’s. Canceling it again answers the same.',
  route: 'DELETE /api/requests/{id}',
  who: 'account',
  scopes: ['requests:create'],
  effect: 'write',
  proof: 'none',
  stops: true,
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`req_…`') }),
  output: requestView,
  failures: ['not_found', 'conflict'],
  example: { id: 'req_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const caller = requireCaller(context)
    const { database, settings } = context
    const request = await findRequest(database, {
      accountId: caller.account.id,
      keyId: caller.kind === 'key' ? caller.key.id : null,
      id,
      isLocked: true,
    })
    if (request === undefined) throw noSuchRequest()
    const now = context.onCalendar(context.now)
    const canceled = await cancelRequest(database, request, { now, at: context.now })
    if (request.status !== 'canceled')
      await recordChange(context, { action: 'request.canceled', object: { kind: 'request', id } })
    const payments = await listPayments(database, [id])
    return viewRequest(canceled, payments.get(id) ?? [], { now, origin: settings.origin })
  },
})
