/** Sandbox: a chain that starts empty is brought up to the ledger. The ledger is the book; the chain is only its custody. */
import { operationOutcome } from '../../evidence/operation-outcome.ts'
import { stablecoins } from '../../money/money.ts'
import type { Address, Chain, Mint } from '../../providers/chain.ts'
import type { Connection } from '../../storage/database.ts'
import { allWallets, openTransfersOf, operationOf } from '../store.ts'
import { bookedOf, type ReconciledWallet } from './booked-balances.ts'

/**
 * Mints what wallets lack on the chain. A wallet that is being paid from or to meanwhile is left as it is: what the chain has
 * executed and the books have not settled yet is no lack.
 * @param parts the chain is asked everything at once, the database one thing after the other: it may be one transaction of it.
 * @returns how many balances were short.
 */
export async function levelChain(parts: { database: Connection; chain: Chain }): Promise<number> {
  const { database, chain } = parts
  const wallets: (ReconciledWallet & { booked: Booked })[] = []
  for (const wallet of await allWallets(database))
    wallets.push({ ...wallet, booked: await bookedOf(database, chain, wallet.accountId) })
  const there = await Promise.all(wallets.map(({ address }) => balancesOn(chain, address)))
  const mints: Mint[] = []
  for (const [index, { booked, ...wallet }] of wallets.entries())
    mints.push(...((await lackBetween(parts, wallet, { booked, there: there[index] ?? [] })) ?? []))
  if (mints.length > 0) await chain.mint(mints)
  return mints.length
}

/** What a wallet lacks on the chain, by token; null while what is under way makes that impossible to tell. */
export async function missingOnChain(
  parts: { database: Connection; chain: Chain },
  wallet: ReconciledWallet,
): Promise<Mint[] | null> {
  const { database, chain } = parts
  const booked = await bookedOf(database, chain, wallet.accountId)
  return lackBetween(parts, wallet, { booked, there: await balancesOn(chain, wallet.address) })
}

type Booked = Awaited<ReturnType<typeof bookedOf>>

/** What a wallet has on the chain, in the order of the stablecoins. */
function balancesOn(chain: Chain, address: Address): Promise<readonly bigint[]> {
  return Promise.all(stablecoins.map((token) => chain.balanceOf(token, address)))
}

/** @param booked read before `there`. */
async function lackBetween(
  { database, chain }: { database: Connection; chain: Chain },
  { accountId, address }: ReconciledWallet,
  { booked, there }: { booked: Booked; there: readonly bigint[] },
): Promise<Mint[] | null> {
  const lack = stablecoins.flatMap((token, index) => {
    const units = (booked.get(token) ?? 0n) - (there[index] ?? 0n)
    return units > 0n ? [{ token, to: address, units }] : []
  })
  if (lack.length === 0) return []
  const again = await bookedOf(database, chain, accountId)
  if (stablecoins.some((token) => booked.get(token) !== again.get(token))) return null
  // Asked after the balances were read: what is not executed now was not then.
  for (const transfer of await openTransfersOf(database, { accountId, address })) {
    const { status } = await operationOutcome(chain, operationOf(transfer), 0)
    if (status !== 'absent') return null
  }
  return lack
}
