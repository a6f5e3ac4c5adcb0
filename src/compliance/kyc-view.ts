/** An identity review as its person reads it: never what they said. */
import { z } from 'zod'
import { untrustedText } from '../base/untrusted-text.ts'
import type { KycApplicationSummary } from './kyc.ts'

/** The members of the answer. */
export const kycView = z.strictObject({
  id: z.string().describe('`kyc_…`'),
  status: z
    .enum(['init', 'pending', 'approved', 'retry', 'rejected'])
    .describe(
      '`init`: something is missing; `pending`: under review; `retry`: apply again; `rejected`: for good.',
    ),
  level: z.enum(['basic', 'full']).describe('The level that was applied for.'),
  requirements: z.array(z.string()).describe('What is still missing, as paths of the request.'),
  labels: z.array(untrustedText('A label.')).describe('The reviewer’s reasons.'),
  reviewedAt: z.string().nullable().describe('When it was decided, ISO 8601 UTC.'),
})

/** One review. */
export function viewKyc({ application, requirements }: KycApplicationSummary): z.input<typeof kycView> {
  const { id, status, level, labels, reviewedAt } = application
  return {
    id,
    status,
    level,
    requirements: [...requirements],
    labels: [...labels],
    reviewedAt: reviewedAt?.toISOString() ?? null,
  }
}
