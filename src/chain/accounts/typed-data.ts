/** Converts untrusted EIP-712 data to the form that viem hashes. @see https://eips.ethereum.org/EIPS/eip-712 */
import { hashTypedData, recoverAddress } from 'viem'
import { z } from 'zod'
import type { EvmSigner, Hex } from '../../providers/chain/port.ts'

type Input = Parameters<EvmSigner['verifyTypedData']>[0]

const hex = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]*$/)])

const schema = z.object({
  domain: z.object({
    name: z.string().exactOptional(),
    version: z.string().exactOptional(),
    chainId: z.union([z.number(), z.bigint()]).exactOptional(),
    verifyingContract: hex.exactOptional(),
    salt: hex.exactOptional(),
  }),
  types: z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() }))),
  primaryType: z.string(),
  message: z.record(z.string(), z.unknown()),
})

/** Computes the signed hash. @throws for invalid typed data. */
export function hashTypedInput({ domain, types, primaryType, message }: Input): Hex {
  return hashTypedData(schema.parse({ domain, types, primaryType, message }))
}

/** Checks the signature of an address's own key without a chain. False for malformed input. */
export async function isSignedByKey(input: Input): Promise<boolean> {
  try {
    const signer = await recoverAddress({ hash: hashTypedInput(input), signature: input.signature })
    return signer.toLowerCase() === input.address.toLowerCase()
  } catch {
    return false
  }
}
