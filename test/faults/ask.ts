/** Timed requests with a time limit, and the required form of a refusal for an unavailable part. */
import { expect } from 'vitest'
import { z } from 'zod'
import { failures, isFailureCode } from '../../src/core/failures/failure.ts'

/** Limit for any answer, during any fault, in milliseconds. */
export const MAX_ANSWER_MS = 10_000

export interface TimedAnswer {
  readonly status: number
  readonly ms: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

/** Sends JSON, reads JSON. @throws Error without an answer within {@link MAX_ANSWER_MS}. */
export async function sendJson(
  url: string,
  {
    method = 'GET',
    headers = {},
    body,
  }: { method?: string; headers?: Record<string, string>; body?: unknown } = {},
): Promise<TimedAnswer> {
  const start = performance.now()
  const response = await fetch(url, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(MAX_ANSWER_MS),
  })
  const parsedBody = z.record(z.string(), z.unknown()).parse(await response.json())
  return {
    status: response.status,
    ms: performance.now() - start,
    headers: response.headers,
    body: parsedBody,
  }
}

/** Expects a 503 from the failure table with a retry time. @param code any, or these. */
export function expectUnavailable(parsedBody: TimedAnswer, ...codes: readonly string[]): void {
  const { code, status, retryAfter } = z
    .object({ code: z.string(), status: z.number(), retryAfter: z.int().positive() })
    .parse(parsedBody.body)
  expect([parsedBody.status, status]).toEqual([503, 503])
  expect(isFailureCode(code) && failures[code].status).toBe(503)
  if (codes.length > 0) expect(codes).toContain(code)
  expect(parsedBody.headers.get('content-type')).toBe('application/problem+json')
  expect(parsedBody.headers.get('retry-after')).toBe(String(retryAfter))
}
