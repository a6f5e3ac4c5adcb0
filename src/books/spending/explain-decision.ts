/** Reads a decision with every rule that its policy evaluated. */
import { z } from 'zod'
import { type BudgetSpan, budgetSpans, findPeriod, type PeriodUsage } from '../../../policies/budget.ts'
import { type ExplainedRule, explain, explainViolations, ruleResults } from '../../../policies/explain.ts'
import { storedPolicy } from '../../../policies/policy.ts'
import { utcDay } from '../../core/base/clock.ts'
import { firstIdAt } from '../../core/base/ids.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { parseRecordedSpend } from './past-spends.ts'

export const explainedRule = z.strictObject({
  rule: z
    .string()
    .describe('Name of the rule, such as `daily_budget`; `approval`: the owner is asked above it.'),
  limit: z
    .string()
    .nullable()
    .describe('Limit of the policy: USD, a number, a time, or allowed names; `not …`: denied names.'),
  used: z.string().nullable().describe('Amount or count that the period had used before the spend.'),
  requested: z.string().nullable().describe('Value of the spend that the rule compares.'),
  result: z
    .enum(ruleResults)
    .describe('`approved`: the owner let this spend pass; `asked`: the owner was asked.'),
})
explainedRule.register(z.globalRegistry, { id: 'ExplainedRule' })

interface Row {
  readonly at: Date
  readonly key_id: string | null
  readonly verdict: 'allow' | 'deny' | 'insufficient_funds' | 'approval_required'
  readonly facts: unknown
  readonly violations: unknown
  readonly policy_version: number | null
  readonly policy: unknown
}

/** The policy is that of the decision if the key still has it, by its hash. */
const decided: Statement = {
  name: 'explained_decision',
  text: `select d.at, d.key_id, d.verdict, d.facts, d.violations, d.policy_version,
      case when k.policy_hash = d.policy_hash then k.policy end as policy
    from decision d left join access_key k on k.id = d.key_id
    where d.id = $1 and d.account_id = $2`,
}

/** Days before the decision's are their counters; of its own day, the spends before it that did not come back. */
const usageBefore: Statement = {
  name: 'usage_before_decision',
  text: `select p.period, coalesce(sum(u.used_micros), 0)::bigint as used_micros, coalesce(sum(u.count), 0)::int as count
    from unnest($4::text[], $5::text[]) as p (period, since)
    left join (
      select day, used_micros, count from budget_usage where key_id = $2 and day < $6::text::date
      union all
      select $6::text::date, r.usd_micros, 1 from decision d join reservation r on r.decision_id = d.id
      where d.account_id = $1 and d.key_id = $2 and d.id >= $7 and d.id < $3 and r.status <> 'released'
    ) u on u.day >= p.since::date
    group by p.period`,
}

export interface ExplainedDecision {
  readonly policyVersion: number | null
  readonly isComplete: boolean
  readonly rules: readonly ExplainedRule[]
}

/** Explains a decision of an account. @throws Failure `not_found`. */
export async function explainDecision(
  database: Connection,
  { id, accountId }: { id: string; accountId: string },
): Promise<ExplainedDecision> {
  const [row] = await database.call<Row>(decided, [id, accountId])
  if (row === undefined) throw new Failure('not_found', 'There is no such decision.')
  const { spend, approvalId } = parseRecordedSpend(row.facts)
  const outcome = {
    verdict: row.verdict,
    violations: recordedViolations.parse(row.violations),
    isApproved: approvalId !== null,
  }
  const { policy_version: policyVersion, key_id: decidedKey } = row
  if (decidedKey === null || row.policy === null)
    return { policyVersion, isComplete: decidedKey === null, rules: explainViolations(outcome) }
  const usage = await readUsageBefore(database, { id, accountId, keyId: decidedKey, at: row.at })
  return {
    policyVersion,
    isComplete: true,
    rules: explain(storedPolicy.parse(row.policy), spend, usage, outcome),
  }
}

const member = z.string().nullable().optional().catch(undefined)
const recordedViolations = z.array(
  z
    .object({
      rule: z.string(),
      limit: member,
      used: member,
      requested: member,
    })
    .transform(({ rule, limit = null, used = null, requested = null }) => ({ rule, limit, used, requested })),
)

async function readUsageBefore(
  database: Connection,
  { id, accountId, keyId, at }: { id: string; accountId: string; keyId: string; at: Date },
): Promise<PeriodUsage> {
  const rows = await database.call<{ period: string; used_micros: bigint; count: number }>(usageBefore, [
    accountId,
    keyId,
    id,
    [...budgetSpans],
    budgetSpans.map((period) => utcDay(findPeriod(period, at).start)),
    utcDay(at),
    firstIdAt('dec', findPeriod('day', at).start),
  ])
  const usedIn = (period: BudgetSpan) => {
    const row = rows.find((one) => one.period === period)
    return { usedMicros: row?.used_micros ?? 0n, count: row?.count ?? 0 }
  }
  return { day: usedIn('day'), week: usedIn('week'), month: usedIn('month'), life: usedIn('life') }
}
