/** The 402 that both generations understand at once: v1 reads the body, v2 the `PAYMENT-REQUIRED` header. */
import { encodePaymentRequiredHeader } from '@x402/core/http'
import type { extensionsOf } from './extensions.ts'
import { requirementV1, requirementV2, type Terms } from './terms.ts'

/**
 * A challenge. @param reason why there is one, in the words of x402: what a client did not do, or what did not fit.
 * @param extensions what version 2 says beside; none where nothing can be offered at the moment.
 */
export function challengeResponse(
  terms: Terms,
  reason: string,
  extensions?: ReturnType<typeof extensionsOf>,
): Response {
  const required = encodePaymentRequiredHeader({
    x402Version: 2,
    error: reason,
    resource: { url: terms.resource, description: terms.description, mimeType: 'application/json' },
    accepts: [requirementV2(terms)],
    ...(extensions === undefined ? {} : { extensions }),
  })
  const body = { x402Version: 1, error: reason, accepts: [requirementV1(terms)] }
  return Response.json(body, {
    status: 402,
    headers: { 'PAYMENT-REQUIRED': required, 'Cache-Control': 'no-store' },
  })
}
