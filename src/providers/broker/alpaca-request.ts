/** Authenticated requests to Alpaca. Answers that say nothing about the request's outcome throw. */
import type { z } from 'zod'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import { rootCause } from '../../core/failures/root-cause.ts'
import { callProvider } from '../http-client.ts'

/** @property timeoutMs time limit per answer. */
export interface AlpacaRequestOptions {
  readonly apiKey: string
  readonly apiSecret: string
  readonly log: Log
  readonly timeoutMs?: number
}

/** An answer. @property body null unless JSON. */
export interface Answer {
  readonly status: number
  readonly body: unknown
}

export type Request = (
  method: 'GET' | 'POST' | 'DELETE',
  url: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<Answer>

/** Limit for the largest answer, a page of bars. */
const MAX_BYTES = 8 * 1024 * 1024

/** Creates the authenticated request function. @throws Failure `provider_unavailable` without a usable answer. */
export function createRequester({
  apiKey,
  apiSecret,
  log,
  timeoutMs = 5_000,
}: AlpacaRequestOptions): Request {
  const authorization = `Basic ${Buffer.from(`${apiKey}:${apiSecret}`).toString('base64')}`
  return async (method, url, body, headers = {}) => {
    try {
      const response = await callProvider({
        url,
        method,
        headers: {
          accept: 'application/json',
          authorization,
          ...headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        timeoutMs,
        maxBytes: MAX_BYTES,
      })
      const { text } = response
      if (response.status === 429 || response.status >= 500 || [401, 408].includes(response.status))
        throw unavailable(`answered ${response.status}`)
      return { status: response.status, body: text === '' ? null : JSON.parse(text) }
    } catch (cause) {
      const failure =
        cause instanceof Failure
          ? cause
          : unavailable(`returned no usable answer within ${timeoutMs} ms`, cause)
      log.warn({ why: rootCause(cause) }, 'the broker request failed')
      throw failure
    }
  }
}

export function unavailable(why: string, cause?: unknown): Failure {
  return new Failure(
    'provider_unavailable',
    `The broker ${why}.`,
    { retryAfter: 5, hint: 'Send the same request again later.' },
    cause === undefined ? undefined : { cause },
  )
}

/** Parses an answer's body. @throws Failure `provider_unavailable` for any other shape. */
export function read<Schema extends z.ZodType>(schema: Schema, { status, body }: Answer): z.output<Schema> {
  const parsed = schema.safeParse(body)
  if (status !== 200 || !parsed.success) throw unavailable(`answered ${status} with an unexpected body`)
  return parsed.data
}
