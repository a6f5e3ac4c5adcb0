/** Which of the approvals that calls wait for have come to an end. */
import type { Connection } from '../storage/database.ts'

/**
 * Those of the given approvals that nothing will change any more: rejected, expired, or approved with the answer of their
 * call. Approved is not enough: the call is under way then.
 */
export async function waitForDecidedApprovals(
  { kysely }: Connection,
  { ids, now }: { ids: readonly string[]; now: Date },
): Promise<ReadonlyMap<string, true>> {
  const rows = await kysely
    .selectFrom('approval')
    .select('id')
    .where('id', 'in', ids)
    .where(({ or, and, eb }) =>
      or([
        eb('status', '=', 'rejected'),
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
