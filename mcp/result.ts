/** Tool results: what a call answers, and what a failure looks like to a model. */
import { Failure } from '../src/failure.ts'
import type { Log } from '../src/log.ts'

/** What a call answers, in either era. */
export interface ToolResult {
  content: [{ type: 'text'; text: string }]
  structuredContent?: Record<string, unknown>
  isError?: true
  [member: string]: unknown
}

/** A success: the answer as structured content, and as its text for clients that read only that. */
export function resultOf(body: Record<string, unknown>): ToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(body) }], structuredContent: body }
}

/**
 * A failure: the problem of the REST API as text. Not as structured content, which 2025-era clients check against the
 * output schema even of an error.
 */
export function failureResult(
  error: unknown,
  { requestId, name, log }: { requestId: string; name: string; log: Log },
): ToolResult {
  const failure = error instanceof Failure ? error : internal(error)
  if (failure.code === 'internal') log.error({ err: error, requestId, tool: name }, 'unexpected error')
  const problem = { ...failure.toProblem(), instance: `/mcp#${name}`, requestId }
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
