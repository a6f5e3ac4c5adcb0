/** Removes a passkey, unless it is the account's last sign-in method. */
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection } from '../../../storage/database.ts'
import { lockAccountRow } from '../locks.ts'
import { countPasskeys } from './passkeys.ts'

/** @throws Failure `not_found`, `conflict` when the account has no other sign-in method. */
export async function removePasskey(
  database: Connection,
  { accountId, id }: { accountId: string; id: string },
): Promise<void> {
  // Serializes concurrent removals, which could otherwise delete all passkeys.
  await lockAccountRow(database, accountId)
  const own = await database.kysely
    .selectFrom('passkey')
    .select('id')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (own === undefined)
    throw new Failure('not_found', `No passkey has the id ${id}.`, {
      hint: 'GET /api/security/passkeys lists yours.',
    })
  if ((await countPasskeys(database, accountId)) === 1 && !(await hasOtherSignInMethod(database, accountId)))
    throw new Failure('conflict', 'This passkey is the only sign-in method of the account.', {
      hint: 'Add another passkey first: POST /api/auth/webauthn {"action":"register"} in this session.',
    })
  await database.kysely
    .deleteFrom('passkey')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .execute()
}

async function hasOtherSignInMethod(database: Connection, accountId: string): Promise<boolean> {
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
