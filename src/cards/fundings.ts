/** What a card is paid from: its owner's assets in their order, each at the rate of the moment. */
import { crossRateDown } from '../cross-rate.ts'
import { currencyOf } from '../currencies.ts'
import { balances } from '../ledger/balances.ts'
import { assetDecimals } from '../money.ts'
import type { RateTable } from '../rate-table.ts'
import type { Connection } from '../storage/database.ts'
import type { FundingAsset, JudgedCard } from './store.ts'

/** Where a person's cash lies. */
export const BANK = 'bank'

/** One asset to pay from. @property rate millionths of a USD for its smallest unit, in ten-billionths: never more than the table says. */
export interface Funding {
  readonly place: string
  readonly asset: FundingAsset
  readonly chain: string | null
  readonly rate: bigint
}

/**
 * A card's assets in its owner's order. Stablecoins count where the gateway can move them, and assets without a rate do not.
 */
export function fundingsOf(
  { priority, isWalletOurs }: Pick<JudgedCard, 'priority' | 'isWalletOurs'>,
  table: RateTable,
  chain: string,
): readonly Funding[] {
  const dollar = currencyOf(table, 'USD')
  return priority.flatMap((asset) => {
    const currency = currencyOf(table, asset)
    if (currency === undefined || dollar === undefined || (asset !== 'USD' && !isWalletOurs)) return []
    const microsPerUnit = 10n ** BigInt(6 - assetDecimals[asset])
    const rate = crossRateDown(currency, dollar, 0) * microsPerUnit
    const at = asset === 'USD' ? { place: BANK, chain: null } : { place: chain, chain }
    return [{ ...at, asset, rate }]
  })
}

/** What could be paid now, in cents, rounded down. */
export async function fundedCents(
  database: Connection,
  { accountId, fundings }: { accountId: string; fundings: readonly Funding[] },
): Promise<bigint> {
  const owned = await balances(database, accountId)
  const micros = fundings.map(({ place, asset, rate }) => {
    const row = owned.find((each) => each.place === place && each.asset === asset)
    return ((row?.available ?? 0n) * rate) / 10n ** 10n
  })
  return micros.reduce((sum, each) => sum + each, 0n) / 10_000n
}
