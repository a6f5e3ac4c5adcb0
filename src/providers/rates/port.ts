/** Foreign exchange reference rates. */
import { Failure } from '../../core/failures/failure.ts'
import {
  type Asset,
  type Money,
  type Stablecoin,
  stablecoinCurrency,
  stablecoins,
} from '../../core/money/money.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import { type UsdValue, usdMicrosAt } from '../../core/money/usd-value.ts'
import type { Pegs } from '../pegs/port.ts'

export interface Rates {
  /** Reads the newest table. @throws Failure `rates_unavailable` when there is none or it is too old for sales. */
  latest(now: Date): Promise<RateTable>
  /**
   * Reads which stablecoins have lost their peg; absent: none is watched.
   * @throws Failure `rates_unavailable` when a watched price cannot be read.
   */
  findLost?(now: Date): Promise<ReadonlySet<Stablecoin>>
  /** Sandbox only: sets the price of a stablecoin in millionths of its currency. Absent otherwise. */
  readonly setPrice?: NonNullable<Pegs['setPrice']>
}

/** Keeps the newest publication over restarts. */
export interface KeptRates {
  load(): Promise<RateTable | null>
  save(table: RateTable, at: Date): Promise<void>
}

/**
 * Values money in US dollars. Dollars and their stablecoins need no table. @throws Failure `rates_unavailable` for
 * other assets when there is no table, and for stablecoins that have lost their peg or whose price cannot be read.
 */
export async function valueInUsd(rates: Rates, money: Money, now: Date): Promise<UsdValue> {
  const isStablecoin = stablecoins.some((token) => token === money.asset)
  const lost = isStablecoin ? await rates.findLost?.(now) : undefined
  const table = dollarAssets.has(money.asset) ? dollars(now) : await rates.latest(now)
  return usdMicrosAt({ ...table, lost }, money)
}

/** Watches the pegs of stablecoins; null watches none. One whose price cannot be read counts as lost. */
export function withPegs(rates: Rates, pegs: Pegs | null): Rates {
  if (pegs === null) return rates
  return {
    ...(pegs.setPrice === null ? {} : { setPrice: pegs.setPrice }),
    latest: async (now) => ({ ...(await rates.latest(now)), lost: await lostOrAll(pegs, now) }),
    findLost: (now) => pegs.findLost(now),
  }
}

async function lostOrAll(pegs: Pick<Pegs, 'findLost'>, now: Date): Promise<ReadonlySet<Stablecoin>> {
  return pegs.findLost(now).catch((error: unknown) => {
    if (error instanceof Failure && error.code === 'rates_unavailable') return new Set(stablecoins)
    throw error
  })
}

/** Reads the newest table, or without one a table of dollars alone, which prices nothing else. */
export async function latestOrDollars(rates: Rates, now: Date): Promise<RateTable> {
  try {
    return await rates.latest(now)
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'rates_unavailable') throw error
    const { findLost } = rates
    return { ...dollars(now), lost: findLost === undefined ? undefined : await lostOrAll({ findLost }, now) }
  }
}

const dollarAssets: ReadonlySet<Asset> = new Set<Asset>([
  'USD',
  ...stablecoins.filter((token) => stablecoinCurrency[token] === 'USD'),
])

/** Rates are ratios: with one currency, any number per euro says the same. */
function dollars(now: Date): RateTable {
  return { source: 'none: dollars count as dollars', asOf: now, perEuro: new Map([['USD', '1']]) }
}
