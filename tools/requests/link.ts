import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { linkArrival } from '../../src/records/requests/match.ts'
import { findRequest, listPayments, noSuchRequest } from '../../src/records/requests/store.ts'
import { requestView, viewRequest } from '../../src/records/requests/view.ts'

export default defineTool({
  name: 'requests.link',
  title: 'Link a payment to a request',
  summary: 'Count money that arrived for a request, where nothing but its owner knows that it was meant.',
  description: 'It cannot be undone. Such money is in `unmatched` of GET /api/requests/{id}.',
  route: 'POST /api/requests/{id}/payments',
  who: 'person',
  effect: 'write',
  // It moves no money.
  proof: 'none',
  input: z.strictObject({
    id: z.string().max(64).describe('`req_…`'),
    entryId: z.string().min(1).max(200).describe('Entry of the activity, from `unmatched`.'),
  }),
  output: requestView,
  failures: ['not_found', 'conflict'],
  example: { id: 'req_01h455vb4pex5vsknk084sn02q', entryId: 'tx_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id, entryId }) => {
    const { account, person } = requirePerson(context)
    const accountId = account.id
    const { database, settings, onCalendar, now } = context
    const request = await findRequest(database, { accountId, keyId: null, id })
    if (request === undefined) throw noSuchRequest()
    const linked = await linkArrival(database, { request, entryId, linkedBy: person.id, onCalendar, at: now })
    await recordChange(context, {
      action: 'request.linked',
      object: { kind: 'request', id },
      after: { entryId },
    })
    const payments = await listPayments(database, [id])
    return viewRequest(linked, payments.get(id) ?? [], { now: onCalendar(now), origin: settings.origin })
  },
})
