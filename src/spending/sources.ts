/** What can be paid from: an owner's assets in an order, each with what it is worth in a currency. */
import { crossRateDown } from '../money/cross-rate.ts'
import { currencyOf } from '../money/currencies.ts'
import { type Asset, assetDecimals, type Stablecoin, stablecoins } from '../money/money.ts'
import type { RateTable } from '../money/rate-table.ts'

/** Where a person's cash lies. */
export const BANK = 'bank'

/** The currencies of cash. */
const cash = ['USD', 'EUR', 'GBP', 'INR'] as const satisfies readonly Asset[]

/** One asset to pay from. @property rate millionths of the currency for its smallest unit, in ten-billionths: never more than the table says. */
export interface Source<Name extends Asset = Asset> {
  readonly place: string
  readonly asset: Name
  /** Null for cash. */
  readonly chain: string | null
  readonly rate: bigint
}

/** Assets as sources, in their order. Those without a rate are left out. */
export function sourcesOf<Name extends Asset>(
  assets: readonly Name[],
  { table, currency, chain }: { table: RateTable; currency: Asset; chain: string },
): readonly Source<Name>[] {
  const target = currencyOf(table, currency)
  return assets.flatMap((asset) => {
    const source = currencyOf(table, asset)
    if (source === undefined || target === undefined) return []
    const rate = crossRateDown(source, target, 0) * 10n ** BigInt(6 - assetDecimals[asset])
    if (rate === 0n) return []
    const at = isStablecoin(asset) ? { place: chain, chain } : { place: BANK, chain: null }
    return [{ ...at, asset, rate }]
  })
}

/** All assets: those that are named first, then what is left of the cash, then what is left of the stablecoins. */
export function allAssets(first: readonly Asset[]): readonly Asset[] {
  return [...new Set<Asset>([...first, ...cash, ...stablecoins])]
}

/** Whether an asset lives on a chain. */
export function isStablecoin(asset: Asset): asset is Stablecoin {
  return stablecoins.some((symbol) => symbol === asset)
}
