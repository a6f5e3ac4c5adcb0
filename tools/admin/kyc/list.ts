import { z } from 'zod'
import { matchNames } from '../../../policies/aml/match-names.ts'
import { nextCursor, onePage, pageMembers, pageOf } from '../../../src/base/page.ts'
import { untrustedText, untrustedTextOrNull } from '../../../src/base/untrusted-text.ts'
import { manuallyReviewedReasons } from '../../../src/compliance/kyc.ts'
import { undecidedApplications } from '../../../src/compliance/kyc-store.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'admin.kyc.list',
  title: 'Sanctions hits',
  summary:
    'List the identity verifications whose name is on the sanctions list and that wait for a decision.',
  description:
    'Shows who they say they are, beside what the list says: personal data, for this decision alone.',
  route: 'GET /api/admin/kyc',
  who: 'admin',
  scopes: [],
  effect: 'read',
  stepUp: true,
  mcp: false,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    applications: z
      .array(
        z.strictObject({
          id: z.string().describe('`kyc_…`'),
          accountId: z.string().describe('`acct_…`'),
          level: z.enum(['basic', 'full']).describe('The level that was applied for.'),
          applicant: z
            .strictObject({
              name: untrustedText('Given and family names.'),
              dateOfBirth: untrustedTextOrNull('ISO 8601 date.'),
              country: untrustedTextOrNull('ISO 3166-1 alpha-2.'),
            })
            .nullable()
            .describe('Who they say they are; null: erased by its person.'),
          hits: z
            .array(z.string())
            .describe(
              'Names of the list that it may be; none: another person than the account’s earlier applications name.',
            ),
        }),
      )
      .describe('Newest first.'),
    nextCursor,
  }),
  failures: ['screening_unavailable'],
  example: {},
  run: async ({ database, settings: { dataKey }, sanctions }, input) => {
    const page = pageOf(input)
    const found = await undecidedApplications(
      { database, dataKey },
      { labels: manuallyReviewedReasons, page },
    )
    const { rows, nextCursor } = onePage(found, page)
    const { names } = await sanctions.latest()
    const applications = rows.map(({ id, accountId, level, said }) => {
      const { firstName = '', lastName = '', dateOfBirth = null, country = null } = said?.applicant ?? {}
      const name = `${firstName} ${lastName}`.trim()
      const applicant = said === null ? null : { name, dateOfBirth, country }
      return { id, accountId, level, applicant, hits: [...matchNames(name, names)] }
    })
    return { applications, nextCursor }
  },
})
