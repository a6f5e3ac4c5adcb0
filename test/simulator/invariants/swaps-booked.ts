import { sql } from 'kysely'
import type { Address } from '../../../src/providers/chain/port.ts'
import type { Invariant } from './invariant.ts'

interface Swapped {
  readonly id: string
  readonly state: string
  readonly min_received: bigint
  readonly received: bigint | null
  readonly transfer: string | null
  readonly booked: bigint
}

export const swapsBooked: Invariant = {
  sentence: 'A swap ends; what it bought is booked once, is at least its minimum, and is on the chain.',
  check: async ({ world }) => {
    const { kysely } = world.database.books
    const { rows } = await sql<Swapped>`
      select s.id, s.state, s.min_received, s.received, (select t.state from transfer t where t.decision_id = s.decision_id) as transfer,
        (select coalesce(sum(case when left(p.destination, 5) = 'acct_' then p.units else -p.units end), 0)::bigint
          from posting p join ledger_transaction l on l.id = p.transaction_id
          where l.reference = s.id and p.asset = s.buy) as booked
      from swap_order s where s.to_chain is null order by s.id`.execute(kysely)
    const found: string[] = []
    for (const { id, state, min_received: least, received, transfer, booked } of rows) {
      const isMade = state === 'confirmed'
      if (state === 'submitted' || isMade !== (transfer === 'confirmed'))
        found.push(`${id}: ${state}, its transfer ${transfer}`)
      if (booked !== (received ?? 0n) || (isMade && booked < least))
        found.push(`${id}: booked ${booked} of ${received}, at least ${least}`)
    }
    const wallets = await sql<{ address: Address; booked: bigint }>`
      select w.address, coalesce(sum(b.units), 0)::bigint as booked from wallet w
      join balance b on b.account in (w.account_id || ':base-sepolia:available', w.account_id || ':base-sepolia:held')
      where b.asset = 'EURC' and exists (select from swap_order s where s.account_id = w.account_id)
      group by 1 order by 1`.execute(kysely)
    for (const { address, booked } of wallets.rows) {
      const there = await world.network.chain.readBalance('EURC', address)
      if (there !== booked) found.push(`${address} EURC: booked ${booked}, on the chain ${there}`)
    }
    return found
  },
}
