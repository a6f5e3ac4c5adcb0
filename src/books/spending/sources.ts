/** Funding sources: an owner's assets in payment order, each with its value in a currency. */

import { crossRateDown } from '../../core/money/cross-rate.ts'
import { findCurrency } from '../../core/money/currencies.ts'
import {
  type Asset,
  assetDecimals,
  type Stablecoin,
  stablecoinCurrency,
  stablecoins,
} from '../../core/money/money.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import { escrowPlace } from '../ledger/accounts.ts'

/** Place of an owner's cash. */
export const BANK = 'bank'

const cash = ['USD', 'EUR', 'GBP', 'INR'] as const satisfies readonly Asset[]

/** A funding source. @property rate millionths of the currency per smallest unit, times ten billion; rounded down. */
export interface Source<Name extends Asset = Asset> {
  readonly place: string
  readonly asset: Name
  /** Null for cash. */
  readonly chain: string | null
  readonly rate: bigint
}

/**
 * Converts assets to sources in order: a stablecoin on each chain, in their order. Assets without a rate are skipped.
 * @param spreadBps basis points less than the table for an asset of another currency.
 */
export function listSources<Name extends Asset>(
  assets: readonly Name[],
  {
    table,
    currency,
    chains,
    spreadBps,
  }: { table: RateTable; currency: Asset; chains: readonly string[]; spreadBps: number },
): readonly Source<Name>[] {
  const target = findCurrency(table, currency)
  return assets.flatMap((asset): readonly Source<Name>[] => {
    const source = findCurrency(table, asset)
    if (source === undefined || target === undefined) return []
    const lessBps = toNational(asset) === toNational(currency) ? 0 : spreadBps
    const rate = crossRateDown(source, target, lessBps) * 10n ** BigInt(6 - assetDecimals[asset])
    if (rate === 0n) return []
    if (!isStablecoin(asset)) return [{ place: BANK, chain: null, asset, rate }]
    return chains.map((chain) => ({ place: chain, chain, asset, rate }))
  })
}

/**
 * Adds the account's escrows before the sources of the same asset, of every chain: what an owner cannot take away goes first, and a
 * purchase that has waited for a pull takes what the pull has brought.
 */
export function withEscrow<Name extends Asset>(sources: readonly Source<Name>[]): readonly Source<Name>[] {
  return [...new Set(sources.map(({ asset }) => asset))].flatMap((asset) => {
    const own = sources.filter((source) => source.asset === asset)
    const escrows = own.flatMap((source) =>
      source.chain === null ? [] : [{ ...source, place: escrowPlace(source.chain) }],
    )
    return [...escrows, ...own]
  })
}

/** Currency that an asset is worth: `USD` for USDC. */
function toNational(asset: Asset): Asset {
  return isStablecoin(asset) ? stablecoinCurrency[asset] : asset
}

/** Lists all assets: the named ones first, then the remaining cash, then the remaining stablecoins. */
export function allAssets(first: readonly Asset[]): readonly Asset[] {
  return [...new Set<Asset>([...first, ...cash, ...stablecoins])]
}

export function isStablecoin(asset: Asset): asset is Stablecoin {
  return stablecoins.some((symbol) => symbol === asset)
}
