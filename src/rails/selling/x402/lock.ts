/**
 * Quote locks: the price and response of a challenge, encrypted and bound to the request. Encryption hides the unpaid
 * response from the client. The client stores the lock and sends it back; the gateway stores nothing.
 */
import { z } from 'zod'
import { seal, unseal } from '../../../core/base/seal.ts'

/** Lifetime of a lock, equal to that of a quote. */
const LOCK_MS = 60_000
const PURPOSE = 'x402 offer'

/** @property units of USDC (1 USDC = 1_000_000n). */
export interface Offer {
  readonly units: bigint
  readonly answer: Record<string, unknown>
}

export interface Lock {
  readonly token: string
  readonly expiresAt: Date
}

const offered = z.object({
  units: z.string().transform(BigInt),
  answer: z.record(z.string(), z.unknown()),
  until: z.number(),
})

/** @param request method, path and input that the offer is bound to. */
export function lockOffer(dataKey: Uint8Array, request: string, { units, answer }: Offer, now: Date): Lock {
  const until = now.getTime() + LOCK_MS
  const text = JSON.stringify({ units: units.toString(), answer, until })
  const sealed = seal(dataKey, { purpose: PURPOSE, owner: request }, text)
  return { token: Buffer.from(sealed).toString('base64url'), expiresAt: new Date(until) }
}

/** Returns the offer of a lock, or undefined if it is expired, bound to another request or invalid. */
export function unlockOffer(
  dataKey: Uint8Array,
  request: string,
  token: string,
  now: Date,
): Offer | undefined {
  const text = tryUnseal(dataKey, request, Buffer.from(token, 'base64url'))
  if (text === undefined) return undefined
  const { until, ...offer } = offered.parse(JSON.parse(text))
  return now.getTime() < until ? offer : undefined
}

function tryUnseal(dataKey: Uint8Array, request: string, sealed: Uint8Array): string | undefined {
  try {
    return unseal(dataKey, { purpose: PURPOSE, owner: request }, sealed)
  } catch {
    // An invalid lock is ignored; the current price applies.
    return undefined
  }
}
