/** Addresses that an owner has blocked as payees. */
import type { Connection } from '../../storage/database.ts'

/** Maximum per account. */
export const MAX_BLOCKED_ADDRESSES = 1000

/**
 * Reads an account's blocked addresses, lower case, in order.
 * @param isLocked locks them until the transaction ends.
 */
export async function readBlockedAddresses(
  database: Connection,
  { accountId, isLocked }: { accountId: string; isLocked: boolean },
): Promise<string[]> {
  if (isLocked)
    await database.kysely
      .selectFrom('account')
      .select('id')
      .where('id', '=', accountId)
      .forNoKeyUpdate()
      .execute()
  const rows = await database.kysely
    .selectFrom('blocked_address')
    .select('address')
    .where('account_id', '=', accountId)
    .orderBy('address')
    .execute()
  return rows.map(({ address }) => address)
}

/** Adds and removes addresses, lower case; applies from the next transfer. */
export async function changeBlockedAddresses(
  database: Connection,
  {
    accountId,
    added,
    removed,
    at,
  }: { accountId: string; added: readonly string[]; removed: readonly string[]; at: Date },
): Promise<void> {
  if (removed.length > 0)
    await database.kysely
      .deleteFrom('blocked_address')
      .where('account_id', '=', accountId)
      .where('address', 'in', removed)
      .execute()
  if (added.length > 0)
    await database.kysely
      .insertInto('blocked_address')
      .values(added.map((address) => ({ account_id: accountId, address, created_at: at })))
      .execute()
}
