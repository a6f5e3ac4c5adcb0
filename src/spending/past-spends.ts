/** The decisions on a key's spends as policies read them. */
import { z } from 'zod'
import { spendCategories } from '../../policies/policy.ts'
import type { PastSpend } from '../../policies/replay.ts'
import type { Connection } from '../storage/database.ts'

/** What a decision recorded of its spend. Older ones lack what was not judged then. */
const recorded = z.looseObject({
  category: z.enum(spendCategories),
  amount: z.string(),
  asset: z.string(),
  usdMicros: z.string().regex(/^\d+$/).transform(BigInt).nullable().catch(null),
  chain: z.string().nullable().default(null),
  counterparty: z.string().nullable().default(null),
  mcc: z.string().nullable().default(null),
  symbol: z.string().nullable().default(null),
})

/** A past spend and what it was. */
export interface RecordedSpend extends PastSpend {
  readonly operation: string
  readonly amount: string
}

/** A key's newest decisions, oldest first. @param limit how many at most. */
export async function pastSpends(
  database: Connection,
  { accountId, keyId, limit }: { accountId: string; keyId: string; limit: number },
): Promise<RecordedSpend[]> {
  const rows = await database.kysely
    .selectFrom('decision')
    .leftJoin('reservation', 'reservation.decision_id', 'decision.id')
    .select([
      'decision.id',
      'decision.at',
      'decision.operation',
      'decision.facts',
      'decision.verdict',
      'reservation.status',
    ])
    .where('decision.account_id', '=', accountId)
    .where('decision.key_id', '=', keyId)
    .orderBy('decision.id', 'desc')
    .limit(limit)
    .execute()
  return rows.reverse().map(({ id, at, operation, facts, verdict, status }) => {
    const { amount, ...spend } = recorded.parse(facts)
    return { id, at, operation, amount, spend, was: verdict, isReturned: status === 'released' }
  })
}
