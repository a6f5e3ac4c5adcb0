import { sql } from 'kysely'
import type { Invariant } from './invariant.ts'

export const payersServed: Invariant = {
  sentence:
    'Who has paid by a signature has what was paid for: the payment is booked, and none is refused that arrived.',
  check: async ({ world, payments }) => {
    const { rows } = await sql<{ payer: string; state: string; failure: string | null }>`
      select payer, state, failure from payment union all select payer, state, failure from relay order by 1, 2`.execute(
      world.database.books.kysely,
    )
    const found: string[] = []
    for (const { id, kind, payer, funds } of payments) {
      const paid = funds - (await world.network.chain.readBalance('USDC', payer))
      if (paid === 0n) continue
      const known = rows.filter((row) => row.payer === payer.toLowerCase())
      const states = known.map(({ state, failure }) => (failure === null ? state : `${state} (${failure})`))
      if (!known.some(({ state }) => state === (kind === 'sale' ? 'settled' : 'confirmed')))
        found.push(`${kind} ${id}: paid ${paid}, ${states.join(', ') || 'nothing'} in the books`)
    }
    return found
  },
}
