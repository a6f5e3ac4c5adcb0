/** The signed transfer of an `upto` payment: Permit2 moves up to its amount through the proxy of x402. */
import { PERMIT2_ADDRESS, x402UptoPermit2ProxyAddress } from '@x402/evm'
import { toHex } from 'viem'
import { z } from 'zod'
import { uptoTypes } from '../../../core/base/signed-payment-types.ts'
import type { Chain } from '../../../providers/chain/port.ts'
import type { Terms } from './terms.ts'

const hex20 = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]{40}$/)])
const wholeNumber = z.string().regex(/^\d{1,78}$/)
const MAX_UINT = 2n ** 256n - 1n
const number256 = wholeNumber.refine((text) => BigInt(text) <= MAX_UINT)

/** Members that a client adds are ignored: only what is read here is passed on. */
export const signedPermit = z.object({
  signature: z.templateLiteral([
    '0x',
    z
      .string()
      .max(10_000)
      .regex(/^(?:[0-9a-fA-F]{2})+$/),
  ]),
  permit2Authorization: z.object({
    from: hex20,
    permitted: z.object({ token: hex20, amount: number256 }),
    spender: hex20,
    nonce: number256,
    deadline: number256,
    witness: z.object({ to: hex20, facilitator: hex20, validAfter: number256 }),
  }),
})

export type SignedPermit = z.output<typeof signedPermit>

/** The permit in the form of a signed transfer, of its maximum: by payer and nonce it is taken once. */
export function toTransfer({ signature, permit2Authorization }: SignedPermit) {
  const { from, permitted, nonce, deadline, witness } = permit2Authorization
  return {
    signature,
    authorization: {
      from,
      to: witness.to,
      value: permitted.amount,
      validAfter: witness.validAfter,
      // Permit2 still takes it in the second of its deadline.
      validBefore: (BigInt(deadline) + 1n).toString(),
      nonce: toHex(BigInt(nonce), { size: 32 }),
    },
  }
}

/** Returns the x402 error of a permit that does not match the terms, or undefined. */
export function permitMismatch(
  { permit2Authorization: { permitted, spender, witness } }: SignedPermit,
  { asset, payTo, units, uptoFacilitator }: Terms,
): string | undefined {
  const isSame = (one: string, other: string | null) => one.toLowerCase() === other?.toLowerCase()
  if (!isSame(spender, x402UptoPermit2ProxyAddress)) return 'invalid_permit2_spender'
  if (!isSame(permitted.token, asset)) return 'permit2_token_mismatch'
  if (!isSame(witness.to, payTo)) return 'invalid_permit2_recipient_mismatch'
  if (!isSame(witness.facilitator, uptoFacilitator)) return 'upto_facilitator_mismatch'
  return BigInt(permitted.amount) === units ? undefined : 'permit2_amount_mismatch'
}

/** True if the payer signed the permit. @throws when the chain is unreachable. */
export function isPermitSignedByPayer(
  { id, signer }: Pick<Chain, 'id' | 'signer'>,
  { signature, permit2Authorization }: SignedPermit,
): Promise<boolean> {
  const { from, permitted, spender, nonce, deadline, witness } = permit2Authorization
  return signer.verifyTypedData({
    address: from,
    domain: { name: 'Permit2', chainId: id, verifyingContract: PERMIT2_ADDRESS },
    types: uptoTypes,
    primaryType: 'PermitWitnessTransferFrom',
    message: {
      permitted: { token: permitted.token, amount: BigInt(permitted.amount) },
      spender,
      nonce: BigInt(nonce),
      deadline: BigInt(deadline),
      witness: { ...witness, validAfter: BigInt(witness.validAfter) },
    },
    signature,
  })
}
