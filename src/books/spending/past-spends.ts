/** Past spend decisions of a key, in the form that policies evaluate. */
import { z } from 'zod'
import { spendCategories } from '../../../policies/policy.ts'
import type { PastSpend } from '../../../policies/replay.ts'
import type { Connection } from '../../storage/database.ts'

/** Recorded facts of a spend. Older records lack members that were not evaluated then. */
const recorded = z.looseObject({
  category: z.enum(spendCategories),
  amount: z.string(),
  asset: z.string(),
  usdMicros: z.string().regex(/^\d+$/).transform(BigInt).nullable().catch(null),
  chain: z.string().nullable().default(null),
  counterparty: z.string().nullable().default(null),
  mcc: z.string().nullable().default(null),
  symbol: z.string().nullable().default(null),
  seller: z
    .object({
      origin: z.string(),
      payTo: z.string(),
      price: z.string().regex(/^\d+$/),
      knownPayees: z.array(z.string()),
      knownPrice: z.string().regex(/^\d+$/).nullable(),
      outcomes: z.string().nullable().default(null),
    })
    .optional(),
  approvalId: z.string().nullable().default(null),
})

const text = z.string().nullable()

/** A violation outside the key's policy. */
const beside = z.object({
  rule: z.enum(['paused', 'owner_budget', 'aml_screening']),
  limit: text,
  used: text,
  requested: text,
  remaining: text,
  resetsAt: text,
})

/** Reads the facts of a recorded spend. @throws when they are not those of a spend. */
export function parseRecordedSpend(facts: unknown) {
  const { amount, approvalId, seller, ...spend } = recorded.parse(facts)
  return { amount, approvalId, spend: seller === undefined ? spend : { ...spend, seller } }
}

export interface RecordedSpend extends PastSpend {
  readonly operation: string
  readonly amount: string
}

/** Reads a key's newest decisions, oldest first. @param limit maximum number of decisions. */
export async function pastSpends(
  database: Connection,
  { accountId, keyId, limit }: { accountId: string; keyId: string; limit: number },
): Promise<RecordedSpend[]> {
  const rows = await database.kysely
    .selectFrom('decision')
    .leftJoin('reservation', 'reservation.decision_id', 'decision.id')
    .leftJoin('approval', 'approval.decision_id', 'decision.id')
    .select([
      'decision.id',
      'decision.at',
      'decision.operation',
      'decision.facts',
      'decision.verdict',
      'decision.violations',
      'reservation.status',
    ])
    .where('decision.account_id', '=', accountId)
    .where('decision.key_id', '=', keyId)
    // An approved spend has a second decision of its own, so the one that required the approval is skipped.
    .where((where) =>
      where.or([where('approval.status', 'is', null), where('approval.status', '!=', 'approved')]),
    )
    .orderBy('decision.id', 'desc')
    .limit(limit)
    .execute()
  return rows.reverse().map(({ id, at, operation, facts, verdict, violations, status }) => {
    const { amount, approvalId, spend } = parseRecordedSpend(facts)
    const found = z.array(z.looseObject({ rule: z.string() })).parse(violations)
    return {
      id,
      at,
      operation,
      amount,
      spend,
      was: verdict,
      isReturned: status === 'released',
      isApproved: approvalId !== null,
      ...(verdict === 'allow' && found.length > 0 ? { overruled: found.map(({ rule }) => rule) } : {}),
      beside: verdict === 'allow' ? [] : found.flatMap((one) => beside.safeParse(one).data ?? []),
    }
  })
}
