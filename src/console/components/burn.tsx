/** A budget that is full when its window begins and burns down. */
import type { ComponentChildren } from 'preact'
import { addDecimals, findShare, formatUsd } from '../words/money.ts'

const LOW_PERCENT = 25
const OUT_PERCENT = 2

/** @property left, held, limit USD as decimal strings. @property isOff nothing is spent: the agent is stopped or revoked. */
export interface BurnProps {
  readonly left: string
  readonly held?: string
  readonly limit: string
  readonly words: ComponentChildren
  /** The same in text, for readers of the screen. */
  readonly label: string
  readonly end?: ComponentChildren
  readonly isBig?: boolean
  readonly isOff?: boolean
}

export function Burn({
  left,
  held = '0',
  limit,
  words,
  label,
  end,
  isBig = false,
  isOff = false,
}: BurnProps) {
  const share = findShare(left, limit)
  const heldShare = Math.min(findShare(held, limit), 100 - share)
  const kind = isOff ? 'off' : share < OUT_PERCENT ? 'out' : share < LOW_PERCENT ? 'low' : ''
  const classes = ['burn', kind === '' ? '' : `burn--${kind}`, isBig ? 'burn--big' : '']
  return (
    <div class={classes.filter((name) => name !== '').join(' ')}>
      <svg class="burn__bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={label}>
        <rect class="burn__left" width={share} height="8" />
        {heldShare > 0 && <rect class="burn__held" x={share} width={heldShare} height="8" />}
      </svg>
      <div class="burn__words">
        <span>{words}</span>
        {end && <span class="faint">{end}</span>}
      </div>
    </div>
  )
}

/** The bar of a budget with its usual words: `$16.50 of $20.00 left today`. */
export function BudgetBurn({
  used,
  left,
  span,
  isBig = false,
  isOff = false,
  end,
}: {
  readonly used: string
  readonly left: string
  /** Words for the window, such as `today`. */
  readonly span: string
  readonly isBig?: boolean
  readonly isOff?: boolean
  readonly end?: ComponentChildren
}) {
  const limit = addDecimals(used, left)
  const words = `of ${formatUsd(limit)} left ${span}`
  return (
    <Burn
      left={left}
      limit={limit}
      isBig={isBig}
      isOff={isOff}
      label={`${formatUsd(left)} ${words}`}
      end={end}
      words={
        isOff ? (
          'Spends nothing until you start it'
        ) : (
          <>
            <b>{formatUsd(left)}</b> {words}
          </>
        )
      }
    />
  )
}
