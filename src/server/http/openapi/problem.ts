/** Problem schema and examples for the OpenAPI document. */
import { Failure, type FailureCode, failures } from '../../../core/failures/failure.ts'
import { failureGuide } from '../../../core/failures/failure-guide.ts'

/** RFC 9457 problem details with our extension members. */
export const problemSchema = {
  type: 'object',
  description: 'RFC 9457 problem details.',
  required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'requestId'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    instance: { type: 'string' },
    code: { type: 'string', enum: Object.keys(failures) },
    requestId: { type: 'string' },
    hint: { type: 'string' },
    reason: { type: 'string' },
    retryAfter: { type: 'integer', description: 'seconds' },
    decisionId: { type: 'string' },
    transferId: { type: 'string' },
    approvalId: { type: 'string' },
    approvalUrl: { type: 'string' },
    note: { type: 'string' },
    paymentId: { type: 'string' },
    transaction: { type: 'string' },
    scopes: { type: 'array', items: { type: 'string' } },
    violations: {
      type: 'array',
      items: {
        type: 'object',
        properties: Object.fromEntries(
          ['rule', 'limit', 'used', 'requested', 'remaining', 'resetsAt', 'agentId'].map((name) => [
            name,
            { type: ['string', 'null'] },
          ]),
        ),
      },
    },
    issues: {
      type: 'array',
      items: { type: 'object', properties: { path: { type: 'string' }, message: { type: 'string' } } },
    },
    screening: { type: 'object' },
    asset: { type: 'string' },
    chain: { type: ['string', 'null'] },
    available: { type: 'string' },
    elsewhere: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          chain: { type: ['string', 'null'] },
          asset: { type: 'string' },
          available: { type: 'string' },
        },
      },
    },
  },
}

/** Example problem for a code, with every member that it can carry. */
export function problemExample(code: FailureCode): Record<string, unknown> {
  const { example, members } = failureGuide[code]
  return {
    ...new Failure(code, example, members).toProblem(),
    instance: '/api/wallets/transfer',
    requestId: 'req_01kag5x0n0e8tr7v3m2c4q6w8y',
  }
}
