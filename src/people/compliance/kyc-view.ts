/** An identity review as shown to its applicant, without personal data. */
import { z } from 'zod'
import { untrustedText } from '../../core/base/untrusted-text.ts'
import type { KycApplicationSummary } from './kyc.ts'

export const kycView = z.strictObject({
  id: z.string().describe('`kyc_…`'),
  status: z
    .enum(['init', 'pending', 'approved', 'retry', 'rejected'])
    .describe(
      '`init`: incomplete; `pending`: under review; `retry`: apply again; `rejected`: permanently rejected.',
    ),
  level: z.enum(['basic', 'full']).describe('Level applied for.'),
  requirements: z.array(z.string()).describe('Missing members, as paths of the request.'),
  labels: z.array(untrustedText('A label.')).describe('The reviewer’s reasons.'),
  reviewedAt: z.string().nullable().describe('When it was decided, ISO 8601 UTC; null before.'),
})
kycView.register(z.globalRegistry, { id: 'Kyc' })

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
