/** Finds decided approvals for waiting calls. */
import type { Connection } from '../storage/database.ts'

/**
 * Returns the given approvals that are final: rejected, withdrawn, expired, or approved with the outcome of their call. An
 * approval without an outcome is still running.
 */
export async function findDecidedApprovals(
  { kysely }: Connection,
  { ids, now }: { ids: readonly string[]; now: Date },
): Promise<ReadonlyMap<string, true>> {
  const rows = await kysely
    .selectFrom('approval')
    .select('id')
    .where('id', 'in', ids)
    .where(({ or, and, eb }) =>
      or([
        eb('status', 'in', ['rejected', 'withdrawn']),
        and([eb('status', '=', 'pending'), eb('expires_at', '<=', now)]),
        and([
          eb('status', '=', 'approved'),
          or([eb('answer', 'is not', null), eb('problem', 'is not', null)]),
        ]),
      ]),
    )
    .execute()
  return new Map(rows.map(({ id }) => [id, true] as const))
}
