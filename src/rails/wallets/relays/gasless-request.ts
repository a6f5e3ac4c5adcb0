/**
 * Request to submit a payment that a payer has signed. `value` is in smallest units and times are Unix seconds, as in
 * the EIPs.
 */
import { concat, isHex, numberToHex, size } from 'viem'
import { z } from 'zod'
import { noteMembers } from '../../../books/spending/spend-note.ts'
import { chainInput } from '../../../core/money/chains.ts'
import type { Hex } from '../../../providers/chain/port.ts'
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

const hexSchema = (bytes: number) =>
  z.templateLiteral(['0x', z.string().regex(new RegExp(`^[0-9a-fA-F]{${bytes * 2}}$`))])

const signature = z
  .string()
  .max(8192)
  .refine(
    (text): text is Hex => isHex(text) && size(text) >= 65,
    'must be a signature: 65 bytes or more as 0x hex',
  )

const authorization = z.strictObject({
  from: evmAddress.describe('Payer, who signed.'),
  to: evmAddress.describe('Payee.'),
  value: units.describe('Smallest units.'),
  validAfter: uint256.describe('Unix seconds.'),
  validBefore: uint256.describe('Unix seconds.'),
  nonce: hexSchema(32).describe('32 bytes, 0x hex.'),
  signature: signature.describe('EIP-712 TransferWithAuthorization, 0x hex.'),
})

const permit = z
  .strictObject({
    owner: evmAddress.describe('Payer, who signed.'),
    spender: evmAddress
      .optional()
      .describe('EVM address of the sponsor, which collects the money. Default: the sponsor.'),
    value: units.describe('Smallest units.'),
    deadline: uint256.describe('Unix seconds.'),
    signature: signature.optional().describe('EIP-712 Permit, 0x hex; or `v`, `r`, `s`.'),
    v: z
      .union([z.literal(27), z.literal(28)])
      .optional()
      .describe('Recovery value of the signature.'),
    r: hexSchema(32).optional().describe('`r` of the signature, 0x hex.'),
    s: hexSchema(32).optional().describe('`s` of the signature, 0x hex.'),
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
    token: z.enum(authorizingTokens).describe('USDT has no signed payments.'),
    chain: chainInput.optional().describe('Default: the first of this deployment.'),
    authorization: authorization.optional().describe('EIP-3009.'),
    permit: permit.optional().describe('EIP-2612, for the sponsor, who pays the tokens to `to`.'),
    to: evmAddress.optional().describe('Payee of a permit.'),
    ...noteMembers,
  })
  .transform(({ authorization: signed, permit: allowed, to, token, chain, ...note }, context) => {
    if (signed !== undefined && allowed === undefined && to === undefined)
      return {
        ...note,
        token,
        chain,
        signed,
        permit: undefined,
        from: signed.from,
        to: signed.to,
        value: signed.value,
      }
    if (signed === undefined && allowed !== undefined && to !== undefined)
      return {
        ...note,
        token,
        chain,
        signed,
        permit: allowed,
        from: allowed.owner,
        to,
        value: allowed.value,
      }
    const message = 'exactly one of authorization and permit is required; to is allowed with a permit only'
    context.addIssue({ code: 'custom', path: ['authorization'], message })
    return z.NEVER
  })

export type AuthorizedPayment = z.output<typeof gaslessRequest>

/** Builds the payment of a request. @param permitNonce next permit nonce of the token; null for an authorization. */
export function toPayment(
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
