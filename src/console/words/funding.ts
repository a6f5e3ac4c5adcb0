/** Money that moves from another chain before a payment, in a sentence. */
import { formatDecimal } from './money.ts'
import { nameChain } from './names.ts'

/** @property fee in USDC. */
export interface MoveFacts {
  readonly from: string
  readonly to: string
  readonly sent: string
  readonly fee: string
  readonly etaSec: number
}

export function describeMove({ from, to, sent, fee, etaSec }: MoveFacts): string {
  const time = etaSec < 60 ? `${etaSec} seconds` : `${Math.round(etaSec / 60)} minutes`
  const cost =
    Number(fee) === 0
      ? 'Moving it costs nothing.'
      : `Moving it costs at most ${formatDecimal(fee)} USDC, which counts on the budget.`
  return `${formatDecimal(sent)} USDC moves from ${nameChain(from)} to ${nameChain(to)} first, in about ${time}. ${cost}`
}
