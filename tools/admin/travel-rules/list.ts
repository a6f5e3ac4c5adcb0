import { z } from 'zod'
import { matchNames } from '../../../policies/aml/match-names.ts'
import { nextCursor, onePage, pageMembers, pageOf } from '../../../src/base/page.ts'
import { untrustedText } from '../../../src/base/untrusted-text.ts'
import { undecidedData } from '../../../src/compliance/listed-parties.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'admin.travel_rules.list',
  title: 'Listed names in Travel Rule data',
  summary:
    'List the Travel Rule data that names somebody on the sanctions list and that waits for a decision.',
  description:
    'Shows everybody whom the data names, beside what the list says: personal data, for this decision alone.',
  route: 'GET /api/admin/travel-rules',
  who: 'admin',
  scopes: [],
  effect: 'read',
  stepUp: true,
  mcp: false,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    records: z
      .array(
        z.strictObject({
          id: z.string().describe('`tr_…`'),
          accountId: z.string().describe('`acct_…`: who sends.'),
          destination: z.string().describe('EVM address to which nothing of the account goes meanwhile.'),
          names: z
            .array(untrustedText('A name.'))
            .nullable()
            .describe('Originator, beneficiary and their institutions; null: erased by its person.'),
          hits: z.array(z.string()).describe('Names of the list that they may be.'),
        }),
      )
      .describe('Newest first.'),
    nextCursor,
  }),
  failures: ['screening_unavailable'],
  example: {},
  run: async ({ database, settings: { dataKey }, sanctions }, input) => {
    const page = pageOf(input)
    const { rows, nextCursor } = onePage(await undecidedData({ database, dataKey }, page), page)
    const { names: listed } = await sanctions.latest()
    const records = rows.map(({ names, ...row }) => ({
      ...row,
      names: names && [...names],
      hits: [...new Set((names ?? []).flatMap((name) => matchNames(name, listed)))],
    }))
    return { records, nextCursor }
  },
})
