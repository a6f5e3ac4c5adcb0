/** The wallet as in spec 2.1: address, modules and balances. */
import { getAddress } from 'viem'
import { usdOfMicros } from '../../policies/usd.ts'
import { Failure } from '../failures/failure.ts'
import { balances } from '../ledger/balances.ts'
import { currencyOf } from '../money/currencies.ts'
import { decimalOf, type Money, type Stablecoin, stablecoins } from '../money/money.ts'
import type { RateTable } from '../money/rate-table.ts'
import { usdMicrosAt } from '../money/usd-value.ts'
import type { Address, Chain, WalletModule } from '../providers/chain.ts'
import type { Rates } from '../providers/rates.ts'
import type { Connection } from '../storage/database.ts'
import { findOwnedWallet } from './store.ts'

/**
 * A wallet's balances as decimal strings: `amount` can be spent, `held` is reserved for pending spends, `usd` is what both are worth, `shortfall`
 * is booked but missing on the chain (omitted when zero).
 */
export interface WalletSummary {
  readonly safeAddress: Address
  readonly modules: readonly WalletModule[]
  readonly balances: readonly {
    token: Stablecoin
    amount: string
    held: string
    usd: string | null
    shortfall?: string
    chain: string
  }[]
}

interface WalletDependencies {
  readonly database: Connection
  readonly chain: Chain
  readonly rates: Rates
  readonly now: Date
}

/** @throws Failure `not_found` where the account has no wallet. */
export async function showWallet(
  { database, chain, rates, now }: WalletDependencies,
  accountId: string,
): Promise<WalletSummary> {
  const wallet = await findOwnedWallet(database, accountId)
  if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
  const [modules, booked, table] = await Promise.all([
    chain.modules(wallet),
    balances(database, accountId),
    // A balance is shown without its worth rather than not at all.
    rates.latest(now).catch(() => null),
  ])
  return {
    safeAddress: getAddress(wallet.address),
    modules,
    balances: stablecoins
      .filter((token) => chain.tokens[token] !== undefined)
      .map((token) => {
        const row = booked.find(({ place, asset }) => place === chain.name && asset === token)
        return {
          token,
          amount: decimalOf({ asset: token, units: row?.available ?? 0n }),
          held: decimalOf({ asset: token, units: row?.held ?? 0n }),
          usd: worthOf(table, { asset: token, units: (row?.available ?? 0n) + (row?.held ?? 0n) }),
          ...(row === undefined || row.frozen === 0n
            ? {}
            : { shortfall: decimalOf({ asset: token, units: row.frozen }) }),
          chain: chain.name,
        }
      }),
  }
}

function worthOf(table: RateTable | null, money: Money): string | null {
  if (table === null || currencyOf(table, money.asset) === undefined) return null
  return usdOfMicros(usdMicrosAt(table, money).usdMicros)
}
