import type { IncomingMessage, ServerResponse } from 'node:http'

/** Where clients read from the code whether a rail can be used. Spec 7. */
const QUOTE = '/api/x402/fx'

/** Answers every request with 503 until the gateway is up. */
export function answerStarting(
  { url = '/' }: IncomingMessage,
  response: ServerResponse,
  requestId: string,
): void {
  const instance = url.replace(/\?.*$/s, '')
  const isQuote = instance === QUOTE
  const code = isQuote ? 'controls_unavailable' : 'provider_unavailable'
  const problem = {
    type: `/errors/${code}`,
    title: 'Starting',
    status: 503,
    detail: 'The gateway is starting; the request had no effect.',
    instance,
    code,
    ...(isQuote ? { reason: 'plan_limit' } : {}),
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
