/** Funding of card purchases: the owner's assets in order, each at the current rate. */

import { type Coverage, coverageParameters } from '../../books/spending/coverage.ts'
import { allAssets, listSources, type Source, withEscrow } from '../../books/spending/sources.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import type { Connection } from '../../storage/database.ts'
import type { CardWithPolicies, FundingAsset } from './store.ts'

export type Funding = Source<FundingAsset>

/**
 * Lists a card's funding assets in the owner's order: each stablecoin first in the escrow, then in the wallet. Skips
 * assets without a rate, and stablecoins of an owner-held wallet when the chain could not be read.
 */
export function listFundings(
  { priority, isWalletOurs }: Pick<CardWithPolicies, 'priority' | 'isWalletOurs'>,
  {
    table,
    chain,
    coverage,
    spreadBps,
  }: { table: RateTable; chain: string; coverage: Coverage | null; spreadBps: number },
): readonly Funding[] {
  const sources = listSources(priority, { table, currency: 'USD', chain, spreadBps })
  return isWalletOurs
    ? sources
    : withEscrow(sources).filter(({ place }) => coverage !== null || place !== chain)
}

/**
 * Lists the assets that pay for a clearing: the card's assets in order, then all others. A purchase approved at par is
 * cleared at par, also when a peg was lost since.
 */
export function clearingSources(
  priority: readonly FundingAsset[],
  { table, chain, spreadBps }: { table: RateTable; chain: string; spreadBps: number },
): readonly Source[] {
  const par = { ...table, lost: undefined }
  return withEscrow(listSources(allAssets(priority), { table: par, currency: 'USD', chain, spreadBps }))
}

/** Sums the currently available funding in cents, rounded down. */
export async function fundedCents(
  database: Connection,
  {
    accountId,
    fundings,
    coverage,
  }: { accountId: string; fundings: readonly Funding[]; coverage: Coverage | null },
): Promise<bigint> {
  const [row] = await database.call<{ micros: bigint }>(
    {
      name: 'card_funded',
      text: `select coalesce(sum(div(f.cap::numeric * f.rate, 10000000000)), 0)::bigint as micros
        from unnest($4::bigint[], card_caps($1, $2, $3, $5::bigint - card_open_micros($1, $7, $8, $9, $6), $8, $9, $10, $11)) as f (rate, cap)`,
    },
    [
      accountId,
      fundings.map(({ place }) => place),
      fundings.map(({ asset }) => asset),
      fundings.map(({ rate }) => rate.toString()),
      ...coverageParameters(coverage),
    ],
  )
  return (row?.micros ?? 0n) / 10_000n
}
