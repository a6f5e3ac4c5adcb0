/** The wallet as in spec 2.1: address, modules and balances. */
import { getAddress } from 'viem'
import { formatUsd } from '../../../policies/usd.ts'
import { escrowPlace } from '../../books/ledger/accounts.ts'
import { balances } from '../../books/ledger/balances.ts'
import { timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'
import { isChainName } from '../../core/money/chains.ts'
import { type Money, type Stablecoin, stablecoins, toDecimal } from '../../core/money/money.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import { worthInMicros } from '../../core/money/usd-value.ts'
import type { Chains } from '../../providers/chain/chains.ts'
import type { Address, Wallet, WalletModule } from '../../providers/chain/port.ts'
import { latestOrDollars, type Rates } from '../../providers/rates/port.ts'
import type { Connection } from '../../storage/database.ts'
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
  /** Money in the escrow of cards, held or not. */
  readonly escrow: readonly { asset: Stablecoin; amount: string; usd: string | null }[]
}

interface WalletDependencies {
  readonly database: Connection
  readonly chains: Chains
  readonly rates: Rates
  readonly now: Date
}

/** How long the other chains' modules are waited for once one chain has answered. */
const OTHERS_MS = 1_000

/** @throws Failure `not_found` where the account has no wallet; `provider_unavailable` when no chain answers. */
export async function showWallet(
  { database, chains, rates, now }: WalletDependencies,
  accountId: string,
): Promise<WalletSummary> {
  const wallet = await findOwnedWallet(database, accountId)
  if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
  const [modules, booked, table] = await Promise.all([
    readModules(chains, wallet),
    balances(database, accountId),
    latestOrDollars(rates, now),
  ])
  return {
    safeAddress: getAddress(wallet.address),
    modules,
    balances: listPositions(chains, booked).map(({ chain, token }) => {
      const row = booked.find(({ place, asset }) => place === chain && asset === token)
      return {
        token,
        amount: toDecimal({ asset: token, units: row?.available ?? 0n }),
        held: toDecimal({ asset: token, units: row?.held ?? 0n }),
        usd: formatWorth(table, { asset: token, units: (row?.available ?? 0n) + (row?.held ?? 0n) }),
        ...(row === undefined || row.frozen === 0n
          ? {}
          : { shortfall: toDecimal({ asset: token, units: row.frozen }) }),
        chain,
      }
    }),
    escrow: stablecoins.flatMap((asset) => {
      const rows = booked.filter((row) => row.asset === asset && row.place.startsWith(escrowPlace('')))
      const units = rows.reduce((sum, { available, held }) => sum + available + held, 0n)
      const money = { asset, units }
      return units === 0n ? [] : [{ asset, amount: toDecimal(money), usd: formatWorth(table, money) }]
    }),
  }
}

/**
 * Lists every token of the chains that work, and after them the money on a chain that does not answer or that the
 * deployment has left: it is still the owner's.
 */
function listPositions(
  { all }: Chains,
  booked: Awaited<ReturnType<typeof balances>>,
): readonly { chain: string; token: Stablecoin }[] {
  const elsewhere = booked.flatMap(({ place, asset, available, held, frozen }) => {
    const token = stablecoins.find((symbol) => symbol === asset)
    const isShown = isChainName(place) && !all.some(({ name }) => name === place)
    return isShown && token !== undefined && available + held + frozen > 0n ? [{ chain: place, token }] : []
  })
  const here = all.flatMap(({ name, tokens }) =>
    stablecoins.flatMap((token) => (tokens[token] === undefined ? [] : [{ chain: name, token }])),
  )
  return [...here, ...elsewhere]
}

/** Reads the modules on every chain. A chain that does not answer is left out, unless none does. */
async function readModules({ all }: Chains, wallet: Wallet): Promise<readonly WalletModule[]> {
  const [first, ...others] = all.map((chain) => chain.modules(wallet))
  if (first === undefined || others.length === 0) return (await first) ?? []
  const readings = [first, ...others]
  const answered = Promise.any(readings)
  const none = answered.then(
    () => [],
    () => first,
  )
  const late = none.then((empty) => timers.sleep(OTHERS_MS, { isIdle: true }).then(() => empty))
  const read = await Promise.all(readings.map((reading) => Promise.race([reading.catch(() => none), late])))
  return read.flat()
}

/** Worth in USD; null without a rate. */
export function formatWorth(table: RateTable, money: Money): string | null {
  const micros = worthInMicros(table, money)
  return micros === null ? null : formatUsd(micros)
}
