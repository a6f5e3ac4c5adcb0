import type { IncomingMessage, ServerResponse } from 'node:http'

/** Answers every request with 503 until the gateway is up. */
export function answerStarting(
  { url = '/' }: IncomingMessage,
  response: ServerResponse,
  requestId: string,
): void {
  const problem = {
    type: '/errors/provider_unavailable',
    title: 'Starting',
    status: 503,
    detail: 'The gateway is starting; the request had no effect.',
    instance: url.replace(/\?.*$/s, ''),
    code: 'provider_unavailable',
    requestId,
    retryAfter: 1,
    hint: 'Send the same request again in a second.',
  }
  const headers = {
    'content-type': 'application/problem+json',
    'retry-after': '1',
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  }
  response.writeHead(503, headers).end(JSON.stringify(problem))
}
