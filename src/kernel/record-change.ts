/** Changes by callers, written into the journal. */
import type { Change } from '../journal/write.ts'
import type { Connection } from '../storage/database.ts'
import type { Context } from './context.ts'
import { requireStanding } from './standing.ts'

/** Changes that may end what their caller stands on. */
const endsStanding: ReadonlySet<string> = new Set(['account.locked', 'account.unlocked', 'account.recovered'])

/** A change by a caller. @property accountId of the account that was changed; the caller's own by default. */
export interface ChangeByCaller extends Pick<Change, 'action' | 'object' | 'before' | 'after'> {
  readonly accountId?: string
  /** `admin` where the caller acts as an administrator, `system` where the gateway itself acts on a caller's account. */
  readonly as?: 'admin' | 'system'
}

/**
 * Writes a change by the caller into the journal, within the call's transaction. To be called last in it. Locks and recoveries
 * have entries, too: a change whose caller has lost the account before it got its place is none.
 * @param connection the transaction, where it is not the context's own.
 * @throws Failure `unauthenticated`, `unknown_key`, `account_locked`.
 */
export async function recordChange(
  { database, journal, principal, now: at }: Pick<Context, 'database' | 'journal' | 'principal' | 'now'>,
  { accountId, as, ...change }: ChangeByCaller,
  connection: Connection = database,
): Promise<void> {
  const own = principal.kind === 'public' ? undefined : principal.account.id
  const account = accountId ?? own
  if (account === undefined) throw new Error(`${change.action}: it is not known whose account was changed`)
  await journal(connection, { ...change, accountId: account, actor: actorOf(principal, as, account), at })
  if (!endsStanding.has(change.action)) await requireStanding(connection, principal)
}

function actorOf(
  principal: Context['principal'],
  as: ChangeByCaller['as'],
  accountId: string,
): Change['actor'] {
  if (as === 'system') return { kind: 'system', id: null }
  if (principal.kind === 'key') return { kind: 'key', id: principal.key.id }
  // Somebody who has just proved to be the owner has no session yet.
  return { kind: as ?? 'person', id: principal.kind === 'session' ? principal.account.id : accountId }
}
