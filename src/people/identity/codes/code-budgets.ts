/**
 * Rate budgets for sending codes. Sign-in and recovery share none, so that neither blocks the other, and strangers share
 * none with the browsers of an owner. @see https://www.twilio.com/docs/verify/preventing-toll-fraud
 */
import { findNetwork } from '../../../core/base/address-range.ts'
import type { RateBudget } from '../../../providers/rate-limiter/port.ts'
import { messageBudget } from '../message-budget.ts'
import type { Asker } from './asker.ts'
import type { Destination } from './destinations.ts'
import type { CodeKind } from './one-time-codes.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** Limit of an IPv6 /48, as a multiple of that of a /64. */
const NETWORK_SHARE = 16
/** Limit of the texts to all known browsers of a country, as a multiple of that of all strangers. */
const KNOWN_SHARE = 10

const addressClasses = { otp: 'otp_ip', recovery: 'recovery' } as const
const destinationClasses = { otp: 'otp_destination', recovery: 'recovery' } as const

interface AskedCode {
  readonly destination: Destination
  readonly asker: Asker
  readonly at: Date
}

/** Budgets of every message with a code, also of one that is sent again. */
export function resendBudgets(kind: CodeKind, { destination: { hash }, asker }: AskedCode): RateBudget[] {
  const sender = asker.kind === 'known' ? `${kind} known` : kind
  return [
    { rateClass: 'otp_resend', client: `${kind}:${hash}:${asker.id}`, endsAt: null },
    messageBudget({ hash }, sender),
  ]
}

/**
 * Budgets of a code that is sent again, in addition to {@link resendBudgets}: it counts against no code, but strangers' texts to
 * a country are paid for whether they are new or not.
 */
export function repeatBudgets(
  kind: CodeKind,
  { destination: { callingCode }, asker, at }: AskedCode,
): RateBudget[] {
  if (asker.kind === 'known' || callingCode === null) return []
  const { day, endsAt } = findDay(at)
  return [{ rateClass: 'otp_country', client: `${kind} again:${callingCode}:${day}`, endsAt }]
}

/** Budgets of a new code, in addition to {@link resendBudgets}. */
export function codeBudgets(kind: CodeKind, { destination, asker, at }: AskedCode): RateBudget[] {
  const { hash, callingCode } = destination
  const { day, endsAt } = findDay(at)
  const rateClass = destinationClasses[kind]
  if (asker.kind === 'known') {
    const client = `known:${callingCode}:${day}`
    return [
      { rateClass, client: `known:${hash}:${asker.id}`, endsAt: null },
      ...(callingCode === null ? [] : [{ rateClass: 'otp_country', client, share: KNOWN_SHARE, endsAt }]),
    ]
  }
  return [
    ...addressBudgets(kind, asker.id),
    { rateClass, client: `destination:${hash}`, endsAt: null },
    ...(callingCode === null
      ? []
      : [{ rateClass: 'otp_country', client: `${kind}:${callingCode}:${day}`, endsAt }]),
    { rateClass: 'otp_total', client: `${kind}:${day}`, endsAt },
  ]
}

/** Budgets of a network address and its IPv6 /48. */
export function addressBudgets(kind: CodeKind, address: string): RateBudget[] {
  const [rateClass, network] = [addressClasses[kind], findNetwork(address)]
  return [
    { rateClass, client: address, endsAt: null },
    ...(network === null ? [] : [{ rateClass, client: network, share: NETWORK_SHARE, endsAt: null }]),
  ]
}

/** The UTC day of a moment, and its end. */
function findDay(at: Date): { day: string; endsAt: Date } {
  const day = at.toISOString().slice(0, 10)
  return { day, endsAt: new Date(Date.parse(day) + DAY_MS) }
}
