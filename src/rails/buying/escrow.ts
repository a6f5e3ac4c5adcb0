/**
 * The payment of an `auth-capture` purchase, from an address of its own: one signed EIP-3009 authorization, whose nonce is the hash of the
 * payment's terms, lets the seller's operator move it into escrow. The seller captures from there until its deadline; after that, the
 * payer's address takes the rest by its own transaction.
 */
import { encodeFunctionData, keccak256, numberToHex, parseAbi, stringToHex, zeroAddress } from 'viem'
import type { LocalAccount } from 'viem/accounts'
import { z } from 'zod'
import type { Json } from '../../core/base/json.ts'
import { signedPaymentTypes as types } from '../../core/base/signed-payment-types.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import {
  bindEscrowSalt,
  deriveEscrowNonce,
  type EscrowPayment,
  escrowAddress,
  escrowCollectorAddress,
  escrowPaymentStruct,
} from '../../providers/payment-escrow.ts'
import { readTokenDomain, type TokenReader } from './authorization.ts'
import type { PayableAsset } from './terms.ts'

/** Longest time from the offer to the end of the capture, and from there to the end of refunds, in seconds. */
const MAX_CAPTURE_SECONDS = 30 * 86_400
const MAX_REFUND_SECONDS = 366 * 86_400
/** A tenth; what the operator takes of a capture is not what the seller is paid. */
const MAX_FEE_BPS = 1_000

const abi = parseAbi([
  escrowPaymentStruct,
  'function getTokenStore(address operator) view returns (address)',
  'function reclaim(PaymentInfo paymentInfo)',
])

const ADDRESS = /^0x[0-9a-f]{40}$/i
const address = z
  .string()
  .regex(ADDRESS)
  .transform((text): Address => `0x${text.slice(2).toLowerCase()}`)
/** Absent, empty or zero: none. */
const optionalAddress = z
  .union([address, z.literal('')])
  .nullish()
  .transform((text): Address => text || zeroAddress)

const escrowExtra = z.looseObject({
  captureAuthorizer: z.unknown().optional(),
  feeRecipient: z.unknown().optional(),
  captureDeadline: z.unknown().optional(),
  refundDeadline: z.unknown().optional(),
  minFeeBps: z.unknown().optional(),
  maxFeeBps: z.unknown().optional(),
  authCaptureEscrow: z.unknown().optional(),
  receiverAuthorizer: z.unknown().optional(),
  policy: z.unknown().optional(),
})
const seconds = z
  .int()
  .nonnegative()
  .max(2 ** 47)
const escrowTerms = z.looseObject({
  captureAuthorizer: address,
  feeRecipient: optionalAddress,
  captureDeadline: seconds,
  refundDeadline: seconds,
  minFeeBps: z.int(),
  maxFeeBps: z.int(),
  receiverAuthorizer: optionalAddress,
  policy: optionalAddress,
})
const offered = z.looseObject({ accepted: z.looseObject({ extra: z.unknown() }) })

function readExtra(offer: Json): unknown {
  const read = offered.safeParse(offer)
  return read.success ? read.data.accepted.extra : undefined
}

/** Why no payment is escrowed by an offer; null: one can be. @param seconds how long it may be moved into escrow. */
export function judgeEscrow(
  offer: Json,
  { now, seconds: valid }: { now: Date; seconds: number },
): string | null {
  const read = escrowExtra.safeParse(readExtra(offer))
  if (!read.success) return 'operator_invalid'
  const { data: extra } = read
  const { authCaptureEscrow: escrow } = extra
  const isKnown =
    escrow == null ||
    (typeof escrow === 'string' && ['', escrowAddress.toLowerCase()].includes(escrow.toLowerCase()))
  if (!isKnown) return 'escrow_unknown'
  const operator = address.safeParse(extra.captureAuthorizer)
  if (!operator.success || operator.data === zeroAddress) return 'operator_invalid'
  if (!optionalAddress.safeParse(extra.receiverAuthorizer).success) return 'operator_invalid'
  if (!optionalAddress.safeParse(extra.policy).success) return 'operator_invalid'
  const recipient = optionalAddress.safeParse(extra.feeRecipient)
  const { minFeeBps: min, maxFeeBps: max } = extra
  const isFee =
    typeof min === 'number' &&
    typeof max === 'number' &&
    [min, max].every(Number.isInteger) &&
    min >= 0 &&
    min <= max &&
    max <= MAX_FEE_BPS
  if (!isFee || !recipient.success || (max > 0 && recipient.data === zeroAddress)) return 'fee_not_accepted'
  const capture = seconds.safeParse(extra.captureDeadline)
  const refund = seconds.safeParse(extra.refundDeadline)
  if (!capture.success || !refund.success) return 'expiry_not_accepted'
  const second = Math.floor(now.getTime() / 1000)
  const isInTime =
    capture.data >= second + valid &&
    capture.data <= second + MAX_CAPTURE_SECONDS &&
    refund.data >= capture.data &&
    refund.data <= capture.data + MAX_REFUND_SECONDS
  return isInTime ? null : 'expiry_not_accepted'
}

