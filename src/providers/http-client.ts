/**
 * The one client for providers' HTTP APIs. Every call has a checked URL, a time limit that covers the body, and a size limit;
 * a redirect is an error, because it would carry our credentials elsewhere.
 */
import { fetchWithin } from '../base/fetch-within.ts'

/** More than any provider's answer that is not said to be larger. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** No call is waited for longer, whatever its own signal says. */
const MAX_TIMEOUT_MS = 30_000

/** A call. @property timeoutMs for all of it, the body too. */
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

/** An answer, whole. */
export interface ProviderAnswer {
  readonly status: number
  /** Whether the status is one of success. */
  readonly ok: boolean
  readonly headers: Headers
  /** The body; empty where a refusal's body could not be read within the limits. */
  readonly text: string
}

/** Calls a provider. @throws Error where no whole answer comes within the limits, or the URL is none to call. */
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

/** Whole seconds that a provider asks to wait; undefined where it does not say. */
export function retryAfterOf({ headers }: Pick<ProviderAnswer, 'headers'>): number | undefined {
  const text = headers.get('retry-after')
  return text !== null && /^[1-9]\d{0,4}$/.test(text) ? Number(text) : undefined
}

/** The error never names the URL: its path may hold a key. */
function checkedUrl(input: string | URL): URL {
  const url = URL.canParse(String(input)) ? new URL(input) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new Error('a provider is called at an http or https URL alone')
  if (url.username !== '' || url.password !== '')
    throw new Error('the URL of a provider must not hold credentials')
  return url
}
