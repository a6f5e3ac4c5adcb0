import { sql } from 'kysely'
import type { Address } from '../../../src/providers/chain/port.ts'
import type { Invariant } from './invariant.ts'

export const transfersOnce: Invariant = {
  sentence: 'A transfer arrives once and whole, or not at all, as the books say.',
  check: async ({ world, transfers }) => {
    const { rows } = await sql<{ destination: string; state: string; count: bigint }>`
      select destination, min(state) as state, count(*) as count from transfer group by 1`.execute(
      world.database.books.kysely,
    )
    const booked = new Map(rows.map((row) => [row.destination, row]))
    const found: string[] = []
    for (const { id, to, cents, chain, answer } of transfers) {
      const network = world.networks.find((one) => one.chain.name === chain)
      const there = (await network?.chain.readBalance('USDC', to as Address)) ?? 0n
      const row = booked.get(to)
      if (there !== 0n && there !== BigInt(cents) * 10_000n)
        found.push(`${id}: ${there} arrived instead of ${cents} cents`)
      if ((row?.state === 'confirmed') !== there > 0n)
        found.push(`${id}: ${row?.state} in the books, ${there} on the chain; answered ${answer?.text}`)
      if (row !== undefined && row.count > 1n) found.push(`${id}: ${row.count} transfers`)
    }
    return found
  },
}
