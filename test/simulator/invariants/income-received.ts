import { sql } from 'kysely'
import type { Address } from '../../../src/providers/chain/port.ts'
import { SELLER } from '../actors/sellers.ts'
import type { Invariant } from './invariant.ts'

/** Where the sandbox's sales and card settlements arrive. */
const PAY_TO = '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f'
const TREASURY = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'

export const incomeReceived: Invariant = {
  sentence:
    'Sales and card settlements that are booked have arrived, and sellers have exactly what was bought.',
  check: async ({ world }) => {
    const kysely = world.database.books.kysely
    const read = async (query: ReturnType<typeof sql<{ units: bigint }>>) =>
      (await query.execute(kysely)).rows[0]?.units ?? 0n
    const balance = (address: string) => world.network.chain.readBalance('USDC', address as Address)
    const income = await read(sql<{ units: bigint }>`
      select coalesce(sum(case when destination = 'revenue:x402.fx' then units else -units end), 0)::bigint as units
      from posting where asset = 'USDC' and (destination = 'revenue:x402.fx' or source = 'revenue:x402.fx')`)
    const owed = await read(sql<{ units: bigint }>`
      select coalesce(sum(case when source = 'receivable:channels' then units else -units end), 0)::bigint as units
      from posting where 'receivable:channels' in (source, destination)`)
    const settledOn = (chain: string) =>
      read(sql<{ units: bigint }>`
        select coalesce(sum(units), 0)::bigint as units from transfer where chain = ${chain}
        and state = 'confirmed' and token = 'USDC' and destination = ${TREASURY.toLowerCase()}`)
    const bought = await read(sql<{ units: bigint }>`
      select coalesce(sum(coalesce(charged, units)), 0)::bigint as units from purchase where state = 'settled' and pay_to = ${SELLER}`)
    const found: string[] = []
    const [received, seller] = await Promise.all([balance(PAY_TO), balance(SELLER)])
    if (received < income - owed)
      found.push(`x402: booked ${income}, of these ${owed} owed by channels, received ${received}`)
    for (const { chain } of world.networks) {
      const settled = await settledOn(chain.name)
      const treasury = await chain.readBalance('USDC', TREASURY)
      if (treasury < settled) found.push(`cards: settled ${settled} on ${chain.name}, received ${treasury}`)
    }
    if (bought !== seller) found.push(`purchases: booked ${bought}, the seller has ${seller}`)
    return found
  },
}
