import { sql } from 'kysely'
import type { Invariant } from './invariant.ts'

export const channelsCharged: Invariant = {
  sentence:
    'A channel that pays for sales is charged once for each answer, for nothing else, and what it owes is in the books until it has paid.',
  check: async ({ world, channels }) => {
    const { kysely } = world.database.books
    const found: string[] = []
    for (const { id, channelId, price, signed, answered } of channels) {
      const { rows } = await sql<{ cumulative: bigint; payments: bigint }>`
        select v.cumulative, count(p.id) as payments from sold_voucher v
          left join payment p on p.nonce = v.channel_id || '/' || v.cumulative and p.state = 'settled'
        where v.channel_id = ${channelId.toLowerCase()} group by 1 order by 1`.execute(kysely)
      const { claimed } = await world.network.chain.channelState(channelId, 'latest')
      const charged = rows.at(-1)?.cumulative ?? 0n
      const wrong = rows.filter(
        ({ cumulative, payments }, at) => cumulative !== price * BigInt(at + 1) || payments !== 1n,
      )
      if (wrong.length > 0 || rows.length < answered || charged > signed || claimed > charged)
        found.push(
          `${id}: signed ${signed}, answered ${answered}, charged ${rows.map(({ cumulative, payments }) => `${cumulative} (${payments})`).join(', ')}, claimed ${claimed}`,
        )
    }
    const { rows } = await sql<{ owed: bigint; booked: bigint; paid: bigint }>`
      select
        (select coalesce(sum(case when source = 'receivable:channels' then units else -units end), 0)::bigint
          from posting where 'receivable:channels' in (source, destination)) as owed,
        (select coalesce(sum(units), 0)::bigint from payment where scheme = 'batch-settlement' and state = 'settled') as booked,
        (select coalesce(sum(units), 0)::bigint from channel_income) as paid`.execute(kysely)
    for (const { owed, booked, paid } of rows)
      if (owed !== booked - paid)
        found.push(`channels: ${booked} sold, ${paid} paid out, ${owed} owed in the books`)
    return found
  },
}
