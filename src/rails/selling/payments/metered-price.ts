/** What a quote costs by the x402 scheme `upto`: by its pair and amount, at most the price by `exact`. */
import { z } from 'zod'

/** Codes that are worth a dollar or take one rate to it. */
const DOLLARS: ReadonlySet<string> = new Set(['USD', 'USDC', 'USDT', 'PYUSD'])
const TENTHS = { withDollar: 2n, crossed: 4n, all: 10n }

const quoted = z.looseObject({ from: z.string(), to: z.string(), amount: z.string() })

/**
 * Two tenths of the maximum, four for a pair without a dollar, which takes two rates, and a tenth for each digit of the amount before
 * its decimal point. Rounded up to the smallest unit.
 * @param answer the quote. @param maximum smallest units. @returns the maximum for anything else.
 */
export function meteredPrice(answer: Readonly<Record<string, unknown>>, maximum: bigint): bigint {
  const read = quoted.safeParse(answer)
  if (!read.success) return maximum
  const { from, to, amount } = read.data
  const hasDollar = DOLLARS.has(from) || DOLLARS.has(to)
  const digits = BigInt(amount.replace(/\..*$/, '').replace(/^0+/, '').length)
  const tenths = (hasDollar ? TENTHS.withDollar : TENTHS.crossed) + digits
  if (tenths >= TENTHS.all) return maximum
  return (maximum * tenths + TENTHS.all - 1n) / TENTHS.all
}
