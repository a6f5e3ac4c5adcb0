/** The challenge of both x402 generations, as JSON texts: what is the same in every challenge is serialized once. */
import { extensionsOf } from './extensions.ts'
import type { Lock } from './lock.ts'
import type { ChallengeOutcome } from './sale.ts'
import { requirementV1, requirementV2, type Terms } from './terms.ts'

/**
 * Makes a challenge. @param reason why there is one, in the terms of x402: what is missing or does not fit.
 * @param lock of the offer; null where nothing can be offered at the moment.
 */
export type Challenge = (reason: string, lock: Lock | null) => ChallengeOutcome

/** The challenges of one sale. @param example a query that can be bought. */
export function createChallenge(terms: Terms, example: Readonly<Record<string, string>>): Challenge {
  const acceptsV1 = JSON.stringify([requirementV1(terms)])
  const resource = { url: terms.resource, description: terms.description, mimeType: 'application/json' }
  const fixed = JSON.stringify({ resource, accepts: [requirementV2(terms)] }).slice(1, -1)
  const extensions = JSON.stringify(extensionsOf(example)).slice(1, -1)
  return (reason, lock) => {
    const error = JSON.stringify(reason)
    const offered = lock === null ? '' : `,"extensions":{${extensions},"quote-lock":${lockText(lock)}}`
    return {
      status: 'payment_required',
      v1: `{"x402Version":1,"error":${error},"accepts":${acceptsV1}}`,
      v2: `{"x402Version":2,"error":${error},${fixed}${offered}}`,
    }
  }
}

function lockText({ token, expiresAt }: Lock): string {
  return JSON.stringify({ info: { token, expiresAt: expiresAt.toISOString() }, schema: {} })
}
