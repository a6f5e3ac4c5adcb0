/** Card numbers of the sandbox: the same for a card in every process, and stored nowhere. */
import { keyedHash } from '../../core/base/seal.ts'
import type { RevealedCard } from './port.ts'

/** First digits of Visa's test numbers. */
const TEST_RANGE = '4000'
/** Sixteen digits less the range, the digit that makes the checksum right, and the last four. */
const FREE_DIGITS = 7

/** @returns sixteen digits that end in the card's last four, and three of its code. */
export function sandboxNumber(
  dataKey: Uint8Array,
  { cardId, last4 }: Pick<RevealedCard, 'cardId' | 'last4'>,
): { pan: string; cvc: string } {
  const digits = BigInt(`0x${keyedHash(dataKey, 'sandbox card', cardId)}`)
    .toString()
    .slice(-(FREE_DIGITS + 3))
  const head = `${TEST_RANGE}${digits.slice(0, FREE_DIGITS)}`
  const checksum = luhnSum(`${head}0${last4}`)
  return { pan: `${head}${(10 - (checksum % 10)) % 10}${last4}`, cvc: digits.slice(FREE_DIGITS) }
}

/** @see https://www.iso.org/standard/70484.html ISO/IEC 7812-1, annex B */
export function luhnSum(digits: string): number {
  return [...digits].reverse().reduce((sum, digit, at) => {
    const value = Number(digit) * (at % 2 === 0 ? 1 : 2)
    return sum + (value > 9 ? value - 9 : value)
  }, 0)
}
