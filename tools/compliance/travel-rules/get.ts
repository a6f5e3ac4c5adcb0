import { z } from 'zod'
import { untrustedTextOrNull } from '../../../src/core/base/untrusted-text.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findTravelRule } from '../../../src/people/compliance/store.ts'

export default defineTool({
  name: 'compliance.travel_rules.get',
  title: 'Travel Rule state',
  summary: 'Read the status of Travel Rule data and the institution’s answer.',
  description: '`sent`: no answer yet, the transfer may be tried; `declined`: do not send it.',
  route: 'GET /api/compliance/travel-rule/{id}',
  who: 'account',
  scopes: ['compliance:write'],
  effect: 'read',
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`tr_…`') }),
  output: z.strictObject({
    id: z.string().describe('`tr_…`'),
    status: z
      .enum(['required', 'not_required', 'sent', 'accepted', 'declined'])
      .describe('Status of the data; `sent`: the institution was notified and has not answered.'),
    answer: untrustedTextOrNull('Answer of the institution.'),
    sentAt: z
      .string()
      .nullable()
      .describe('When the institution was notified, ISO 8601 UTC; null: not notified.'),
  }),
  failures: ['not_found'],
  example: { id: 'tr_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const found = await findTravelRule(context.database, { id, accountId: requireCaller(context).account.id })
    if (found === undefined) throw new Failure('not_found', 'The account has no such Travel Rule data.')
    const { status, answer, sentAt } = found
    return { id, status, answer, sentAt: sentAt?.toISOString() ?? null }
  },
})
