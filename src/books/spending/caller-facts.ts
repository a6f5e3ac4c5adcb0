/** Facts of a caller that change with its spends: usage of its key, and the signers of its account. */
import { budgetSpans, findPeriod, type PeriodUsage } from '../../../policies/budget.ts'
import { formatUsd } from '../../../policies/usd.ts'
import { utcDay } from '../../core/base/clock.ts'
import { firstIdAt } from '../../core/base/ids.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { type CategoryUsage, pickUsage } from './usage.ts'

/** @property address lower case, of an EVM key; null for a passkey. */
interface CallerSigner {
  readonly id: string
  readonly address: string | null
  readonly createdAt: Date
}

/**
 * @property byCategory spends and holds of today. Amounts that a card purchase cleared beyond its approval are in `usage`
 * alone. @property signers passkeys, then EVM keys; newest first.
 */
export interface CallerFacts {
  readonly usage: PeriodUsage
  readonly byCategory: readonly CategoryUsage[]
  readonly signers: readonly CallerSigner[]
}

// One statement: agents read this before their first call and after each denial.
const callerFacts: Statement = {
  name: 'caller_facts',
  text: `select 'period' as part, p.period as name, coalesce(sum(u.used_micros), 0)::bigint as used_micros,
      coalesce(sum(u.count), 0)::int as count, null::text as address, null::timestamptz as created_at
    from unnest($4::text[], $5::text[], $6::text[]) as p (period, since, till)
    left join budget_usage u on u.key_id = $2 and u.day >= p.since::date and u.day < p.till::date
    group by p.period
    union all
    select 'category', d.facts ->> 'category', sum(r.usd_micros)::bigint, count(*)::int, null, null
    from decision d join reservation r on r.decision_id = d.id
    where d.account_id = $1 and d.id >= $3 and d.key_id = $2 and r.day = $7::date and r.status <> 'released'
    group by 2
    union all
    select 'passkey', k.id, 0, 0, null, k.created_at from passkey k where k.account_id = $1
    union all
    select 'signer', s.id, 0, 0, s.address, s.created_at from wallet_signer s where s.account_id = $1`,
}

/** Reads them. @param keyId null for a session, which has no usage. */
export async function readCallerFacts(
  database: Connection,
  { accountId, keyId }: { accountId: string; keyId: string | null },
  now: Date,
): Promise<CallerFacts> {
  const day = utcDay(now)
  const spans = budgetSpans.map((period) => findPeriod(period, now))
  const rows = await database.call<{
    part: string
    name: string
    used_micros: bigint
    count: number
    address: string | null
    created_at: Date | null
  }>(callerFacts, [
    accountId,
    keyId,
    firstIdAt('dec', new Date(`${day}T00:00:00.000Z`)),
    [...budgetSpans],
    spans.map(({ start }) => utcDay(start)),
    spans.map(({ end }) => utcDay(end)),
    day,
  ])
  const pickPart = (part: string) =>
    rows.filter((row) => row.part === part).sort((left, right) => (left.name < right.name ? -1 : 1))
  const listSigners = (part: string) =>
    pickPart(part)
      .reverse()
      .flatMap(({ name: id, address, created_at: createdAt }) =>
        createdAt === null ? [] : [{ id, address, createdAt }],
      )
  return {
    usage: pickUsage(pickPart('period').map(({ name: period, ...used }) => ({ period, ...used }))),
    byCategory: pickPart('category').map(({ name: category, used_micros, count }) => ({
      category,
      used: formatUsd(used_micros),
      count,
    })),
    signers: [...listSigners('passkey'), ...listSigners('signer')],
  }
}
