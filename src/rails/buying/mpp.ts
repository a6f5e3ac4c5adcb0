/**
 * The `Payment` challenge of HTTP authentication, method `evm`, intent `charge`, paid by an EIP-3009 authorization. Its nonce is
 * prescribed by the challenge, so that the seller chooses it. @see https://datatracker.ietf.org/doc/draft-httpauth-payment/
 */
import { keccak256, stringToHex } from 'viem'
import { z } from 'zod'
import { isStorable, type Json, toJson } from '../../core/base/json.ts'
import type { Chain, Hex } from '../../providers/chain/port.ts'
import type { PublicAnswer } from '../../providers/public-fetch.ts'
import { parseStrangersJson } from './stranger-json.ts'
import { headerValues, type ReadOffer } from './terms.ts'

const MAX_HEADER_LENGTH = 32 * 1024
const MAX_CHALLENGES = 10
/** Validity where the challenge names none, in seconds. */
const SECONDS = 300

const text = z.string().refine(isStorable)

/** A challenge's parameters as they were sent: they are sent back unchanged. */
const challenge = z.object({
  id: text.min(1).max(1024),
  realm: text.max(1024),
  method: text.max(64),
  intent: text.max(64),
  request: text.max(16_384),
  expires: text.max(64).optional(),
  description: text.max(4096).optional(),
  digest: text.max(256).optional(),
  header: text.max(64).optional(),
  opaque: text.max(4096).optional(),
})

const charge = z.looseObject({
  amount: z.string(),
  currency: z.string(),
  recipient: z.string(),
  methodDetails: z.looseObject({
    chainId: z.number(),
    credentialTypes: z.array(z.string()).optional(),
    splits: z.array(z.unknown()).optional(),
  }),
})

/** The only fields that a stranger may have the credential sent in. */
const FIELDS = /^(payment-)?authorization$/i

export function readMppChallenges(
  { id }: Pick<Chain, 'id'>,
  answer: Pick<PublicAnswer, 'headers'>,
  now: Date,
): readonly ReadOffer[] {
  return headerValues(answer, 'www-authenticate')
    .filter((header) => header.length <= MAX_HEADER_LENGTH)
    .flatMap(paymentChallenges)
    .slice(0, MAX_CHALLENGES)
    .flatMap((parameters): ReadOffer[] => {
      const read = challenge.safeParse(parameters)
      const request = read.success
        ? charge.safeParse(parseStrangersJson(Buffer.from(read.data.request, 'base64url').toString()))
        : undefined
      if (!read.success || request?.success !== true) return []
      const { method, intent, header = 'authorization', expires, description } = read.data
      const { amount, currency, recipient, methodDetails } = request.data
      const { chainId, credentialTypes = [], splits = [] } = methodDetails
      const expiresAt = expires === undefined ? null : new Date(expires)
      const leftMs = expiresAt === null ? SECONDS * 1000 : expiresAt.getTime() - now.getTime()
      return [
        {
          protocol: 'mpp',
          scheme: 'exact',
          network: `eip155:${chainId}`,
          isOurChain: chainId === id,
          isSupported:
            method === 'evm' &&
            intent === 'charge' &&
            splits.length === 0 &&
            credentialTypes.includes('authorization') &&
            FIELDS.test(header),
          token: currency,
          payTo: recipient,
          amount,
          seconds: Math.floor(leftMs / 1000),
          offer: toJson(read.data),
          description: description ?? null,
        },
      ]
    })
}

/** The nonce that a challenge prescribes. */
export function deriveChallengeNonce(offer: Json): Hex {
  const { id, realm } = challenge.parse(offer)
  return keccak256(stringToHex(`${id}${realm}`))
}

/** When a challenge ends; null: it does not say. */
export function readChallengeEnd(offer: Json): Date | null {
  const { expires } = challenge.parse(offer)
  return expires === undefined ? null : new Date(expires)
}

/** The header that answers a challenge. */
export function mppCredential(
  offer: Json,
  {
    chainId,
    signature,
    authorization,
  }: { chainId: number; signature: Hex; authorization: Readonly<Record<string, string>> },
): { readonly name: string; readonly value: string } {
  const parameters = challenge.parse(offer)
  const credential = {
    challenge: parameters,
    payload: { type: 'authorization', signature, ...authorization },
    source: `did:pkh:eip155:${chainId}:${authorization.from}`,
  }
  const value = Buffer.from(JSON.stringify(credential)).toString('base64url')
  return { name: parameters.header ?? 'Authorization', value: `Payment ${value}` }
}

const PARAMETER = /[\s,]*([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/y
const SCHEME = /[\s,]*([A-Za-z0-9_-]+)(?=\s|$)/y

/** Reads the parameters of each `Payment` challenge of a field, which may hold several, of any scheme. */
function paymentChallenges(header: string): readonly Readonly<Record<string, string>>[] {
  const found: Record<string, string>[] = []
  let at = 0
  while (at < header.length) {
    SCHEME.lastIndex = at
    const scheme = SCHEME.exec(header)
    if (scheme === null) return found
    at = SCHEME.lastIndex
    const parameters: Record<string, string> = {}
    for (;;) {
      PARAMETER.lastIndex = at
      const [, name, quoted, plain] = PARAMETER.exec(header) ?? []
      if (name === undefined) break
      at = PARAMETER.lastIndex
      // A parameter that occurs twice could be read in two ways.
      if (Object.hasOwn(parameters, name.toLowerCase())) return found
      parameters[name.toLowerCase()] = plain ?? unquote(quoted ?? '')
    }
    if (scheme[1]?.toLowerCase() === 'payment') found.push(parameters)
  }
  return found
}

/** Characters above Latin-1 are written as `\u` and four hex digits. */
function unquote(text: string): string {
  return text.replaceAll(
    /\\(?:u([0-9A-Fa-f]{4})|(.))/gs,
    (_whole, code: string | undefined, character: string) =>
      code === undefined ? character : String.fromCharCode(Number.parseInt(code, 16)),
  )
}
