import type { PublicFetch } from '../../../providers/public-fetch.ts'

const TIMEOUT_MS = 3_000
/**
 * Size limit of a client metadata document.
 * @see https://datatracker.ietf.org/doc/draft-ietf-oauth-client-id-metadata-document/
 */
const MAX_DOCUMENT_BYTES = 64 * 1024

/**
 * Fetches a client's metadata from the public internet only, so that a client cannot make the gateway request internal
 * services (SSRF). @throws Error when the document is not available or too large.
 */
export async function fetchClientDocument(
  input: string | URL | Request,
  fetchPublic: PublicFetch,
): Promise<Response> {
  const { status, headers, body, truncated } = await fetchPublic({
    url: input instanceof Request ? input.url : input,
    method: 'GET',
    headers: { accept: 'application/json' },
    maxBytes: MAX_DOCUMENT_BYTES,
    timeoutMs: TIMEOUT_MS,
    loopback: false,
  })
  if (truncated) throw new Error('the document is too large')
  const contentType = headers.find(([name]) => name === 'content-type')?.[1] ?? ''
  return new Response(body, { status, headers: { 'content-type': contentType } })
}
