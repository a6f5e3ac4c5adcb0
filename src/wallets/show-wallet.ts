/** The wallet as in spec 2.1: address, modules and balances. */
import { getAddress } from 'viem'
import { Failure } from '../failures/failure.ts'
import { balances } from '../ledger/balances.ts'
import { decimalOf, type Stablecoin, stablecoins } from '../money/money.ts'
import type { Address, Chain, WalletModule } from '../providers/chain.ts'
import type { Connection } from '../storage/database.ts'
import { findOwnedWallet } from './store.ts'

/**
 * A wallet's balances as decimal strings: `amount` can be spent, `held` is reserved for pending spends, `shortfall`
 * is booked but missing on the chain (omitted when zero).
 */
export interface WalletSummary {
  readonly safeAddress: Address
  readonly modules: readonly WalletModule[]
  readonly balances: readonly {
    token: Stablecoin
    amount: string
    held: string
    shortfall?: string
    chain: string
  }[]
}

/** @throws Failure `not_found` where the account has no wallet. */
export async function showWallet(
  { database, chain }: { database: Connection; chain: Chain },
  accountId: string,
): Promise<WalletSummary> {
  const wallet = await findOwnedWallet(database, accountId)
  if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
  const [modules, booked] = await Promise.all([chain.modules(wallet), balances(database, accountId)])
  return {
    safeAddress: getAddress(wallet.address),
    modules,
    balances: stablecoins.map((token) => {
      const row = booked.find(({ place, asset }) => place === chain.name && asset === token)
      return {
        token,
        amount: decimalOf({ asset: token, units: row?.available ?? 0n }),
        held: decimalOf({ asset: token, units: row?.held ?? 0n }),
        ...(row === undefined || row.frozen === 0n
          ? {}
          : { shortfall: decimalOf({ asset: token, units: row.frozen }) }),
        chain: chain.name,
      }
    }),
  }
}
