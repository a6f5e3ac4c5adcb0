/** Decodes payments of both generations and matches them to the terms. Payments are never logged. */
import { z } from 'zod'
import { signedPaymentTypes } from '../../../core/base/signed-payment-types.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Chain, Hex } from '../../../providers/chain/port.ts'
import { type ChannelPayment, channelMismatch, channelPayment, toVoucherTransfer } from './channels.ts'
import { echoedPaymentExtensions } from './extensions.ts'
import type { Generation, SentPayment } from './sale.ts'
import { permitMismatch, type SignedPermit, signedPermit, toTransfer } from './signed-permit.ts'
import { requirementChannel, requirementUpto, requirementV2, type Terms } from './terms.ts'

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/)
const wholeNumber = z.string().regex(/^\d{1,78}$/)
const bytes32 = z.string().regex(/^0x[0-9a-fA-F]{64}$/)

/** Members that a client adds are ignored: only what is read here is passed on. @see https://eips.ethereum.org/EIPS/eip-3009 */
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

const method = { scheme: z.string(), network: z.string() }
const envelopeV1 = z.object({ x402Version: z.literal(1), ...method, payload: z.unknown() })
const envelopeV2 = z.object({
  x402Version: z.literal(2),
  accepted: z.object({
    ...method,
    amount: z.string().optional(),
    asset: z.string().optional(),
    payTo: z.string().optional(),
  }),
  payload: z.unknown(),
  resource: z.unknown().optional(),
  extensions: echoedPaymentExtensions.nullish(),
})

const headers = { 1: 'X-PAYMENT', 2: 'PAYMENT-SIGNATURE' } as const

/** The validated parts of a payment; other client data is discarded. */
export interface Payment {
  readonly generation: Generation
  readonly header: (typeof headers)[Generation]
  readonly scheme: string
  readonly network: string
  /** Terms that a v2 client states as accepted; null for v1. */
  readonly accepted: { readonly amount?: string; readonly asset?: string; readonly payTo?: string } | null
  /** The signed EIP-3009 transfer, or the same of an `upto` payment; null for other payment schemes, which are never accepted. */
  readonly transfer: z.output<typeof signedTransfer> | null
  /** The signed Permit2 transfer of an `upto` payment; null for others. */
  readonly permit: SignedPermit | null
  /** What a payer of a channel sends; null for others. */
  readonly channel: ChannelPayment | null
  /** Client-chosen payment identifier. */
  readonly identifier: string | null
  /** Token of the quote lock. */
  readonly lock: string | null
}

/** Validates a payment. @throws Failure `invalid_request` where it is not one of its generation. */
export function decodePayment(sent: SentPayment): Payment {
  return sent.generation === 1 ? decodeV1(sent) : decodeV2(sent)
}

function decodeV1(sent: SentPayment): Payment {
  const buildRefusal = () => undecodable(sent)
  const { scheme, network, payload } = parseEnvelope(envelopeV1, sent, buildRefusal)
  const parts = { generation: 1, scheme, network, accepted: null, identifier: null, lock: null } as const
  return paymentWith(parts, payload, buildRefusal)
}

function decodeV2(sent: SentPayment): Payment {
  const buildRefusal = () => undecodable(sent)
  const { accepted, payload, extensions } = parseEnvelope(envelopeV2, sent, buildRefusal)
  const { scheme, network, ...said } = accepted
  const identifier = extensions?.['payment-identifier']?.info.id ?? null
  const lock = extensions?.['quote-lock']?.info.token ?? null
  const parts = { generation: 2, scheme, network, accepted: pickStated(said), identifier, lock } as const
  return paymentWith(parts, payload, buildRefusal)
}

function pickStated({
  amount,
  asset,
  payTo,
}: {
  amount?: string | undefined
  asset?: string | undefined
  payTo?: string | undefined
}) {
  return {
    ...(amount === undefined ? {} : { amount }),
    ...(asset === undefined ? {} : { asset }),
    ...(payTo === undefined ? {} : { payTo }),
  }
}

function parseEnvelope<Envelope>(
  envelope: z.ZodType<Envelope>,
  { payload }: SentPayment,
  buildRefusal: () => Failure,
): Envelope {
  const result = envelope.safeParse(payload)
  if (!result.success) throw buildRefusal()
  return result.data
}

