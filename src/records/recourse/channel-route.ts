/**
 * The way to the money of a purchase by voucher: its channel is closed. What the seller has not claimed of the voucher is back with the
 * channel's end, whatever was booked by its word; what it has claimed is paid.
 */
import { toDecimal } from '../../core/money/money.ts'
import { minimum } from '../../core/money/shares.ts'
import type { Channel } from '../../rails/buying/channels/channel.ts'
import { beginClosing, findChannel } from '../../rails/buying/channels/channel-store.ts'
import { countUnclaimed } from '../../rails/buying/channels/count-unclaimed.ts'
import type { PayingParts } from '../../rails/buying/pay-purchase.ts'
import { chargedUnits, type Purchase, parseKind } from '../../rails/buying/store.ts'
import { linkRefund } from './link-refund.ts'
import { findStep, type Recourse, recordStep } from './store.ts'

type ChannelRecourseParts = Pick<PayingParts, 'database' | 'clock'>

const action = 'channel_close'

/** Begins to close the channel of a purchase unless it is closed. @returns the channel if it is. */
export async function closeChannel(
  { database, clock }: ChannelRecourseParts,
  recourse: Recourse,
  { id, purse_id: channelId }: Purchase,
): Promise<{ readonly recourse: Recourse; readonly closed: Channel | null }> {
  const channel = await findChannel(database, channelId)
  if (channel === undefined) throw new Error(`${id} has no channel`)
  if (channel.status === 'closed') return { recourse, closed: channel }
  await beginClosing(database, channelId, clock())
  const isLate = clock() >= recourse.deadline
  if (!isLate && findStep(recourse, action) !== undefined) return { recourse, closed: null }
  const noted = await recordStep(database, recourse, {
    progress: {
      action,
      outcome: isLate ? 'failed' : 'waiting',
      route: action,
      evidence: isLate ? { why: 'The channel was not closed in time.' } : { channel: channelId },
      ...(isLate
        ? { end: { status: recourse.recovered > 0n ? ('partly_recovered' as const) : ('expired' as const) } }
        : {}),
    },
    at: clock(),
  })
  return { recourse: noted, closed: null }
}

/**
 * Takes what the seller of a paid purchase has not claimed at the end of its channel.
 * @returns the recourse afterwards; null while the channel is not closed.
 */
export async function takeUnclaimed(
  parts: ChannelRecourseParts,
  given: Recourse,
  purchase: Purchase,
): Promise<Recourse | null> {
  const { database, clock } = parts
  if (purchase.scheme !== 'batch-settlement') return given
  const { recourse, closed } = await closeChannel(parts, given, purchase)
  if (closed === null) return recourse.status === 'open' ? null : recourse
  const unclaimed = countUnclaimed(closed, purchase)
  const { asset } = parseKind(purchase)
  const evidence = { channel: closed.id, taken: toDecimal({ asset, units: closed.claimed }) }
  const step = findStep(recourse, action)
  const noted =
    step === undefined || step.outcome === 'waiting'
      ? await recordStep(database, recourse, {
          progress: {
            action,
            outcome: unclaimed > 0n ? 'done' : 'raced',
            route: action,
            evidence: unclaimed > 0n ? evidence : { ...evidence, why: 'The seller had taken the voucher.' },
            claimed: minimum(chargedUnits(purchase), recourse.claimed),
          },
          at: clock(),
        })
      : recourse
  if (unclaimed === 0n || noted.status !== 'open') return noted
  // The books have one movement for all purchases of the channel: this is its part.
  const movement = `channel:${closed.id}:return:${purchase.id}`
  await linkRefund(parts, noted, { movement, entryId: movement, units: unclaimed, evidence })
  return database.kysely
    .selectFrom('recourse')
    .selectAll()
    .where('id', '=', recourse.id)
    .executeTakeFirstOrThrow()
}
