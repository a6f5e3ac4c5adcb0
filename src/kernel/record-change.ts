/** Changes by callers, written into the journal. */
import type { Change } from '../journal/write.ts'
import type { Connection } from '../storage/database.ts'
import type { Context } from './context.ts'

/** A change by a caller. @property accountId of the account that was changed; the caller's own by default. */
export interface CallersChange extends Pick<Change, 'action' | 'object' | 'before' | 'after'> {
  readonly accountId?: string
  /** `admin` where the caller acts as an administrator, `system` where the gateway itself acts on a caller's account. */
  readonly as?: 'admin' | 'system'
}

/**
 * Writes a change by the caller into the journal, within the call's transaction. To be called last in it.
 * @param connection the transaction, where it is not the context's own.
 */
export async function recordChange(
  { database, journal, principal, now: at }: Pick<Context, 'database' | 'journal' | 'principal' | 'now'>,
  { accountId, as, ...change }: CallersChange,
  connection: Connection = database,
): Promise<void> {
  const own = principal.kind === 'public' ? undefined : principal.account.id
  const account = accountId ?? own
  if (account === undefined) throw new Error(`${change.action}: it is not known whose account was changed`)
  await journal(connection, { ...change, accountId: account, actor: actorOf(principal, as, account), at })
}

function actorOf(
  principal: Context['principal'],
  as: CallersChange['as'],
  accountId: string,
): Change['actor'] {
  if (as === 'system') return { kind: 'system', id: null }
  if (principal.kind === 'key') return { kind: 'key', id: principal.key.id }
  // Somebody who has just proved to be the owner has no session yet.
  return { kind: as ?? 'person', id: principal.kind === 'session' ? principal.account.id : accountId }
}
