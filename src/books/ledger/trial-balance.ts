/** Consistency check of the books, for the reconcile job and for tests. Reads every posting; not for requests. */
import { sql } from 'kysely'
import type { Connection } from '../../storage/database.ts'

/** Totals of one asset. @property total sum of owner and system balances; must be zero. */
export interface AssetTotal {
  readonly asset: string
  readonly owners: bigint
  readonly systems: bigint
  readonly total: bigint
}

/** An owner's account whose materialized balance differs from the sum of its postings. */
export interface Drift {
  readonly account: string
  readonly asset: string
  readonly materialized: bigint
  readonly posted: bigint
}

/** Result of the check. Sound books have zero totals and no drift. */
export interface TrialBalance {
  readonly totals: readonly AssetTotal[]
  readonly drifts: readonly Drift[]
  readonly balanced: boolean
}

const posted = sql`
  select account, asset, sum(units) as units from (
    select destination as account, asset, units from posting
    union all
    select source, asset, -units from posting
  ) movement group by account, asset`

/** Sums the books. Each of its two queries sees its own snapshot; run it in a transaction to share one. */
export async function trialBalance(connection: Connection): Promise<TrialBalance> {
  const totals = await sql<AssetTotal>`
    select asset, sum(owners)::bigint as owners, sum(systems)::bigint as systems, sum(owners + systems)::bigint as total
    from (
      select asset, units as owners, 0 as systems from balance
      union all
      select asset, 0, units from (${posted}) p where left(account, 5) <> 'acct_'
    ) part
    group by asset order by asset`.execute(connection.kysely)
  const drifts = await sql<Drift>`
    select account, asset, coalesce(b.units, 0)::bigint as materialized, coalesce(p.units, 0)::bigint as posted
    from balance b full join (select * from (${posted}) s where left(account, 5) = 'acct_') p using (account, asset)
    where coalesce(b.units, 0) <> coalesce(p.units, 0)
    order by account, asset`.execute(connection.kysely)
  const balanced = drifts.rows.length === 0 && totals.rows.every(({ total }) => total === 0n)
  return { totals: totals.rows, drifts: drifts.rows, balanced }
}
