/**
 * The price and the rate of a challenge, locked: sealed, so that nobody reads what they have not paid for, and bound to the
 * request that they were made for. The client keeps it and gives it back; nothing is stored.
 */
import { z } from 'zod'
import { seal, unseal } from '../base/seal.ts'

/** How long a lock holds: as long as a quote does. */
const LOCK_MS = 60_000
const PURPOSE = 'x402 offer'

/** What a client was offered. @property units of USDC (1 USDC = 1_000_000n). */
export interface Offer {
  readonly units: bigint
  readonly answer: Record<string, unknown>
}

/** An offer on its way to the client. */
export interface Lock {
  readonly token: string
  readonly expiresAt: Date
}

const offered = z.object({
  units: z.string().transform(BigInt),
  answer: z.record(z.string(), z.unknown()),
  until: z.number(),
})

/** Locks an offer. @param request what it was made for. */
export function lockOffer(dataKey: Uint8Array, request: string, { units, answer }: Offer, now: Date): Lock {
  const until = now.getTime() + LOCK_MS
  const text = JSON.stringify({ units: units.toString(), answer, until })
  const sealed = seal(dataKey, { purpose: PURPOSE, owner: request }, text)
  return { token: Buffer.from(sealed).toString('base64url'), expiresAt: new Date(until) }
}

/** The offer of a lock, or undefined where it is over, of another request, or none of ours. */
export function unlockOffer(
  dataKey: Uint8Array,
  request: string,
  token: string,
  now: Date,
): Offer | undefined {
  const text = unsealed(dataKey, request, Buffer.from(token, 'base64url'))
  if (text === undefined) return undefined
  const { until, ...offer } = offered.parse(JSON.parse(text))
  return now.getTime() < until ? offer : undefined
}

function unsealed(dataKey: Uint8Array, request: string, sealed: Uint8Array): string | undefined {
  try {
    return unseal(dataKey, { purpose: PURPOSE, owner: request }, sealed)
  } catch {
    // Whoever gives back something else is sold to at the price of the moment.
    return undefined
  }
}
