/** A payment as a client sent it, of either generation, and whether it is the one that was asked for. Never logged. */
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import { echoedExtensions } from './extensions.ts'
import type { Terms } from './terms.ts'

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/)
const wholeNumber = z.string().regex(/^\d{1,78}$/)
const bytes32 = z.string().regex(/^0x[0-9a-fA-F]{64}$/)

/** @see https://eips.ethereum.org/EIPS/eip-3009 */
const signedTransfer = z.object({
  signature: z
    .string()
    .max(10_000)
    .regex(/^0x(?:[0-9a-fA-F]{2})+$/),
  authorization: z.object({
    from: address,
    to: address,
    value: wholeNumber,
    validAfter: wholeNumber,
    validBefore: wholeNumber,
    nonce: bytes32,
  }),
})

const method = z.object({ scheme: z.string(), network: z.string() })
const envelopeV1 = method.extend({ x402Version: z.literal(1), payload: z.unknown() })
const envelopeV2 = z.object({
  x402Version: z.literal(2),
  accepted: method,
  payload: z.unknown(),
  extensions: echoedExtensions.optional(),
})

/** The headers that a payment comes in, by generation. */
const headers = { 1: 'X-PAYMENT', 2: 'PAYMENT-SIGNATURE' } as const

/** Which x402 a client speaks. */
type Generation = keyof typeof headers

/** One payment. `header` and `encoded` are what the stock middleware of its generation is given, unchanged. */
export interface Payment {
  readonly generation: Generation
  readonly header: (typeof headers)[Generation]
  readonly encoded: string
  readonly scheme: string
  readonly network: string
  /** The signed EIP-3009 transfer; null where the payment is of another kind, which never fits. */
  readonly transfer: z.output<typeof signedTransfer> | null
  /** What the client calls its purchase. */
  readonly identifier: string | null
  /** The locked offer that it gives back. */
  readonly lock: string | null
}

/** What can be asked for its headers. */
export interface PayableRequest {
  readonly req: {
    readonly method: string
    readonly path: string
    header(name: string): string | undefined
  }
}

/**
 * The payment of a request, or null where it has none. @param place what its client calls the place of a payment; absent: the header.
 * @throws Failure `ambiguous_credentials` with both headers, `invalid_request` where it cannot be decoded.
 */
export function paymentOf({ req }: PayableRequest, place?: string): Payment | null {
  const [one, two] = [req.header(headers[1]), req.header(headers[2])]
  if (one !== undefined && two !== undefined)
    throw new Failure('ambiguous_credentials', `Both ${headers[1]} and ${headers[2]} were sent.`, {
      hint: 'Send one payment, in the header of the x402 generation that you speak.',
    })
  if (two !== undefined) return decodeV2(two, place)
  return one === undefined ? null : decodeV1(one, place)
}

function decodeV1(encoded: string, place: string = headers[1]): Payment {
  const refused = () => undecodable(1, place)
  const { scheme, network, payload } = parsed(envelopeV1, encoded, refused)
  const parts = { generation: 1, encoded, scheme, network, identifier: null, lock: null } as const
  return paymentWith(parts, payload, refused)
}

function decodeV2(encoded: string, place: string = headers[2]): Payment {
  const refused = () => undecodable(2, place)
  const { accepted, payload, extensions = {} } = parsed(envelopeV2, encoded, refused)
  const { scheme, network } = accepted
  const identifier = extensions['payment-identifier']?.info.id ?? null
  const lock = extensions['quote-lock']?.info.token ?? null
  return paymentWith({ generation: 2, encoded, scheme, network, identifier, lock }, payload, refused)
}

function parsed<Envelope>(envelope: z.ZodType<Envelope>, encoded: string, refused: () => Failure): Envelope {
  const json = BASE64.test(encoded) ? Buffer.from(encoded, 'base64').toString('utf8') : ''
  const result = envelope.safeParse(jsonOf(json))
  if (!result.success) throw refused()
  return result.data
}

function paymentWith(
  parts: Omit<Payment, 'header' | 'transfer'>,
  payload: unknown,
  refused: () => Failure,
): Payment {
  const isEvm = parts.scheme === 'exact' && !parts.network.startsWith('solana')
  const transfer = signedTransfer.safeParse(payload)
  if (isEvm && !transfer.success) throw refused()
  return { ...parts, header: headers[parts.generation], transfer: transfer.data ?? null }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function undecodable(generation: Generation, place: string): Failure {
  const isHeader = place === headers[generation]
  const where = isHeader ? `The ${place} header` : place
  const form = isHeader ? 'base64 of the JSON of a payment' : 'a payment'
  return new Failure('invalid_request', `${where} holds no x402 v${generation} payment.`, {
    issues: [{ path: place, message: `must be ${form} with a signed EIP-3009 transfer` }],
    hint: 'Let an x402 client make the payment from the 402 challenge.',
  })
}

/** Why a payment is not the one that was asked for, in the words of x402, or undefined where it is. Times and the signature are the facilitator's. */
export function misfitOf(
  { generation, scheme, network, transfer }: Payment,
  terms: Terms,
): string | undefined {
  if (scheme !== 'exact') return 'unsupported_scheme'
  if (network !== (generation === 1 ? terms.network.v1 : terms.network.v2)) return 'invalid_network'
  if (transfer === null) return 'invalid_payload'
  const { to, value } = transfer.authorization
  if (to.toLowerCase() !== terms.payTo.toLowerCase()) return 'invalid_exact_evm_payload_recipient_mismatch'
  if (BigInt(value) !== terms.units) return 'invalid_exact_evm_payload_authorization_value_mismatch'
  return undefined
}
