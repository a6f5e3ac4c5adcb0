import { z } from 'zod'
import { matchNames } from '../../../policies/aml/match-names.ts'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { untrustedText } from '../../../src/core/base/untrusted-text.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { undecidedData } from '../../../src/people/compliance/listed-parties.ts'

export default defineTool({
  name: 'admin.travel_rules.list',
  title: 'Listed names in Travel Rule data',
  summary: 'List the Travel Rule data with a name on the sanctions list that needs a decision.',
  description:
    'Shows all names in the data beside the list’s entries. It is personal data, for this decision only.',
  route: 'GET /api/admin/travel-rules',
  who: 'admin',
  effect: 'read',
  proof: 'step-up',
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    records: z
      .array(
        z.strictObject({
          id: z.string().describe('`tr_…`'),
          accountId: z.string().describe('`acct_…`: sending account.'),
          destination: z.string().describe('EVM address that the account cannot pay until the decision.'),
          names: z
            .array(untrustedText('A name.'))
            .nullable()
            .describe(
              'Originator, beneficiary and their institutions; null: erased at the sender’s request.',
            ),
          hits: z.array(z.string()).describe('Matching names on the list.'),
        }),
      )
      .describe('Newest first.'),
    nextCursor,
  }),
  failures: ['screening_unavailable'],
  example: {},
  run: async ({ database, settings: { dataKey }, sanctions }, input) => {
    const page = toPage(input)
    const { rows, nextCursor } = cutPage(await undecidedData({ database, dataKey }, page), page)
    const { names: listed } = await sanctions.latest()
    const records = rows.map(({ names, ...row }) => ({
      ...row,
      names: names && [...names],
      hits: [...new Set((names ?? []).flatMap((name) => matchNames(name, listed)))],
    }))
    return { records, nextCursor }
  },
})
