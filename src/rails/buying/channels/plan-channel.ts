/** The channel that a purchase is to be paid by: the open one to its seller, or a new one. */
import { timers } from '../../../core/base/timers.ts'
import { minimum } from '../../../core/money/shares.ts'
import type { Connection } from '../../../storage/database.ts'
import type { ChannelLimits, Offer } from '../offers.ts'
import { type ChannelWishes, deriveChannelId, readWishes } from './channel.ts'
import { type ChannelPair, findOpenChannel, type OpenChannel } from './channel-store.ts'

/** What is deposited, in prices, unless the seller wants more. */
const PRICES_DEPOSITED = 100n
/** How long a purchase waits for another call that opens the channel. */
const OPENING_MS = 15_000
const OPENING_POLL_MS = 100

/** @property isReady it has the price. @property cumulative its next voucher. @property deposit to be moved there, if it is not ready. */
export interface ChannelPlan {
  readonly id: string
  readonly wishes: ChannelWishes
  readonly isReady: boolean
  readonly cumulative: bigint
  readonly deposit: bigint
}

/** Plans for an offer that can be paid by channel. A channel with other terms, or without the price, is replaced by another. */
export async function planChannel(
  { database, now }: { readonly database: Connection; readonly now: Date },
  { pair, offer, limits }: { pair: ChannelPair; offer: Offer; limits: ChannelLimits },
): Promise<ChannelPlan> {
  const wishes = readWishes(offer.offer)
  if (wishes === null) throw new Error('the offer is for no channel')
  const { units, token } = offer
  const until = timers.monotonic() + OPENING_MS
  for (;;) {
    const { channel, left, number } = await findOpenChannel(database, pair)
    const isSame = channel !== undefined && hasTerms(channel, { wishes, token })
    if (isSame && left >= units)
      return { id: channel.id, wishes, isReady: true, cumulative: channel.booked + units, deposit: 0n }
    const isOpening =
      isSame && channel.deposit === 0n && channel.opened_at.getTime() > now.getTime() - OPENING_MS
    if (!isOpening || timers.monotonic() > until) {
      const wanted =
        units * PRICES_DEPOSITED > wishes.minDeposit ? units * PRICES_DEPOSITED : wishes.minDeposit
      const most = minimum(wanted, limits.depositMax)
      const id = deriveChannelId({ ...pair, token, wishes, number })
      return { id, wishes, isReady: false, cumulative: units, deposit: most - (most % units) }
    }
    await timers.sleep(OPENING_POLL_MS)
  }
}

/** Plans for terms that are known. @returns undefined if the channel has others, or not the price. */
export function planKnownChannel(
  channel: OpenChannel | undefined,
  { offer, units, token }: Pick<Offer, 'offer' | 'units' | 'token'>,
): ChannelPlan | undefined {
  const wishes = readWishes(offer)
  if (
    channel === undefined ||
    wishes === null ||
    !hasTerms(channel, { wishes, token }) ||
    channel.left < units
  )
    return undefined
  return { id: channel.id, wishes, isReady: true, cumulative: channel.booked + units, deposit: 0n }
}

function hasTerms(
  channel: Pick<OpenChannel, 'receiver_authorizer' | 'withdraw_delay' | 'token'>,
  { wishes: { receiverAuthorizer, withdrawDelay }, token }: { wishes: ChannelWishes; token: string },
): boolean {
  return (
    channel.receiver_authorizer === receiverAuthorizer &&
    channel.withdraw_delay === withdrawDelay &&
    channel.token === token
  )
}
