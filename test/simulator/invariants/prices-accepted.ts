import { sql } from 'kysely'
import { REFUNDING_SELLER } from '../actors/refunding-sellers.ts'
import { MOST, SELLER } from '../actors/sellers.ts'
import type { Invariant } from './invariant.ts'

export const pricesAccepted: Invariant = {
  sentence:
    'No purchase costs more than its buyer accepts, and none is paid to somebody else than it was agreed with.',
  check: async ({ world, boughtChannels }) => {
    const ofChannels = boughtChannels.map(({ payTo }) => payTo)
    const { rows } = await sql<{ line: string }>`
      select concat_ws(' ', id, url, state, units, pay_to) as line from purchase
      where units > ${MOST} or lower(pay_to) not in (lower(${SELLER}), lower(${REFUNDING_SELLER}))
        and lower(pay_to) <> all (${ofChannels}) order by id`.execute(world.database.books.kysely)
    return rows.map(({ line }) => line)
  },
}
