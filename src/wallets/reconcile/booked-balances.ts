/** Booked balances of a wallet. */
import { balances } from '../../ledger/balances.ts'
import { type Stablecoin, stablecoins } from '../../money/money.ts'
import type { Address, Chain } from '../../providers/chain.ts'
import type { Connection } from '../../storage/database.ts'

/** A wallet by its account. @property address lower case. */
export interface ReconciledWallet {
  readonly accountId: string
  readonly address: Address
}

/** Reads the booked balance of a wallet per token: available plus held. */
export async function readBookedBalances(
  database: Connection,
  chain: Pick<Chain, 'name'>,
  accountId: string,
): Promise<ReadonlyMap<Stablecoin, bigint>> {
  const rows = await balances(database, accountId)
  const here = rows.filter(({ place }) => place === chain.name)
  return new Map(
    stablecoins.map((token) => {
      const row = here.find(({ asset }) => asset === token)
      return [token, (row?.available ?? 0n) + (row?.held ?? 0n)] as const
    }),
  )
}
