/**
 * The owner's cap: the maximum that all keys of an account may spend together per UTC day. The spend function reads
 * it under its lock.
 */
import { nextUtcDay, utcDay } from '../base/clock.ts'
import type { Connection } from '../storage/database.ts'

/** The cap and its usage today, in millionths of a USD. @property maxMicros null: no cap. */
export interface OwnerCap {
  readonly maxMicros: bigint | null
  readonly usedMicros: bigint
  readonly resetsAt: Date
}

/** Reads an account's cap. @param isLocked locks the cap until the transaction ends. */
export async function readOwnerCap(
  database: Connection,
  { accountId, isLocked, now }: { accountId: string; isLocked: boolean; now: Date },
): Promise<OwnerCap> {
  const query = database.kysely
    .selectFrom('account')
    .select('agent_daily_max_micros as maxMicros')
    .where('id', '=', accountId)
  const { maxMicros } = await (isLocked ? query.forNoKeyUpdate() : query).executeTakeFirstOrThrow()
  const rows = await database.kysely
    .selectFrom('budget_usage')
    .innerJoin('access_key', 'access_key.id', 'budget_usage.key_id')
    .select('budget_usage.used_micros')
    .where('access_key.account_id', '=', accountId)
    .where('budget_usage.day', '=', utcDay(now))
    .execute()
  const usedMicros = rows.reduce((sum, { used_micros }) => sum + used_micros, 0n)
  return { maxMicros, usedMicros, resetsAt: nextUtcDay(now) }
}

/** Sets an account's cap; it applies from the next spend. */
export async function setOwnerCap(
  database: Connection,
  { accountId, maxMicros }: { accountId: string; maxMicros: bigint | null },
): Promise<void> {
  await database.kysely
    .updateTable('account')
    .set({ agent_daily_max_micros: maxMicros })
    .where('id', '=', accountId)
    .execute()
}
