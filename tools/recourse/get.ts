import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findRecourse } from '../../src/records/recourse/store.ts'
import { recourseView, viewRecourse } from '../../src/records/recourse/view.ts'

export default defineTool({
  name: 'recourse.get',
  title: 'Recourse',
  summary: 'Read what was tried, and what is back.',
  description: 'Use it while it is `open`.',
  route: 'GET /api/recourse/{id}',
  who: 'account',
  scopes: [],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`rec_…`') }),
  output: recourseView,
  failures: ['not_found'],
  example: { id: 'rec_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const caller = requireCaller(context)
    const owner = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const recourse = await findRecourse(context.database, owner, { id })
    if (recourse === undefined) throw new Failure('not_found', 'You have no such recourse.')
    return viewRecourse(recourse)
  },
})
