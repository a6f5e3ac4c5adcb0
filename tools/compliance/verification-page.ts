import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { requirePerson } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findApplication } from '../../src/people/compliance/kyc-store.ts'

export default defineTool({
  name: 'compliance.verification_page',
  title: 'Page for documents and selfie',
  summary: 'Get the reviewer’s page where the owner shows documents and takes a selfie.',
  description:
    'For a review that is `pending` because its level asks for documents: the owner opens `url` before `expiresAt`. The review goes on by itself once they are there. The sandbox needs none, and answers null.',
  route: 'POST /api/compliance/kyc/page',
  who: 'person',
  // Whoever has it is verified as the account's owner.
  role: 'owner',
  // Nothing of ours changes, and the link, which opens the person's own review, is stored nowhere.
  effect: 'read',
  input: z.strictObject({}),
  output: z.strictObject({
    url: z.string().nullable().describe('Page of the reviewer, for its owner only; null: none is needed.'),
    expiresAt: z.string().nullable().describe('When the link ends, ISO 8601 UTC; null without one.'),
  }),
  failures: ['conflict', 'provider_unavailable'],
  example: {},
  run: async ({ database, settings, identityReview, now, ...context }) => {
    if (identityReview.page === null) return { url: null, expiresAt: null }
    const accountId = requirePerson(context).account.id
    const keeping = { database, dataKey: settings.dataKey }
    for (const level of ['full', 'basic'] as const) {
      const found = await findApplication(keeping, { accountId, level })
      if (found?.status !== 'pending' || found.reference === null) continue
      const { url, expiresAt } = await identityReview.page({ id: found.id, level }, now)
      return { url, expiresAt: expiresAt.toISOString() }
    }
    throw new Failure('conflict', 'No identity review of this account waits for documents.', {
      hint: 'POST /api/compliance/kyc submits the data for a review.',
    })
  },
})
