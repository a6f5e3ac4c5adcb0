/** Small marks: initials, states and counts. A word or an icon always stands beside a colour. */
import type { ComponentChildren } from 'preact'
import { chooseHue, extractInitials } from '../words/names.ts'
import { Icon, type IconName } from './icon.tsx'

/** Initials of an agent in its colour. @property isOff without colour: stopped or revoked. */
export function AgentGlyph({
  id,
  name,
  size,
  isOff = false,
}: {
  readonly id: string
  readonly name: string
  readonly size?: 'sm' | 'lg'
  readonly isOff?: boolean
}) {
  const classes = [
    'glyph',
    isOff ? '' : `glyph--${chooseHue(id)}`,
    size === undefined ? '' : `glyph--${size}`,
  ]
  return (
    <span class={classes.filter((one) => one !== '').join(' ')} aria-hidden="true">
      {extractInitials(name)}
    </span>
  )
}

export function IconGlyph({
  name,
  kind,
}: {
  readonly name: IconName
  readonly kind?: 'in' | 'bad' | '4' | '1' | undefined
}) {
  return (
    <span class={kind === undefined ? 'glyph' : `glyph glyph--${kind}`} aria-hidden="true">
      <Icon name={name} small />
    </span>
  )
}

export type ChipKind = 'good' | 'warn' | 'bad' | 'info' | 'sandbox' | 'plain'

export function Chip({
  kind,
  icon,
  children,
}: {
  readonly kind: ChipKind
  readonly icon?: IconName
  readonly children: ComponentChildren
}) {
  return (
    <span class={kind === 'plain' ? 'chip' : `chip chip--${kind}`}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </span>
  )
}

/** Word and kind of every status. A status that is quiet went as it should. */
const statuses: Readonly<Record<string, { word: string; kind: ChipKind | 'quiet'; icon?: IconName }>> = {
  active: { word: 'Active', kind: 'good', icon: 'check' },
  paused: { word: 'Stopped', kind: 'bad', icon: 'stop' },
  revoked: { word: 'Revoked', kind: 'plain' },
  ended: { word: 'Ended', kind: 'plain' },
  pending: { word: 'Pending', kind: 'warn', icon: 'clock' },
  completed: { word: 'Done', kind: 'quiet', icon: 'check' },
  failed: { word: 'Failed', kind: 'bad', icon: 'close' },
  declined: { word: 'Declined', kind: 'bad', icon: 'close' },
  denied: { word: 'Denied', kind: 'bad', icon: 'close' },
  canceled: { word: 'Canceled', kind: 'plain' },
  cancelled: { word: 'Cancelled', kind: 'plain' },
  reversed: { word: 'Reversed', kind: 'warn', icon: 'return' },
  approved: { word: 'Approved', kind: 'quiet', icon: 'check' },
  rejected: { word: 'Rejected', kind: 'plain' },
  withdrawn: { word: 'Withdrawn', kind: 'plain' },
  expired: { word: 'Expired', kind: 'plain' },
  frozen: { word: 'Frozen', kind: 'info', icon: 'freeze' },
  allow: { word: 'Allowed', kind: 'quiet', icon: 'check' },
  deny: { word: 'Denied', kind: 'bad', icon: 'close' },
  approval_required: { word: 'Asked you', kind: 'warn', icon: 'clock' },
  insufficient_funds: { word: 'Too little money', kind: 'bad', icon: 'close' },
  confirmed: { word: 'Confirmed', kind: 'quiet', icon: 'check' },
  delivered: { word: 'Delivered', kind: 'quiet', icon: 'check' },
  undelivered: { word: 'Not delivered', kind: 'warn', icon: 'warning' },
  settled: { word: 'Settled', kind: 'quiet', icon: 'check' },
  filled: { word: 'Filled', kind: 'quiet', icon: 'check' },
  accepted: { word: 'Open', kind: 'warn', icon: 'clock' },
  new: { word: 'Open', kind: 'warn', icon: 'clock' },
  partially_filled: { word: 'Partly filled', kind: 'warn', icon: 'clock' },
  disabled: { word: 'Disabled', kind: 'bad', icon: 'close' },
  sent: { word: 'On its way', kind: 'warn', icon: 'clock' },
  on_its_way: { word: 'On its way', kind: 'warn', icon: 'clock' },
  paid: { word: 'Paid', kind: 'quiet', icon: 'check' },
  returned: { word: 'Returned', kind: 'warn', icon: 'return' },
}

/** The product's word for a status. */
export function nameStatus(status: string): string {
  return statuses[status]?.word ?? status.replaceAll('_', ' ')
}

/** A status in the product's word: a chip for an exception, quiet text for what went as it should. */
export function Status({ status }: { readonly status: string }) {
  const { word, kind, icon } = statuses[status] ?? {
    word: status.replaceAll('_', ' '),
    kind: 'plain' as const,
  }
  if (kind !== 'quiet')
    return (
      <Chip kind={kind} {...(icon === undefined ? {} : { icon })}>
        {word}
      </Chip>
    )
  return (
    <span class="state">
      {icon !== undefined && <Icon name={icon} />}
      {word}
    </span>
  )
}

export function Count({ number, of }: { readonly number: number; readonly of: string }) {
  return (
    <span class="count">
      {number}
      <span class="hide"> {of}</span>
    </span>
  )
}
