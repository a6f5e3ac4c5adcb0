/** Rate budgets for sending codes. @see https://www.twilio.com/docs/verify/preventing-toll-fraud */
import type { RateBudget } from '../../providers/rate-limiter.ts'
import type { Destination } from './destinations.ts'
import type { CodeKind } from './one-time-codes.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** Budgets per destination. Recovery has separate budgets, so that sign-in code requests cannot block a recovery. */
export function destinationBudgets(kind: CodeKind, { hash }: Destination): RateBudget[] {
  return kind === 'otp'
    ? [
        { rateClass: 'otp_resend', client: hash, endsAt: null },
        { rateClass: 'otp_destination', client: hash, endsAt: null },
      ]
    : [
        { rateClass: 'otp_resend', client: `recovery:${hash}`, endsAt: null },
        { rateClass: 'recovery', client: `destination:${hash}`, endsAt: null },
      ]
}

/** Caps on all messages per UTC day. */
export function dailyBudgets({ callingCode }: Destination, now: Date): RateBudget[] {
  const day = now.toISOString().slice(0, 10)
  const endsAt = new Date(Date.parse(day) + DAY_MS)
  return [
    ...(callingCode === null ? [] : [{ rateClass: 'otp_country', client: `${callingCode}:${day}`, endsAt }]),
    { rateClass: 'otp_total', client: day, endsAt },
  ]
}
