/**
 * The 402 that both generations understand at once: v1 reads the body, v2 the `PAYMENT-REQUIRED` header. What is the same
 * in every challenge is written once; the header is the base64 of JSON, as `@x402/core` encodes it.
 */
import { extensionsOf } from './extensions.ts'
import type { Lock } from './lock.ts'
import { requirementV1, requirementV2, type Terms } from './terms.ts'

/**
 * Makes a challenge. @param reason why there is one, in the words of x402: what a client did not do, or what did not fit.
 * @param lock of the offer; null where nothing can be offered at the moment.
 */
export type Challenge = (reason: string, lock: Lock | null) => Response

/** The challenges of one sale. @param example a query that can be bought. */
export function createChallenge(terms: Terms, example: Readonly<Record<string, string>>): Challenge {
  const acceptsV1 = JSON.stringify([requirementV1(terms)])
  const resource = { url: terms.resource, description: terms.description, mimeType: 'application/json' }
  const fixed = JSON.stringify({ resource, accepts: [requirementV2(terms)] }).slice(1, -1)
  const extensions = JSON.stringify(extensionsOf(example)).slice(1, -1)
  return (reason, lock) => {
    const error = JSON.stringify(reason)
    const offered = lock === null ? '' : `,"extensions":{${extensions},"quote-lock":${lockText(lock)}}`
    const required = `{"x402Version":2,"error":${error},${fixed}${offered}}`
    return new Response(`{"x402Version":1,"error":${error},"accepts":${acceptsV1}}`, {
      status: 402,
      headers: {
        'Content-Type': 'application/json',
        'PAYMENT-REQUIRED': Buffer.from(required).toString('base64'),
        'Cache-Control': 'no-store',
      },
    })
  }
}

function lockText({ token, expiresAt }: Lock): string {
  return JSON.stringify({ info: { token, expiresAt: expiresAt.toISOString() }, schema: {} })
}
