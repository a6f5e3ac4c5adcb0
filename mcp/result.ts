/** Builds tool results for successes and failures. */

import type { Log } from '../src/base/log.ts'
import { Failure } from '../src/failures/failure.ts'

/** The result of a call in both protocol eras. */
export interface ToolResult {
  content: [{ type: 'text'; text: string }]
  structuredContent?: Record<string, unknown>
  isError?: true
  [member: string]: unknown
}

/**
 * Builds a success: structured content, and its text for clients that only read text. @param untrusted result members
 * written by third parties, listed in `_meta`.
 */
export function resultOf(body: Record<string, unknown>, untrusted: readonly string[] = []): ToolResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(body) }],
    structuredContent: body,
    ...(untrusted.length === 0 ? {} : { _meta: { 'bursar/untrusted': untrusted } }),
  }
}

/**
 * Builds a failure: the REST problem as text. It is not structured content, because 2025-era clients validate even
 * errors against the output schema. @param terms x402 terms, if the caller can still pay by itself.
 */
export function failureResult(
  error: unknown,
  {
    requestId,
    name,
    log,
    terms,
    inToolTerms,
  }: {
    requestId: string
    name: string
    log: Log
    terms?: Record<string, unknown>
    inToolTerms: (text: string) => string
  },
): ToolResult {
  const failure = error instanceof Failure ? error : internal(error)
  if (failure.code === 'internal') log.error({ err: error, requestId, tool: name }, 'unexpected error')
  const { hint, ...told } = failure.toProblem()
  const inTerms = typeof hint === 'string' ? { hint: inToolTerms(hint) } : {}
  const problem = { ...terms, ...told, ...inTerms, instance: `/mcp#${name}`, requestId }
  return { content: [{ type: 'text', text: JSON.stringify(problem) }], isError: true }
}

function internal(cause: unknown): Failure {
  return new Failure(
    'internal',
    'An unexpected error occurred. The server log has the details under the request id.',
    {
      hint: 'Repeat the call with the same idempotency_key; if it fails again, report the request id.',
    },
    { cause },
  )
}
