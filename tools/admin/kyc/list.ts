import { z } from 'zod'
import { matchNames } from '../../../policies/aml/match-names.ts'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { untrustedText, untrustedTextOrNull } from '../../../src/core/base/untrusted-text.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { manuallyReviewedReasons } from '../../../src/people/compliance/kyc.ts'
import { undecidedApplications } from '../../../src/people/compliance/kyc-store.ts'

export default defineTool({
  name: 'admin.kyc.list',
  title: 'Sanctions hits',
  summary: 'List the identity verifications that need a manual decision because of a sanctions hit.',
  description:
    'Shows the applicant’s data beside the list’s entries. It is personal data, for this decision only.',
  route: 'GET /api/admin/kyc',
  who: 'admin',
  effect: 'read',
  proof: 'step-up',
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    applications: z
      .array(
        z.strictObject({
          id: z.string().describe('`kyc_…`'),
          accountId: z.string().describe('`acct_…`'),
          level: z.enum(['basic', 'full']).describe('Level applied for.'),
          applicant: z
            .strictObject({
              name: untrustedText('Given and family names.'),
              dateOfBirth: untrustedTextOrNull('ISO 8601 date.'),
              country: untrustedTextOrNull('ISO 3166-1 alpha-2.'),
            })
            .nullable()
            .describe('Data of the applicant; null: erased at the applicant’s request.'),
          hits: z
            .array(z.string())
            .describe(
              'Matching names on the list; empty: the applicant differs from the account’s earlier applications.',
            ),
        }),
      )
      .describe('Newest first.'),
    nextCursor,
  }),
  failures: ['screening_unavailable'],
  example: {},
  run: async ({ database, settings: { dataKey }, sanctions }, input) => {
    const page = toPage(input)
    const found = await undecidedApplications(
      { database, dataKey },
      { labels: manuallyReviewedReasons, page },
    )
    const { rows, nextCursor } = cutPage(found, page)
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
