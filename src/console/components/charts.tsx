/** Small charts, drawn as SVG: bars by day and bars by share. Each has its numbers as text. */
import { digits } from '../words/digits.ts'
import { findShare, formatDecimal, formatUsd } from '../words/money.ts'
import { Untrusted } from './quote.tsx'

/** @property day UTC calendar day, YYYY-MM-DD. @property used USD. */
export interface DayBar {
  readonly day: string
  readonly used: string
}

/** Share of the chart's height that the limit has: the line stands in the stylesheet. */
const LIMIT_PERCENT = 86
const LABELLED_DAYS = 10

/** @property days oldest first; the last is today. @property limit USD a day. */
export function Days({ days, limit }: { readonly days: readonly DayBar[]; readonly limit: string }) {
  const isShort = days.length <= LABELLED_DAYS
  const said = days.filter(({ used }) => findShare(used, limit) > 0)
  const words = said.map(({ day, used }) => `${nameOfDay(day, true)} ${formatUsd(used)}`).join(', ')
  return (
    <figure
      class={isShort ? 'days' : 'days days--many'}
      aria-label={`Spent by day: ${words === '' ? 'nothing' : words}. The limit is ${formatUsd(limit)} a day.`}
    >
      <span class="days__limit num">{formatDecimal(limit)} a day</span>
      {days.map(({ day, used }, position) => {
        const isToday = position === days.length - 1
        const height = (findShare(used, limit) * LIMIT_PERCENT) / 100
        const top = 100 - height
        return (
          <div class={isToday ? 'day day--now' : 'day'} key={day}>
            <svg aria-hidden="true">
              <rect x="15%" width="70%" y={`${top}%`} height={`${height}%`} rx={isShort ? 3 : 1} />
              {isShort && height > 0 && (
                <text x="50%" y={`${top}%`} dy="-5">
                  {formatDecimal(used)}
                </text>
              )}
            </svg>
            <span aria-hidden="true">
              {isToday && isShort
                ? 'Today'
                : isShort
                  ? nameOfDay(day, false)
                  : labelDay(day, position, days.length)}
            </span>
          </div>
        )
      })}
    </figure>
  )
}

/** Every seventh day from the last has its number, so that they do not touch. */
function labelDay(day: string, position: number, all: number): string {
  return (all - 1 - position) % 7 === 0 ? String(Number(day.slice(8))) : ''
}

function nameOfDay(day: string, isLong: boolean): string {
  return new Date(`${day}T00:00:00Z`).toLocaleDateString(undefined, {
    ...digits,
    timeZone: 'UTC',
    ...(isLong ? { weekday: 'long', day: 'numeric', month: 'short' } : { weekday: 'short' }),
  })
}

/** Amounts in USD as bars of the largest. @property hue class of the first bar, or of all with `isOneHue`. */
export function HBars({
  bars,
  isOneHue = false,
}: {
  readonly bars: readonly { readonly name: string; readonly usd: string; readonly isMono?: boolean }[]
  readonly isOneHue?: boolean
}) {
  const most = bars[0]?.usd ?? '0'
  return (
    <ul class="hbars">
      {bars.map(({ name, usd, isMono = false }, position) => (
        <li class="hbar" key={name}>
          <span class={isMono ? 'trim mono small' : 'trim'}>
            <Untrusted>{name}</Untrusted>
          </span>
          <span class="amt">{formatUsd(usd)}</span>
          <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
            <rect
              class={isOneHue ? 'd6' : `d${Math.min(position + 1, 6)}`}
              width={findShare(usd, most)}
              height="6"
            />
          </svg>
        </li>
      ))}
    </ul>
  )
}
