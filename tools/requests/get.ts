import { z } from 'zod'
import { toDecimal } from '../../src/core/money/money.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import {
  findRequest,
  listPayments,
  listUnmatched,
  noSuchRequest,
  parseAsset,
} from '../../src/records/requests/store.ts'
import { requestView, viewRequest } from '../../src/records/requests/view.ts'

export default defineTool({
  name: 'requests.get',
  title: 'Request',
  summary: 'Read a request for money and what arrived for it.',
  description: 'Use it to learn whether it is paid.',
  restDescription: 'For the owner, `unmatched` lists money of the asset that belongs to no request.',
  route: 'GET /api/requests/{id}',
  who: 'account',
  role: 'accountant',
  scopes: ['requests:read'],
  effect: 'read',
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`req_…`') }),
  output: requestView.extend({
    unmatched: z
      .array(
        z.strictObject({
          id: z.string().describe('Its entry in the activity.'),
          amount: z.string().describe('Decimal of the asset.'),
          at: z.string().describe('When it arrived, ISO 8601 UTC.'),
        }),
      )
      .describe('Money that the owner may link to it, newest first.'),
  }),
  failures: ['not_found'],
  example: { id: 'req_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const caller = requireCaller(context)
    const { database, settings } = context
    const request = await findRequest(database, {
      accountId: caller.account.id,
      keyId: caller.kind === 'key' ? caller.key.id : null,
      id,
    })
    if (request === undefined) throw noSuchRequest()
    const payments = await listPayments(database, [id])
    const unmatched = caller.kind === 'session' ? await listUnmatched(database, request) : []
    const seen = { now: context.onCalendar(context.now), origin: settings.origin }
    return {
      ...viewRequest(request, payments.get(id) ?? [], seen),
      unmatched: unmatched.map(({ entry_id, asset, units, at }) => ({
        id: entry_id,
        amount: toDecimal({ asset: parseAsset(asset), units }),
        at: at.toISOString(),
      })),
    }
  },
})
