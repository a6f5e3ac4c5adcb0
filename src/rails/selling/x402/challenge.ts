/** Builds the 402 challenge of both x402 generations, as JSON texts. Constant parts are serialized once. */
import { buildExtensions } from './extensions.ts'
import type { Lock } from './lock.ts'
import type { ChallengeOutcome } from './sale.ts'
import { requirementsV2, requirementV1, type Terms } from './terms.ts'

/**
 * Builds a challenge. @param reason x402 error text. @param lock lock of the offer; null when nothing can be offered.
 */
export type Challenge = (reason: string, lock: Lock | null) => ChallengeOutcome

/** @param offered terms on each chain, the default first. @param example a valid query for the resource. */
export function createChallenge(
  offered: readonly [Terms, ...Terms[]],
  example: Readonly<Record<string, string>>,
): Challenge {
  const [{ resource: url, description, mimeType }] = offered
  const acceptsV1 = JSON.stringify(offered.map(requirementV1).filter((requirement) => requirement !== null))
  const resource = { url, description, mimeType }
  const fixed = JSON.stringify({ resource, accepts: offered.flatMap(requirementsV2) }).slice(1, -1)
  const extensions = JSON.stringify(buildExtensions(example)).slice(1, -1)
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
