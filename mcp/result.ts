/** Tool results: what a call answers, and what a failure looks like to a model. */

import type { Log } from '../src/base/log.ts'
import { Failure } from '../src/failures/failure.ts'

/** What a call answers, in either era. */
export interface ToolResult {
  content: [{ type: 'text'; text: string }]
  structuredContent?: Record<string, unknown>
  isError?: true
  [member: string]: unknown
}

/**
 * A success: the answer as structured content, and as its text for clients that read only that.
 * @param foreign members of it that third parties wrote: named beside it, so that a client can keep them apart.
 */
export function resultOf(body: Record<string, unknown>, foreign: readonly string[] = []): ToolResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(body) }],
    structuredContent: body,
    ...(foreign.length === 0 ? {} : { _meta: { 'bursar/untrusted': foreign } }),
  }
}

/**
 * A failure: the problem of the REST API as text. Not as structured content, which 2025-era clients check against the
 * output schema even of an error. @param terms of x402, where the caller can still pay by itself: clients that can find them there.
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
    'Something went wrong on our side.',
    {
      hint: 'Repeat the call with the same idempotency_key; if it fails again, report the request id.',
    },
    { cause },
  )
}
