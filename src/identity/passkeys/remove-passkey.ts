/** Removing a passkey, but never the last way into an account. */
import { Failure } from '../../failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import { lockAccountRow } from '../locks.ts'
import { countPasskeys } from './passkeys.ts'

/** Removes a passkey of an account. @throws Failure `not_found`, `conflict` where nothing else signs the account in. */
export async function removePasskey(
  database: Connection,
  { accountId, id }: { accountId: string; id: string },
): Promise<void> {
  // Of two removals at once each would leave the other's passkey.
  await lockAccountRow(database, accountId)
  const own = await database.kysely
    .selectFrom('passkey')
    .select('id')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (own === undefined)
    throw new Failure('not_found', `There is no passkey ${id}.`, {
      hint: 'GET /api/security/passkeys lists yours.',
    })
  if ((await countPasskeys(database, accountId)) === 1 && !(await hasAnotherWayIn(database, accountId)))
    throw new Failure('conflict', 'This passkey is the only way into the account.', {
      hint: 'Add another passkey first: POST /api/auth/webauthn {"action":"register"} on this session.',
    })
  await database.kysely
    .deleteFrom('passkey')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .execute()
}

async function hasAnotherWayIn(database: Connection, accountId: string): Promise<boolean> {
  const found = await database.kysely
    .selectFrom('login_destination')
    .select('account_id')
    .where('account_id', '=', accountId)
    .unionAll((query) =>
      query.selectFrom('federated_identity').select('account_id').where('account_id', '=', accountId),
    )
    .limit(1)
    .execute()
  return found.length > 0
}
