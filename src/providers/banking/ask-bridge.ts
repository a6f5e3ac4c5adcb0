import { callProvider } from '../http-client.ts'

/** A person is waiting. */
const TIMEOUT_MS = 8_000

/** Sends a request to Bridge. @param post its idempotency key and body; null: reads. */
export function askBridge(
  { url, apiKey }: { readonly url: string; readonly apiKey: string },
  path: string,
  post: { readonly key: string; readonly body: unknown } | null,
) {
  return callProvider({
    url: `${url}${path}`,
    method: post === null ? 'GET' : 'POST',
    headers: {
      'api-key': apiKey,
      ...(post === null ? {} : { 'content-type': 'application/json', 'idempotency-key': post.key }),
    },
    ...(post === null ? {} : { body: JSON.stringify(post.body) }),
    timeoutMs: TIMEOUT_MS,
  })
}
