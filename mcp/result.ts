/** Builds tool results for successes and failures. */

import type { Log } from '../src/core/base/log.ts'
import { Failure } from '../src/core/failures/failure.ts'
import { advisedInToolTerms } from './tool-terms.ts'

/** The result of a call in both protocol eras. */
export interface ToolResult {
  content: [{ type: 'text'; text: string }]
  structuredContent?: Record<string, unknown>
  isError?: true
  _meta?: Record<string, unknown>
  [member: string]: unknown
}

const REPLAYED = 'bursar/replayed'

/**
 * Builds a success: structured content, and its text for clients that only read text. @param untrusted result members
 * written by third parties, listed in `_meta`. @param replayed true for the stored answer of an earlier call; null for a
 * tool that only reads.
 */
export function toResult(
  body: Record<string, unknown>,
  { untrusted = [], replayed = null }: { untrusted?: readonly string[]; replayed?: boolean | null } = {},
): ToolResult {
  const shown = replayed === null ? body : { ...body, replayed }
  const meta = {
    ...(untrusted.length === 0 ? {} : { 'bursar/untrusted': untrusted }),
    ...(replayed === null ? {} : { [REPLAYED]: replayed }),
  }
  return {
    content: [{ type: 'text', text: JSON.stringify(shown) }],
    structuredContent: shown,
    ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
  }
}

/**
 * Builds a failure: the REST problem as text. It is not structured content, because 2025-era clients validate even
 * errors against the output schema. @param isWrite the tool writes, so the failure says whether it is an earlier call’s.
 * @param terms x402 terms, if the caller can still pay by itself.
 */
export function failureResult(
  error: unknown,
  {
    requestId,
    name,
    log,
    terms,
    inToolTerms,
    isWrite,
  }: {
    requestId: string
    name: string
    log: Log
    terms?: Record<string, unknown>
    isWrite: boolean
    inToolTerms: (text: string) => string
  },
): ToolResult {
  const failure = error instanceof Failure ? error : internal(error)
  if (failure.code === 'internal') log.error({ err: error, requestId, tool: name }, 'unexpected error')
  const told = advisedInToolTerms(failure.toProblem(), inToolTerms)
  const isReplayed = failure.members.isReplayed === true
  const replayed = isWrite ? { replayed: isReplayed } : {}
  const problem = { ...terms, ...told, ...replayed, instance: `/mcp#${name}`, requestId }
  return {
    content: [{ type: 'text', text: JSON.stringify(problem) }],
    isError: true,
    ...(isWrite ? { _meta: { [REPLAYED]: isReplayed } } : {}),
  }
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
