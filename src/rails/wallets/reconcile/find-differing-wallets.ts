import { available, held } from '../../../books/ledger/accounts.ts'
import { stablecoins } from '../../../core/money/money.ts'
import type { Chain } from '../../../providers/chain/port.ts'
import type { Connection, Statement } from '../../../storage/database.ts'
import type { ReconciledWallet } from './booked-balances.ts'
import { keptUnits } from './movement-reviews.ts'

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
 * difference. Deposits that wait for a review are none. At most three statements for the whole page.
 */
export async function findDifferingWallets(
  { database, chain }: { database: Connection; chain: Pick<Chain, 'name' | 'readBalance' | 'identity'> },
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
  const surpluses = await Promise.all(
    wallets.map(async ({ accountId, address }) => {
      const onChain = await Promise.all(stablecoins.map((token) => chain.readBalance(token, address)))
      return stablecoins.map(
        (token, index) => (onChain[index] ?? 0n) - (booked.get(`${accountId} ${token}`) ?? 0n),
      )
    }),
  )
  const differing = wallets.flatMap((wallet, index) => {
    const surplus = surpluses[index] ?? []
    return marked.has(wallet.accountId) || surplus.some((units) => units !== 0n) ? [{ wallet, surplus }] : []
  })
  if (differing.length === 0) return []
  const kept = await keptUnits(
    { database, chain },
    differing.map(({ wallet }) => wallet.accountId),
  )
  return differing
    .filter(
      ({ wallet: { accountId }, surplus }) =>
        marked.has(accountId) ||
        stablecoins.some((token, index) => surplus[index] !== kept(accountId, token)),
    )
    .map(({ wallet }) => wallet)
}
