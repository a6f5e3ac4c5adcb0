/** Funding of card purchases: the owner's assets in order, each at the current rate. */

import { type Coverage, coverageParameters } from '../../books/spending/coverage.ts'
import { allAssets, listSources, type Source, withEscrow } from '../../books/spending/sources.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import type { Connection } from '../../storage/database.ts'
import type { CardWithPolicies, FundingAsset } from './store.ts'

export type Funding = Source<FundingAsset>

/** Names of chains, the default first. */
export function nameChains({
  all,
}: {
  readonly all: readonly { readonly name: string }[]
}): readonly string[] {
  return all.map(({ name }) => name)
}

/**
 * Lists a card's funding assets in the owner's order: each stablecoin first in the escrow of each chain, then in the wallet on each. Skips
 * assets without a rate, and stablecoins of an owner-held wallet on a chain that could not be read.
 */
export function listFundings(
  { priority, isWalletOurs }: Pick<CardWithPolicies, 'priority' | 'isWalletOurs'>,
  {
    table,
    chains,
    coverages,
    spreadBps,
  }: {
    table: RateTable
    chains: readonly string[]
    coverages: readonly Coverage[]
    spreadBps: number
  },
): readonly Funding[] {
  const sources = listSources(priority, { table, currency: 'USD', chains, spreadBps })
  return isWalletOurs
    ? sources
    : withEscrow(sources).filter(
        ({ place, chain }) => place !== chain || coverages.some((coverage) => coverage.place === chain),
      )
}

/**
 * Lists the assets that pay for a clearing: the card's assets in order, then all others. A purchase approved at par is
 * cleared at par, also when a peg was lost since.
 */
export function clearingSources(
  priority: readonly FundingAsset[],
  { table, chains, spreadBps }: { table: RateTable; chains: readonly string[]; spreadBps: number },
): readonly Source[] {
  const par = { ...table, lost: undefined }
  return withEscrow(listSources(allAssets(priority), { table: par, currency: 'USD', chains, spreadBps }))
}

/** Sums the currently available funding in cents, rounded down. */
export async function fundedCents(
  database: Connection,
  {
    accountId,
    isWalletOurs,
    fundings,
    coverages,
  }: {
    accountId: string
    isWalletOurs: boolean
    fundings: readonly Funding[]
    coverages: readonly Coverage[]
  },
): Promise<bigint> {
  const [row] = await database.call<{ micros: bigint }>(
    {
      name: 'card_funded',
      text: `select coalesce(sum(div(f.cap::numeric * f.rate, 10000000000)), 0)::bigint as micros
        from unnest($4::bigint[], card_caps($1, $2, $3, $5, $6, $7, $8, $9, $10, $11, $12)) as f (rate, cap)`,
    },
    [
      accountId,
      fundings.map(({ place }) => place),
      fundings.map(({ asset }) => asset),
      fundings.map(({ rate }) => rate.toString()),
      isWalletOurs,
      ...coverageParameters(coverages),
    ],
  )
  return (row?.micros ?? 0n) / 10_000n
}
