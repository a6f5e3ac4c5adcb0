/** Sandbox: a chain that starts empty is brought up to the ledger. The ledger is the book; the chain is only its custody. */
import { stablecoins } from '../money.ts'
import type { Chain, Mint } from '../providers/chain.ts'
import type { Connection } from '../storage/database.ts'
import { bookedOf, type ReconciledWallet } from './reconcile.ts'
import { allWallets, openTransfersOf, operationOf } from './store.ts'

/**
 * Mints what wallets lack on the chain. A wallet that is being paid from or to meanwhile is left as it is: what the chain has
 * executed and the books have not settled yet is no lack.
 * @returns how many balances were short.
 */
export async function levelChain(parts: { database: Connection; chain: Chain }): Promise<number> {
  const wallets = await allWallets(parts.database)
  const lacks = await Promise.all(wallets.map((wallet) => lackOf(parts, wallet)))
  const mints = lacks.flatMap((lack) => lack ?? [])
  if (mints.length > 0) await parts.chain.mint(mints)
  return mints.length
}

/** What a wallet lacks on the chain, by token; null while what is under way makes that impossible to tell. */
export async function lackOf(
  { database, chain }: { database: Connection; chain: Chain },
  { accountId, address }: ReconciledWallet,
): Promise<Mint[] | null> {
  const booked = await bookedOf(database, chain, accountId)
  const there = await Promise.all(stablecoins.map((token) => chain.balanceOf(token, address)))
  const lack = stablecoins.flatMap((token, index) => {
    const units = (booked.get(token) ?? 0n) - (there[index] ?? 0n)
    return units > 0n ? [{ token, to: address, units }] : []
  })
  if (lack.length === 0) return []
  const again = await bookedOf(database, chain, accountId)
  if (stablecoins.some((token) => booked.get(token) !== again.get(token))) return null
  // Asked after the balances were read: what is not executed now was not then.
  for (const transfer of await openTransfersOf(database, { accountId, address })) {
    const { status } = await chain.outcomeOf(operationOf(transfer), 0)
    if (status !== 'absent') return null
  }
  return lack
}
