/** Amounts. The only place that formats money. */
import { formatDecimal, splitUsd } from '../words/money.ts'

const signs = { in: '+', out: '\u2212', none: '' } as const

/** `+500.00 EURC`. @property amount decimal string. @property isVoid struck through: it was not paid. */
export function Amount({
  amount,
  asset,
  direction = 'none',
  isVoid = false,
}: {
  readonly amount: string
  readonly asset?: string
  readonly direction?: 'in' | 'out' | 'none'
  readonly isVoid?: boolean
}) {
  const kind = isVoid ? 'amt amt--void' : direction === 'in' ? 'amt amt--in' : 'amt'
  return (
    <span class={kind}>
      {isVoid ? '' : signs[direction]}
      {formatDecimal(amount)}
      {asset !== undefined && <span class="amt__unit"> {asset}</span>}
    </span>
  )
}

/** The one amount of a page. @property usd decimal string. */
export function Figure({ usd }: { readonly usd: string }) {
  const { major, minor } = splitUsd(usd)
  return (
    <span class="figure figure--hero">
      {major}
      <span class="figure__minor">{minor}</span>
    </span>
  )
}
