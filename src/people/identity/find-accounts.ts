/** Accounts as an administrator searches them. */
import { sql } from 'kysely'
import { z } from 'zod'
import { cutPage, type Page } from '../../core/base/page.ts'
import type { Connection } from '../../storage/database.ts'

export const foundAccount = z.strictObject({
  id: z.string().describe('`acct_…`'),
  displayName: z.string().describe('Display name of the person.'),
  role: z.enum(['user', 'admin']).describe('Stored role; in production only the founder account is `admin`.'),
  guest: z.boolean().describe('True for a demo account.'),
  kycLevel: z.string().describe('Level of identity verification.'),
  locked: z.boolean().describe('True if the account is locked.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
})
foundAccount.register(z.globalRegistry, { id: 'FoundAccount' })

/** Finds accounts, newest first. @param search id, or start of the display name in any letter case; null: all. */
export async function findAccounts(
  { kysely }: Connection,
  { search, page }: { search: string | null; page: Page },
): Promise<{ accounts: z.input<typeof foundAccount>[]; nextCursor: string | null }> {
  const query = kysely
    .selectFrom('account')
    .select(['id', 'display_name', 'role', 'guest', 'kyc_level', 'status', 'created_at'])
  const start = `${(search ?? '').toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`
  const matching =
    search === null
      ? query
      : query.where(({ or, eb }) =>
          or([eb('id', '=', search), sql<boolean>`lower(display_name) like ${start}`]),
        )
  const found = await (page.after === null ? matching : matching.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  const { rows, nextCursor } = cutPage(found, page)
  const accounts = rows.map((row) => ({
    id: row.id,
    displayName: row.display_name,
    role: row.role,
    guest: row.guest,
    kycLevel: row.kyc_level,
    locked: row.status === 'locked',
    createdAt: row.created_at.toISOString(),
  }))
  return { accounts, nextCursor }
}