/** Last moment of captures of an offer: from then on the payer takes what is left. */
export function findCaptureEnd(offer: Json): Date {
  return new Date(escrowTerms.parse(readExtra(offer)).captureDeadline * 1_000)
}

/** A purchase whose payment is escrowed. @property validBefore Unix seconds. */
export interface EscrowedTerms {
  readonly purchaseId: string
  readonly offer: Json
  readonly payer: Address
  readonly payTo: Address
  readonly token: Address
  readonly units: bigint
  readonly validBefore: number
}

/** Numbers that make a payment another one than any other. @property saltNonce null: the salt is bound to nothing. */
function deriveSalt(
  purchaseId: string,
  { receiverAuthorizer, policy }: Pick<z.output<typeof escrowTerms>, 'receiverAuthorizer' | 'policy'>,
): { readonly salt: bigint; readonly saltNonce: bigint | null } {
  const own = BigInt(keccak256(stringToHex(`bursar escrow ${purchaseId}`)))
  if (receiverAuthorizer === zeroAddress && policy === zeroAddress) return { salt: own, saltNonce: null }
  return { salt: bindEscrowSalt(receiverAuthorizer, policy, own), saltNonce: own }
}

/** The terms under which the escrow keeps the payment of a purchase. */
export function buildEscrowPayment(purchase: EscrowedTerms): EscrowPayment {
  const { purchaseId, payer, payTo, token, units, validBefore } = purchase
  const terms = escrowTerms.parse(readExtra(purchase.offer))
  return {
    operator: terms.captureAuthorizer,
    payer,
    receiver: payTo,
    token,
    maxAmount: units,
    preApprovalExpiry: validBefore,
    authorizationExpiry: terms.captureDeadline,
    refundExpiry: terms.refundDeadline,
    minFeeBps: terms.minFeeBps,
    maxFeeBps: terms.maxFeeBps,
    feeReceiver: terms.feeRecipient,
    salt: deriveSalt(purchaseId, terms).salt,
  }
}

const acceptedOffer = z.looseObject({
  accepted: z.looseObject({}),
  resource: z.unknown().optional(),
  extensions: z.unknown().optional(),
})

/**
 * Signs the payment of a purchase, and writes the header that carries it. @returns also its nonce, and where its operator's money is kept.
 * @throws when the chain cannot be read; nothing is signed then.
 */
export async function signEscrow(
  chain: TokenReader,
  account: LocalAccount,
  { asset, ...purchase }: Omit<EscrowedTerms, 'payer'> & { readonly asset: PayableAsset },
): Promise<{
  readonly header: { readonly name: string; readonly value: string }
  readonly validBefore: number
  readonly nonce: Hex
  readonly escrowStore: Address
}> {
  const end = Math.floor(findCaptureEnd(purchase.offer).getTime() / 1000)
  const validBefore = Math.min(purchase.validBefore, end)
  const payment = buildEscrowPayment({ ...purchase, payer: account.address, validBefore })
  const nonce = deriveEscrowNonce(payment, chain.id)
  const store = await chain.signer.readContract({
    address: escrowAddress,
    abi,
    functionName: 'getTokenStore',
    args: [payment.operator],
  })
  const authorization = {
    from: account.address,
    to: escrowCollectorAddress,
    value: payment.maxAmount.toString(),
    validAfter: '0',
    validBefore: validBefore.toString(),
    nonce,
  }
  const signature = await account.signTypedData({
    domain: await readTokenDomain(chain, asset),
    types,
    primaryType: 'ReceiveWithAuthorization',
    message: { ...authorization, value: payment.maxAmount, validAfter: 0n, validBefore: BigInt(validBefore) },
  })
  const { saltNonce } = deriveSalt(purchase.purchaseId, escrowTerms.parse(readExtra(purchase.offer)))
  const toWord = (value: bigint) => numberToHex(value, { size: 32 })
  const { accepted, resource, extensions } = acceptedOffer.parse(purchase.offer)
  const sent = {
    x402Version: 2,
    resource: resource ?? undefined,
    accepted,
    payload: {
      authorization,
      signature,
      salt: toWord(payment.salt),
      ...(saltNonce === null ? {} : { saltNonce: toWord(saltNonce) }),
    },
    extensions: extensions ?? undefined,
  }
  return {
    header: { name: 'PAYMENT-SIGNATURE', value: Buffer.from(JSON.stringify(sent)).toString('base64') },
    validBefore,
    nonce,
    escrowStore: address.parse(store),
  }
}

/** The call by which a payer takes what is left in escrow. */
export function encodeReclaim(payment: EscrowPayment): { readonly to: Address; readonly data: Hex } {
  return {
    to: escrowAddress,
    data: encodeFunctionData({ abi, functionName: 'reclaim', args: [payment] }),
  }
}
