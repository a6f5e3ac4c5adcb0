import { sql } from 'kysely'
import type { Stablecoin } from '../../../src/core/money/money.ts'
import type { Address } from '../../../src/providers/chain/port.ts'
import { AWAY, HOME } from '../world.ts'
import type { Invariant } from './invariant.ts'

interface Booked {
  readonly chain: string
  readonly address: Address
  readonly asset: Stablecoin
  readonly booked: bigint
  readonly uncovered: bigint
}

export const walletsCovered: Invariant = {
  sentence: 'What a wallet or an escrow has available and held is on the chain, or booked as a shortfall.',
  check: async ({ world }) => {
    const { rows } = await sql<Booked>`
      select c.chain, w.address, b.asset, sum(b.units)::bigint as booked, coalesce(max(s.uncovered), 0)::bigint as uncovered
      from wallet w cross join unnest(array[${HOME}, ${AWAY}]) as c (chain) join balance b
        on b.account in (w.account_id || ':' || c.chain || ':available', w.account_id || ':' || c.chain || ':held')
      left join wallet_shortfall s on s.account_id = w.account_id and s.token = b.asset and s.chain = c.chain group by 1, 2, 3
      union all
      select ${HOME}, w.escrow, b.asset, sum(b.units)::bigint, 0::bigint from wallet w join balance b
        on b.account in (w.account_id || ':escrow.base-sepolia:available', w.account_id || ':escrow.base-sepolia:held')
      where w.escrow is not null group by 1, 2, 3 order by 1, 2, 3`.execute(world.database.books.kysely)
    const found: string[] = []
    for (const { chain, address, asset, booked, uncovered } of rows) {
      const network = world.networks.find((one) => one.chain.name === chain)
      const there = (await network?.chain.readBalance(asset, address)) ?? 0n
      if (booked > there + uncovered)
        found.push(
          `${chain} ${address} ${asset}: booked ${booked}, on the chain ${there}, uncovered ${uncovered}`,
        )
    }
    return found
  },
}