function paymentWith(
  parts: Omit<Payment, 'header' | 'transfer' | 'permit' | 'channel'>,
  payload: unknown,
  buildRefusal: () => Failure,
): Payment {
  const header = headers[parts.generation]
  if (parts.scheme === 'upto' && parts.generation === 2) {
    const permit = signedPermit.safeParse(payload)
    if (!permit.success) throw buildRefusal()
    return { ...parts, header, transfer: toTransfer(permit.data), permit: permit.data, channel: null }
  }
  if (parts.scheme === 'batch-settlement' && parts.generation === 2) {
    const channel = channelPayment.safeParse(payload)
    if (!channel.success) throw buildRefusal()
    const transfer = toVoucherTransfer(channel.data)
    return { ...parts, header, transfer, permit: null, channel: channel.data }
  }
  const isEvm = parts.scheme === 'exact' && !parts.network.startsWith('solana')
  const transfer = signedTransfer.safeParse(payload)
  if (isEvm && !transfer.success) throw buildRefusal()
  return { ...parts, header, transfer: transfer.data ?? null, permit: null, channel: null }
}

function undecodable({ generation, place, form }: SentPayment): Failure {
  return new Failure('invalid_request', `${place} is not a valid x402 v${generation} payment.`, {
    issues: [
      {
        path: place,
        message: `must be ${form} with a signed EIP-3009 transfer, a Permit2 transfer for \`upto\`, or a voucher for \`batch-settlement\``,
      },
    ],
    hint: 'Create the payment from the 402 challenge with an x402 client.',
  })
}

/** Name of the terms' chain in a payment's generation; null: that generation does not know it. */
export function chooseNetwork(
  { generation }: Pick<Payment, 'generation'>,
  { network }: Terms,
): string | null {
  return generation === 1 ? network.v1 : network.v2
}

/**
 * Returns the x402 error of a payment that does not match the terms, or undefined. The facilitator checks times and
 * signature.
 */
export function paymentMismatch(
  { generation, scheme, network, transfer, permit, channel, accepted }: Payment,
  terms: Terms,
): string | undefined {
  const isUpto = permit !== null && terms.uptoFacilitator !== null
  const isChannel = channel !== null && terms.channelAuthorizer !== null
  if (scheme !== 'exact' && !isUpto && !isChannel) return 'unsupported_scheme'
  if (network !== chooseNetwork({ generation }, terms)) return 'invalid_network'
  if (transfer === null) return 'invalid_payload'
  if (permit !== null || channel !== null) {
    const mismatch =
      permit === null ? channel && channelMismatch(channel, terms) : permitMismatch(permit, terms)
    if (typeof mismatch === 'string') return mismatch
    return accepted === null || isAccepted(accepted, terms) ? undefined : MISMATCH
  }
  const { to, value } = transfer.authorization
  if (to.toLowerCase() !== terms.payTo.toLowerCase()) return 'invalid_exact_evm_payload_recipient_mismatch'
  if (BigInt(value) !== terms.units) return 'invalid_exact_evm_payload_authorization_value_mismatch'
  return accepted === null || isAccepted(accepted, terms) ? undefined : MISMATCH
}

const MISMATCH = 'payment_does_not_match_the_challenge'

function isAccepted({ amount, asset, payTo }: NonNullable<Payment['accepted']>, terms: Terms): boolean {
  const isSame = (one: string | undefined, other: string) => one?.toLowerCase() === other.toLowerCase()
  return amount === terms.units.toString() && isSame(asset, terms.asset) && isSame(payTo, terms.payTo)
}

/**
 * True if the payer signed the transfer; contract wallets are supported (EIP-1271). @throws when the chain is
 * unreachable.
 */
export function isSignedByPayer(
  { id, signer }: Pick<Chain, 'id' | 'signer'>,
  { network, asset }: Terms,
  { authorization, signature }: NonNullable<Payment['transfer']>,
): Promise<boolean> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const [address, payee, uniqueNonce, bytes] = [from, to, nonce, signature].map(toHex)
  if (address === undefined || bytes === undefined) return Promise.resolve(false)
  return signer.verifyTypedData({
    address,
    domain: { ...network.domain, chainId: id, verifyingContract: asset },
    types: signedPaymentTypes,
    primaryType: 'TransferWithAuthorization',
    message: {
      from: address,
      to: payee,
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce: uniqueNonce,
    },
    signature: bytes,
  })
}

function toHex(text: string): Hex {
  return `0x${text.slice(2)}`
}

/** Encodes the validated payment as a header for the stock middleware. */
export function encodePayment(
  { generation, network, transfer, permit, channel }: Payment,
  terms: Terms,
): string {
  const envelope =
    channel !== null
      ? { x402Version: 2, accepted: requirementChannel(terms), payload: channel }
      : permit !== null
        ? { x402Version: 2, accepted: requirementUpto(terms), payload: permit }
        : generation === 1
          ? { x402Version: 1, scheme: 'exact', network, payload: transfer }
          : { x402Version: 2, accepted: requirementV2(terms), payload: transfer }
  return Buffer.from(JSON.stringify(envelope)).toString('base64')
}
