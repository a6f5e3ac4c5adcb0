/** Booked balances of a wallet. */
import { available, held } from '../../../books/ledger/accounts.ts'
import { balances } from '../../../books/ledger/balances.ts'
import { type Stablecoin, stablecoins } from '../../../core/money/money.ts'
import type { Address, Chain } from '../../../providers/chain/port.ts'
import { type Connection, callForRow, type Statement } from '../../../storage/database.ts'

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

/** @property bookings changes with every booking, also where the sum stays the same. */
export interface BookedUnits {
  readonly units: bigint
  readonly bookings: string
}

const statement: Statement = {
  name: 'wallets_read_booked',
  text: `select coalesce(sum(units), 0)::bigint as units, coalesce(string_agg(account || ' ' || xmin::text, ' ' order by account), '') as bookings
    from balance where account = any($1::text[]) and asset = $2`,
}

/**
 * Reads a wallet's available plus held units of a token. A balance read before the chain matches the chain's answer
 * for as long as `bookings` is the same under {@link lockDebts}.
 */
export async function readBookedUnits(
  database: Connection,
  { accountId, token, place }: { accountId: string; token: Stablecoin; place: string },
): Promise<BookedUnits> {
  const accounts = [available(accountId, place), held(accountId, place)]
  return callForRow<BookedUnits>(database, statement, [accounts, token])
}
