/** A budget that is full when its window begins and burns down. */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { splitLeft } from '../words/delegation.ts'
import { addDecimals, compareDecimals, findShare, formatUsd } from '../words/money.ts'

const LOW_PERCENT = 25
const OUT_PERCENT = 2

/** @property left, held, aside, limit USD as decimal strings. @property isOff nothing is spent: the agent is stopped or revoked. */
export interface BurnProps {
  readonly left: string
  readonly held?: string
  /** Set aside for keys below: hatched, and not part of what is left. */
  readonly aside?: string
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
  aside = '0',
  limit,
  words,
  label,
  end,
  isBig = false,
  isOff = false,
}: BurnProps) {
  return (
    <div class={isBig ? 'burn burn--big' : 'burn'}>
      <Bar left={left} held={held} aside={aside} limit={limit} isOff={isOff} label={label} />
      <div class="burn__words">
        <span>{words}</span>
        {end && <span class="faint">{end}</span>}
      </div>
    </div>
  )
}

/** The bar alone: what is left, what is held, what is set aside, and what is spent. @property label the same in text */
export function Bar({
  left,
  held = '0',
  aside = '0',
  limit,
  isOff = false,
  label,
}: Pick<BurnProps, 'left' | 'held' | 'aside' | 'limit' | 'isOff' | 'label'>) {
  const hatch = useId()
  const share = findShare(left, limit)
  const heldShare = Math.min(findShare(held, limit), 100 - share)
  const asideShare = Math.min(findShare(aside, limit), 100 - share - heldShare)
  // A budget that is set aside is not used up.
  const whole = share + asideShare
  const kind = isOff
    ? ' burn--off'
    : whole < OUT_PERCENT
      ? ' burn--out'
      : whole < LOW_PERCENT
        ? ' burn--low'
        : ''
  return (
    <svg class={`burn__bar${kind}`} role="img" aria-label={label}>
      <rect class="burn__left" width={`${share}%`} height="100%" />
      {heldShare > 0 && <rect class="burn__held" x={`${share}%`} width={`${heldShare}%`} height="100%" />}
      {asideShare > 0 && (
        <>
          <Hatch id={hatch} />
          <rect
            class="burn__aside"
            x={`${share + heldShare}%`}
            width={`${asideShare}%`}
            height="100%"
            fill={`url(#${hatch})`}
          />
        </>
      )}
    </svg>
  )
}

/** @property step pixels from line to line. */
function Hatch({ id, step = 5 }: { readonly id: string; readonly step?: number }) {
  return (
    <pattern id={id} width={step} height={step} patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect class="hatch__ground" width={step} height={step} />
      <rect class="hatch__line" width={step * 0.4} height={step} />
    </pattern>
  )
}

/** Square of a legend, hatched as the part of a bar that is set aside. */
function AsideSwatch() {
  const hatch = useId()
  return (
    <svg class="swatch swatch--aside" aria-hidden="true">
      <Hatch id={hatch} step={3.5} />
      <rect width="100%" height="100%" fill={`url(#${hatch})`} />
    </svg>
  )
}

/** What the parts of a bar are; with their amounts, if these are given. */
export function BarLegend({
  parts,
}: {
  readonly parts: readonly (readonly [kind: 'left' | 'aside' | 'spent', words: string, usd?: string])[]
}) {
  const isFigures = parts.some(([, , usd]) => usd !== undefined)
  return (
    <ul class={isFigures ? 'legend legend--figures' : 'legend'}>
      {parts.map(([kind, words, usd]) => (
        <li key={kind}>
          {kind === 'aside' ? <AsideSwatch /> : <span class={`swatch swatch--${kind}`} />}
          {words}
          {usd !== undefined && <b class="num">{formatUsd(usd)}</b>}
        </li>
      ))}
    </ul>
  )
}

/** The bar of a budget with its usual words: `$16.50 of $20.00 left today`. */
export function BudgetBurn({
  used,
  left: remaining,
  aside: setAside = '0',
  span,
  isBig = false,
  isOff = false,
  end,
}: {
  readonly used: string
  readonly left: string
  /** Set aside for keys below, out of what is left. */
  readonly aside?: string
  /** Words for the window, such as `today`. */
  readonly span: string
  readonly isBig?: boolean
  readonly isOff?: boolean
  readonly end?: ComponentChildren
}) {
  const limit = addDecimals(used, remaining)
  const { left, aside } = splitLeft(remaining, setAside)
  const isSplit = compareDecimals(aside, '0') > 0
  const label = `of ${formatUsd(limit)} left ${span}${isSplit ? `, ${formatUsd(aside)} set aside` : ''}`
  // Both parts and the limit do not fit one line. The bar shows the limit.
  const words = isSplit ? `left ${span}, ${formatUsd(aside)} set aside` : label
  return (
    <Burn
      left={left}
      aside={aside}
      limit={limit}
      isBig={isBig}
      isOff={isOff}
      label={`${formatUsd(left)} ${label}`}
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
