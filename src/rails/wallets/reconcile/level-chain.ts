/**
 * Sandbox: tops up a fresh chain to the ledger's balances. The ledger is authoritative; the chain is only custody.
 */
import { operationOutcome } from '../../../books/evidence/operation-outcome.ts'
import { stablecoins } from '../../../core/money/money.ts'
import type { Address, Chain, Mint } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import { allWallets, operationOf, readOpenTransfers } from '../store.ts'
import { type ReconciledWallet, readBookedBalances } from './booked-balances.ts'

/**
 * Mints what wallets lack on the chain. Wallets with open transfers are skipped: what the chain has executed but the
 * books have not settled is not missing.
 * @param parts chain calls run in parallel; database calls run in sequence, because the connection may be a single
 * transaction.
 * @returns the number of topped-up balances.
 */
export async function levelChain(parts: { database: Connection; chain: Chain }): Promise<number> {
  const { database, chain } = parts
  const wallets: (ReconciledWallet & { booked: Booked })[] = []
  for (const wallet of await allWallets(database))
    wallets.push({ ...wallet, booked: await readBookedBalances(database, chain, wallet.accountId) })
  const onChain = await Promise.all(wallets.map(({ address }) => balancesOn(chain, address)))
  const mints: Mint[] = []
  for (const [index, { booked, ...wallet }] of wallets.entries())
    mints.push(...((await lackBetween(parts, wallet, { booked, onChain: onChain[index] ?? [] })) ?? []))
  if (mints.length > 0) await chain.mint(mints)
  return mints.length
}

/** Computes what a wallet lacks on the chain, by token; null while open transfers make it undecidable. */
export async function missingOnChain(
  parts: { database: Connection; chain: Chain },
  wallet: ReconciledWallet,
): Promise<Mint[] | null> {
  const { database, chain } = parts
  const booked = await readBookedBalances(database, chain, wallet.accountId)
  return lackBetween(parts, wallet, { booked, onChain: await balancesOn(chain, wallet.address) })
}

type Booked = Awaited<ReturnType<typeof readBookedBalances>>

/** Reads a wallet's on-chain balances, in the order of the stablecoins. */
function balancesOn(chain: Chain, address: Address): Promise<readonly bigint[]> {
  return Promise.all(stablecoins.map((token) => chain.readBalance(token, address)))
}

/** @param booked must be read before `onChain`. */
async function lackBetween(
  { database, chain }: { database: Connection; chain: Chain },
  { accountId, address }: ReconciledWallet,
  { booked, onChain }: { booked: Booked; onChain: readonly bigint[] },
): Promise<Mint[] | null> {
  const lack = stablecoins.flatMap((token, index) => {
    const units = (booked.get(token) ?? 0n) - (onChain[index] ?? 0n)
    return units > 0n ? [{ token, to: address, units }] : []
  })
  if (lack.length === 0) return []
  const again = await readBookedBalances(database, chain, accountId)
  if (stablecoins.some((token) => booked.get(token) !== again.get(token))) return null
  // The outcome is read after the balances: a transfer not executed now was not executed then.
  for (const transfer of await readOpenTransfers({ database, chain }, { accountId, address })) {
    const { status } = await operationOutcome(chain, operationOf(transfer), 0)
    if (status !== 'absent') return null
  }
  return lack
}
