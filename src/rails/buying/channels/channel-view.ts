/** Channels as their owners see them. */
import { z } from 'zod'
import { untrustedText } from '../../../core/base/untrusted-text.ts'
import { toDecimal } from '../../../core/money/money.ts'
import { payableAssets } from '../terms.ts'
import type { Channel } from './channel.ts'

export const channelView = z.strictObject({
  id: z.string().describe('`chn_…`.'),
  origin: z.string().describe('Origin of the seller.'),
  network: untrustedText('Network as the seller names it.'),
  asset: z.enum(payableAssets).describe('Asset of the amounts.'),
  deposit: z.string().describe('Deposited, decimal string.'),
  spent: z.string().describe('Paid by vouchers; provisional until it is closed.'),
  claimed: z.string().describe('Taken by the seller, known when it is closed.'),
  status: z
    .enum(['open', 'closing', 'closed', 'exiting'])
    .describe('`closing`: the seller is asked for the rest; `exiting`: the rest comes without the seller.'),
  opensAt: z.string().describe('When it was opened, ISO 8601 UTC.'),
  withdrawableAt: z.string().nullable().describe('When the rest can be taken without the seller.'),
  agentId: z.string().describe('Key that buys by it.'),
})
channelView.register(z.globalRegistry, { id: 'Channel' })

export function viewChannel(channel: Channel): z.input<typeof channelView> {
  const asset = z.enum(payableAssets).parse(channel.asset)
  const amount = (units: bigint) => toDecimal({ asset, units })
  return {
    id: channel.id,
    origin: channel.origin,
    network: channel.network,
    asset,
    deposit: amount(channel.deposit),
    spent: amount(channel.status === 'closed' ? channel.claimed : channel.booked),
    claimed: amount(channel.claimed),
    status: channel.status,
    opensAt: channel.opened_at.toISOString(),
    withdrawableAt: channel.withdrawable_at?.toISOString() ?? null,
    agentId: channel.key_id,
  }
}
