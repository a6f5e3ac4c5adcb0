/**
 * Request to submit a payment that a payer has signed. `value` is in smallest units and times are Unix seconds, as in
 * the EIPs.
 */
import { concat, isHex, numberToHex, size } from 'viem'
import { z } from 'zod'
import type { Hex } from '../../providers/chain.ts'
import { evmAddress } from '../transfers/transfer-members.ts'
import type { SignedPayment } from './signed-payment.ts'
import { authorizingTokens } from './token-authorization.ts'

/** 10^12 whole tokens with six decimals. */
const MAX_UNITS = 10n ** 18n

const integer = (maxLength: number) =>
  z
    .union([
      z.int().min(0),
      z
        .string()
        .max(maxLength)
        .regex(/^(0|[1-9]\d*)$/, 'must be a whole number'),
    ])
    .transform((value) => BigInt(value))

const uint256 = integer(78).refine((value) => value < 2n ** 256n, 'must be below 2^256')

const units = integer(19)
  .refine((value) => value > 0n, 'must be above zero')
  .refine((value) => value <= MAX_UNITS, 'must not be over 1000000000000000000')

const hexOf = (bytes: number) =>
  z.templateLiteral(['0x', z.string().regex(new RegExp(`^[0-9a-fA-F]{${bytes * 2}}$`))])

const signature = z
  .string()
  .max(8192)
  .refine(
    (text): text is Hex => isHex(text) && size(text) >= 65,
    'must be a signature: 65 bytes or more as 0x hex',
  )

const authorization = z.strictObject({
  from: evmAddress.describe('EVM address of the payer, who signed.'),
  to: evmAddress.describe('EVM address of the payee.'),
  value: units.describe('Amount in smallest units.'),
  validAfter: uint256.describe('Valid after this Unix time, in seconds.'),
  validBefore: uint256.describe('Valid before this Unix time, in seconds.'),
  nonce: hexOf(32).describe('32 random bytes, 0x hex.'),
  signature: signature.describe('The payer’s EIP-712 signature of a TransferWithAuthorization, 0x hex.'),
})

const permit = z
  .strictObject({
    owner: evmAddress.describe('EVM address of the payer, who signed.'),
    spender: evmAddress
      .optional()
      .describe('EVM address of the sponsor, which collects the money. Default: the sponsor.'),
    value: units.describe('Amount in smallest units.'),
    deadline: uint256.describe('Valid until this Unix time, in seconds.'),
    signature: signature
      .optional()
      .describe('The payer’s EIP-712 signature of a Permit, 0x hex; or `v`, `r`, `s`.'),
    v: z
      .union([z.literal(27), z.literal(28)])
      .optional()
      .describe('Recovery value of the signature.'),
    r: hexOf(32).optional().describe('`r` of the signature, 0x hex.'),
    s: hexOf(32).optional().describe('`s` of the signature, 0x hex.'),
  })
  .transform(({ signature: whole, v, r, s, ...rest }, context) => {
    const hasParts = v !== undefined && r !== undefined && s !== undefined
    if (whole !== undefined && v === undefined && r === undefined && s === undefined)
      return { ...rest, signature: whole }
    if (whole === undefined && hasParts)
      return { ...rest, signature: concat([r, s, numberToHex(v, { size: 1 })]) }
    context.addIssue({ code: 'custom', path: ['signature'], message: 'is required, or all of v, r and s' })
    return z.NEVER
  })

/** Requires exactly one of `authorization` and `permit`. */
export const gaslessRequest = z
  .strictObject({
    token: z
      .enum(authorizingTokens)
      .describe('Stablecoin by symbol; Tether does not support signed payments.'),
    chain: z
      .string()
      .min(1)
      .max(40)
      .optional()
      .describe('Chain by name. Default: the first of this deployment.'),
    authorization: authorization.optional().describe('EIP-3009: a signed payment that anyone may submit.'),
    permit: permit
      .optional()
      .describe(
        'EIP-2612: a signed permit for the sponsor to collect the owner’s tokens and pay them to `to`.',
      ),
    to: evmAddress.optional().describe('EVM address of the payee; required with a permit.'),
  })
  .transform(({ authorization: signed, permit: allowed, to, token, chain }, context) => {
    if (signed !== undefined && allowed === undefined && to === undefined)
      return {
        token,
        chain,
        signed,
        permit: undefined,
        from: signed.from,
        to: signed.to,
        value: signed.value,
      }
    if (signed === undefined && allowed !== undefined && to !== undefined)
      return { token, chain, signed, permit: allowed, from: allowed.owner, to, value: allowed.value }
    const message = 'exactly one of authorization and permit is required; to is allowed with a permit only'
    context.addIssue({ code: 'custom', path: ['authorization'], message })
    return z.NEVER
  })

export type AuthorizedPayment = z.output<typeof gaslessRequest>

/** Builds the payment of a request. @param permitNonce next permit nonce of the token; null for an authorization. */
export function paymentOf(
  { token, signed, permit: allowed, from: payer, to: destination, value }: AuthorizedPayment,
  permitNonce: string | null,
): SignedPayment {
  const common = { token, units: value, payer, destination }
  if (signed !== undefined) {
    const { validAfter, validBefore, nonce, signature: bytes } = signed
    return {
      ...common,
      kind: 'authorization',
      nonce: nonce.toLowerCase(),
      validAfter,
      validBefore,
      signature: bytes,
    }
  }
  if (allowed === undefined || permitNonce === null) throw new Error('a permit needs a nonce')
  const { deadline: validBefore, signature: bytes } = allowed
  return { ...common, kind: 'permit', nonce: permitNonce, validAfter: 0n, validBefore, signature: bytes }
}
