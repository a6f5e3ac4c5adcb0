/** Identity verification level of an account. */
import type { Connection } from '../../storage/database.ts'

/** Raises an account's level, never lowers it, and stores its country if known. */
export async function raiseLevel(
  database: Connection,
  { accountId, level, country }: { accountId: string; level: 'basic' | 'full'; country: string | null },
): Promise<void> {
  const lower = level === 'full' ? ['none', 'basic'] : ['none']
  await database.kysely
    .updateTable('account')
    .set({ kyc_level: level })
    .where('id', '=', accountId)
    .where('kyc_level', 'in', lower)
    .execute()
  if (country === null) return
  await database.kysely.updateTable('account').set({ country }).where('id', '=', accountId).execute()
}

/** Resets an account's level to `none`. */
export async function deleteApplicationLevel(database: Connection, accountId: string): Promise<void> {
  await database.kysely
    .updateTable('account')
    .set({ kyc_level: 'none' })
    .where('id', '=', accountId)
    .execute()
}

/** Raises an account to the highest level it was approved for. */
export async function restoreLevel(database: Connection, accountId: string): Promise<void> {
  const approved = await database.kysely
    .selectFrom('kyc_application')
    .select('level')
    .where('account_id', '=', accountId)
    .where('status', '=', 'approved')
    .execute()
  for (const { level } of approved) await raiseLevel(database, { accountId, level, country: null })
}
