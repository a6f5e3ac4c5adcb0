import { sql } from 'kysely'
import type { Hex } from '../../../src/providers/chain/port.ts'
import { findHighest } from '../actors/channel-sellers.ts'
import type { Invariant } from './invariant.ts'

interface Bought {
  readonly id: string
  readonly pay_to: string
  readonly hash: Hex
  readonly status: string
  readonly signed: bigint
  readonly claimed: bigint
  readonly paid: bigint
  readonly open: bigint
}

export const channelsBought: Invariant = {
  sentence:
    'A channel is signed for no more than was bought by it; at its end the books have what the chain has, and the rest is back.',
  check: async ({ world, boughtChannels }) => {
    const { kysely } = world.database.books
    const { rows } = await sql<Bought>`
      select c.id, c.pay_to, c.hash, c.status, c.signed, c.claimed,
        (select coalesce(sum(case when p.destination = 'external:' || c.chain then p.units else -p.units end), 0)::bigint
          from posting p join ledger_transaction t on t.id = p.transaction_id
          where 'external:' || c.chain in (p.source, p.destination)
            and (p.source like '%:purse.' || c.id || ':%' or p.destination like '%:purse.' || c.id || ':%')) as paid,
        (select count(*) from purchase p where p.purse_id = c.id and p.state in ('reserved', 'signed')) as open
      from channel c order by c.id`.execute(kysely)
    const found: string[] = []
    for (const { id, pay_to: payTo, hash, status, signed, claimed, paid, open } of rows) {
      const { balance, claimed: taken } = await world.network.chain.channelState(hash, 'latest')
      if (status !== 'closed' || open > 0n || balance !== taken || taken !== claimed || paid !== claimed)
        found.push(
          `${id}: ${status}, ${open} open; paid ${paid}, claimed ${claimed}; on the chain ${taken} of ${balance}`,
        )
      const bought = boughtChannels.find((one) => one.payTo === payTo)
      const highest = bought === undefined ? 0n : findHighest(world, bought.id, hash)
      if (bought !== undefined && (signed > bought.most || highest > signed || claimed > signed))
        found.push(
          `${bought.id}: bought for ${bought.most}, signed ${signed}, seen ${highest}, claimed ${claimed}`,
        )
    }
    const alarms = await kysely
      .selectFrom('alarm')
      .select(['object_id', 'reason'])
      .where('reason', '=', 'channel_overclaimed')
      .execute()
    return [...found, ...alarms.map((alarm) => `${alarm.object_id}: ${alarm.reason}`)]
  },
}
