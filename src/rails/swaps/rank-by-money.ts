/** Prices on several chains, ordered by where the account has the money. */
import { pursePlace } from '../../books/ledger/accounts.ts'
import { type Balance, balances } from '../../books/ledger/balances.ts'
import type { Chains } from '../../providers/chain/chains.ts'
import type { Connection } from '../../storage/database.ts'

/** Longest expected time that money for a purchase may take, in seconds: the seller's price may change meanwhile. */
export const MAX_MOVE_SEC = 60

/** @property chain null: none of ours. @property asset null: one that is unknown. @property units smallest units. */
export interface Price {
  readonly chain: string | null
  readonly asset: string | null
  readonly units: bigint
}

/** @property mayUse checks whether the policies let money of a chain be spent. @property purse that pays beside the wallet, on its chain. */
export interface Means {
  readonly booked: readonly Balance[]
  readonly mayUse: (chain: string) => boolean
  readonly purse: { readonly id: string; readonly chain: string }
}

/** Reads what a payment may be made from; null with one chain only, where there is no choice. */
export async function readMeans(
  { database, chain, chains }: { database: Connection; chain: { name: string }; chains: Pick<Chains, 'all'> },
  { accountId, purseId, mayUse }: { accountId: string; purseId: string; mayUse: (chain: string) => boolean },
): Promise<Means | null> {
  if (chains.all.length === 1) return null
  const booked = await balances(database, accountId)
  return { booked, mayUse, purse: { id: purseId, chain: chain.name } }
}

/** Checks whether a price can be paid from its own chain. */
export function hasMoneyFor({ booked, purse }: Pick<Means, 'booked' | 'purse'>, price: Price): boolean {
  const places = [price.chain, ...(price.chain === purse.chain ? [pursePlace(purse.id)] : [])]
  return booked.some(
    ({ place, asset, available }) =>
      asset === price.asset && available >= price.units && places.includes(place),
  )
}

/** Ranks a price: lower is better. Chains that the policies forbid come last. */
export function rankByMoney(means: Means, price: Price): number {
  const isForbidden = price.chain !== null && !means.mayUse(price.chain)
  return (isForbidden ? 2 : 0) + (hasMoneyFor(means, price) ? 0 : 1)
}
