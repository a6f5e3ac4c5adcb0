import { available, held } from '../../ledger/accounts.ts'
import { stablecoins } from '../../money/money.ts'
import type { Chain } from '../../providers/chain.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import type { ReconciledWallet } from './booked-balances.ts'

interface BookedRow {
  readonly account: string
  readonly asset: string
  readonly units: bigint
}

const bookedStatement: Statement = {
  name: 'wallets_booked_units',
  text: 'select account, asset, units from balance where account = any($1::text[])',
}

const markedStatement: Statement = {
  name: 'wallets_with_differences',
  text: `select account_id from wallet_drift where account_id = any($1::text[]) and chain = $2
    union select account_id from wallet_shortfall
    where account_id = any($1::text[]) and chain = $2 and (frozen > 0 or uncovered > 0)`,
}

/**
 * Finds the wallets of a page that need a comparison: their booked and on-chain balances differ, or they have an open
 * difference. Two statements for the whole page.
 */
export async function findDifferingWallets(
  { database, chain }: { database: Connection; chain: Pick<Chain, 'name' | 'balanceOf'> },
  wallets: readonly ReconciledWallet[],
): Promise<readonly ReconciledWallet[]> {
  if (wallets.length === 0) return []
  const places = wallets.flatMap(({ accountId }) => [
    available(accountId, chain.name),
    held(accountId, chain.name),
  ])
  const booked = new Map<string, bigint>()
  for (const { account, asset, units } of await database.call<BookedRow>(bookedStatement, [places])) {
    const key = `${account.slice(0, account.indexOf(':'))} ${asset}`
    booked.set(key, (booked.get(key) ?? 0n) + units)
  }
  const ids = wallets.map(({ accountId }) => accountId)
  const rows = await database.call<{ account_id: string }>(markedStatement, [ids, chain.name])
  const marked = new Set(rows.map((row) => row.account_id))
  const isEqual = await Promise.all(
    wallets.map(async ({ accountId, address }) => {
      const onChain = await Promise.all(stablecoins.map((token) => chain.balanceOf(token, address)))
      return stablecoins.every(
        (token, index) => onChain[index] === (booked.get(`${accountId} ${token}`) ?? 0n),
      )
    }),
  )
  return wallets.filter(({ accountId }, index) => marked.has(accountId) || isEqual[index] === false)
}
