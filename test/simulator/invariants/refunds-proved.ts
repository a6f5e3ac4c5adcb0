import { sql } from 'kysely'
import type { Hex } from '../../../src/providers/chain/port.ts'
import type { Invariant } from './invariant.ts'

interface Linked {
  readonly purchase_id: string
  readonly movement: string
  readonly reference: Hex
  readonly pay_to: string
}

export const refundsProved: Invariant = {
  sentence:
    'What came back of a purchase is from its payee, and no more than was paid; a recourse says what came back.',
  check: async ({ world }) => {
    const { kysely } = world.database.books
    const { rows: wrong } = await sql<{ line: string }>`
      select concat_ws(' ', p.id, p.state, p.charged, p.units, c.status, c.recovered, f.units) as line
      from recourse c join purchase p on p.id = c.object_id
        cross join lateral (select coalesce(sum(r.units), 0)::bigint as units from refund r where r.object_id = p.id) f
      where f.units > coalesce(p.charged, p.units) or c.route <> 'cancel_authorization' and (c.route <> 'channel_close' or p.state = 'settled') and c.recovered <> f.units
        or c.status = 'recovered' and not c.is_delivered and c.recovered < c.claimed order by p.id`.execute(
      kysely,
    )
    const { rows } = await sql<Linked>`
      select f.object_id as purchase_id, f.movement, l.reference, p.pay_to
      from refund f join ledger_transaction l on l.id = f.movement join purchase p on p.id = f.object_id
      order by f.movement`.execute(kysely)
    const found = wrong.map(({ line }) => line)
    for (const { purchase_id, movement, reference, pay_to } of rows) {
      const position = Number(movement.slice(movement.lastIndexOf(':') + 1))
      const log = (await world.network.chain.transaction(reference))?.transfers.find(
        (transfer) => transfer.position === position,
      )
      // A block that was replaced takes its transaction along; the wallet's difference is judged elsewhere.
      if (log !== undefined && log.from.toLowerCase() !== pay_to.toLowerCase())
        found.push(`${purchase_id}: ${movement} is from ${log.from}, not from ${pay_to}`)
    }
    return found
  },
}
