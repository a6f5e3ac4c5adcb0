/**
 * Payment authentication (MPP) of the sandbox's sellers: challenges and credentials of `evm/charge`.
 * @see https://datatracker.ietf.org/doc/draft-httpauth-payment/
 */
import { createHmac } from 'node:crypto'
import { keccak256, stringToHex } from 'viem'
import { z } from 'zod'
import { randomToken } from '../../../core/base/ids.ts'
import { canonicalJson } from '../../../core/base/json.ts'
import type { Terms } from '../../../rails/selling/x402/terms.ts'
import type { SignedTransfer } from '../../../sandbox/sellers/take-payment.ts'
import { parseSignedTransfer } from './signed-transfer.ts'

const LIFETIME_MS = 300_000

/** @property key authenticates challenges, so that the seller need not remember them. */
export interface MppSeller {
  readonly key: Uint8Array
  readonly chainId: number
  readonly now: Date
}

const challengeFields = {
  realm: z.string(),
  method: z.literal('evm'),
  intent: z.literal('charge'),
  request: z.string(),
  expires: z.iso.datetime(),
  opaque: z.string(),
}

const credential = z.object({
  challenge: z.object({ id: z.string(), ...challengeFields }),
  payload: z.object({
    type: z.literal('authorization'),
    from: z.string(),
    to: z.string(),
    value: z.string(),
    validAfter: z.string(),
    validBefore: z.string(),
    nonce: z.string(),
    signature: z.string(),
  }),
})

type Challenge = Omit<z.output<typeof credential>['challenge'], 'id'>

/** Builds the `WWW-Authenticate` header of a 402. */
export function mppChallenge(
  { key, chainId, now }: MppSeller,
  { asset, payTo, units, resource }: Terms,
): string {
  const request = {
    amount: units.toString(),
    currency: asset,
    recipient: payTo,
    methodDetails: { chainId, credentialTypes: ['authorization'], decimals: 6 },
  }
  const challenge: Challenge = {
    realm: new URL(resource).hostname,
    method: 'evm',
    intent: 'charge',
    request: encodeJson(request),
    expires: new Date(now.getTime() + LIFETIME_MS).toISOString(),
    // Makes every challenge another one, also within a millisecond: its id becomes the payment's nonce.
    opaque: encodeJson({ salt: randomToken(12) }),
  }
  const { realm, method, intent, expires, opaque } = challenge
  const members = {
    id: deriveId(key, challenge),
    realm,
    method,
    intent,
    request: challenge.request,
    expires,
    opaque,
  }
  return `Payment ${Object.entries(members)
    .map(([name, value]) => `${name}="${value}"`)
    .join(', ')}`
}

/**
 * Reads the payment of an `Authorization` header that answers one of our challenges; null for anything else.
 */
export function mppPayment(
  { key, now }: MppSeller,
  authorization: string | undefined,
): SignedTransfer | null {
  const text = /^Payment +([A-Za-z0-9_-]+)$/i.exec(authorization ?? '')?.[1]
  const read = text === undefined ? undefined : credential.safeParse(decodeJson(text))
  if (read?.success !== true) return null
  const { challenge, payload } = read.data
  const isOurs = challenge.id === deriveId(key, challenge) && new Date(challenge.expires) > now
  const transfer = parseSignedTransfer({ authorization: payload, signature: payload.signature })
  // The nonce ties the payment to the challenge.
  const nonce = keccak256(stringToHex(`${challenge.id}${challenge.realm}`))
  return isOurs && transfer?.nonce.toLowerCase() === nonce ? transfer : null
}

export function mppReceipt(transaction: string, now: Date): string {
  return encodeJson({
    method: 'evm',
    reference: transaction,
    status: 'success',
    timestamp: now.toISOString(),
  })
}

function deriveId(key: Uint8Array, { realm, method, intent, request, expires, opaque }: Challenge): string {
  const bound = JSON.stringify(['sandbox seller', realm, method, intent, request, expires, opaque])
  return createHmac('sha256', key).update(bound).digest('base64url')
}

function encodeJson(value: unknown): string {
  return Buffer.from(canonicalJson(value)).toString('base64url')
}

function decodeJson(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}
