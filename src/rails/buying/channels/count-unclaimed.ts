/** What a seller did not claim of one purchase at the end of its channel. */
import { minimum } from '../../../core/money/shares.ts'
import type { Purchase } from '../store.ts'
import type { Channel } from './channel.ts'

/**
 * Booked purchases share a channel's amount without gaps, each from the voucher before its own to its own, so that their parts add up to
 * what was booked and never claimed. @returns smallest units; 0n while the channel is not closed.
 */
export function countUnclaimed(
  { status, booked, claimed }: Pick<Channel, 'status' | 'booked' | 'claimed'>,
  { state, units, cumulative }: Pick<Purchase, 'state' | 'units' | 'cumulative'>,
): bigint {
  if (status !== 'closed' || claimed >= booked || state !== 'settled' || cumulative === null) return 0n
  return cumulative > claimed ? minimum(units, cumulative - claimed) : 0n
}
