/**
 * The only client for providers' HTTP APIs. Every call has a checked URL, a time limit that covers the body, and a
 * size limit. A redirect is an error, because it would send our credentials elsewhere.
 */
import { fetchWithin } from '../core/base/fetch-within.ts'

/** Default size limit. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** Maximum time limit, regardless of the call's own signal. */
const MAX_TIMEOUT_MS = 30_000

/** A call. @property timeoutMs time limit including the body. */
export interface ProviderCall {
  readonly url: string | URL
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>> | Headers
  readonly body?: RequestInit['body']
  readonly timeoutMs?: number
  readonly maxBytes?: number
  /** Ends the call earlier. */
  readonly signal?: AbortSignal | undefined
}

/** A complete answer. */
export interface ProviderAnswer {
  readonly status: number
  /** True if the status is 2xx. */
  readonly ok: boolean
  readonly headers: Headers
  /** Body; empty if an error's body could not be read within the limits. */
  readonly text: string
}

/** Calls a provider. @throws Error when no complete answer arrives within the limits, or the URL is invalid. */
export async function callProvider({
  url,
  method = 'GET',
  headers = {},
  body = null,
  timeoutMs = MAX_TIMEOUT_MS,
  maxBytes = MAX_ANSWER_BYTES,
  signal,
}: ProviderCall): Promise<ProviderAnswer> {
  const { response, text } = await fetchWithin(
    checkedUrl(url),
    { method, headers, body, redirect: 'error' },
    { timeoutMs, maxBytes, signal },
  )
  return { status: response.status, ok: response.ok, headers: response.headers, text }
}

/** Reads the provider's Retry-After in whole seconds; undefined if absent. */
export function parseRetryAfter({ headers }: Pick<ProviderAnswer, 'headers'>): number | undefined {
  const text = headers.get('retry-after')
  return text !== null && /^[1-9]\d{0,4}$/.test(text) ? Number(text) : undefined
}

/** Errors never contain the URL, because its path may contain a key. */
function checkedUrl(input: string | URL): URL {
  const url = URL.canParse(String(input)) ? new URL(input) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new Error('a provider URL must be http or https')
  if (url.username !== '' || url.password !== '')
    throw new Error('a provider URL must not contain credentials')
  return url
}
