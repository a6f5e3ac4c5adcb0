import { isAddress, isHex } from 'viem'
import type { SignedTransfer } from '../../../sandbox/sellers/take-payment.ts'

/** A signed EIP-3009 transfer as JSON has it. */
interface SentTransfer {
  readonly authorization: Readonly<
    Record<'from' | 'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce', string>
  >
  readonly signature: string
}

/** Reads the texts of a signed transfer; null if one of them is none. */
export function parseSignedTransfer({ authorization, signature }: SentTransfer): SignedTransfer | null {
  const { from, to, value, validAfter, validBefore, nonce } = authorization
  const numbers = [value, validAfter, validBefore]
  if (!numbers.every((text) => /^\d{1,77}$/.test(text)) || !isHex(nonce) || !isHex(signature)) return null
  if (!isAddress(from, { strict: false }) || !isAddress(to, { strict: false })) return null
  if (nonce.length !== 66 || signature.length > 10_000) return null
  return {
    from,
    to,
    units: BigInt(value),
    validAfter: BigInt(validAfter),
    validBefore: BigInt(validBefore),
    nonce,
    signature,
  }
}
