/** Writes callers' changes to the journal. */
import { judgeStepUp } from '../../policies/step-up.ts'
import type { Change } from '../records/journal/write.ts'
import type { Connection } from '../storage/database.ts'
import type { Context } from './context.ts'
import { requireValidCredential } from './standing.ts'

/** Actions that may invalidate the caller's own credential. */
const endsStanding: ReadonlySet<string> = new Set([
  'account.locked',
  'account.unlocked',
  'account.recovered',
  'person.left',
])

/** @property accountId changed account; defaults to the caller's. */
export interface ChangeByCaller extends Pick<Change, 'action' | 'object' | 'before' | 'after'> {
  readonly accountId?: string
  /** The person who has just proved who they are, and has no session yet; defaults to the one of the changed account. */
  readonly by?: string
  /** `admin` for administrators' actions, `system` for the gateway's own actions on a caller's account. */
  readonly as?: 'admin' | 'system'
  /** The change takes away only, and a key that is paused meanwhile may still make it. */
  readonly mayBePaused?: boolean
}

/**
 * Writes a change to the journal. Call it last in the transaction. A change is rejected if its caller has lost access
 * to the account in the meantime. @param connection transaction, if it is not the context's.
 * @throws Failure `unauthenticated`, `unknown_key`, `account_locked`.
 */
export async function recordChange(
  { database, journal, principal, now: at }: Pick<Context, 'database' | 'journal' | 'principal' | 'now'>,
  { accountId, by, as, mayBePaused = false, ...change }: ChangeByCaller,
  connection: Connection = database,
): Promise<void> {
  const own = principal.kind === 'public' ? undefined : principal.account.id
  const account = accountId ?? own
  if (account === undefined) throw new Error(`${change.action}: the changed account is unknown`)
  const isProven = hasSecondFactor(principal, at)
  await journal(connection, {
    ...change,
    accountId: account,
    actor: toActor(principal, as, by ?? account),
    isProven,
    at,
  })
  if (!endsStanding.has(change.action)) await requireValidCredential(connection, principal, { mayBePaused })
}

function toActor(
  principal: Context['principal'],
  as: ChangeByCaller['as'],
  provenId: string,
): Change['actor'] {
  if (as === 'system') return { kind: 'system', id: null }
  if (principal.kind === 'key') return { kind: 'key', id: principal.key.id }
  // A person who has just proved ownership has no session yet.
  return { kind: as ?? 'person', id: principal.kind === 'session' ? principal.person.id : provenId }
}

function hasSecondFactor(principal: Context['principal'], now: Date): boolean {
  if (principal.kind !== 'session') return false
  const { account, session } = principal
  const facts = { mfaEnrolled: account.mfaEnrolled, steppedUpAt: session.steppedUpAt, now }
  // In production none counts as shown while none is enrolled.
  return judgeStepUp({ mode: 'production', ...facts }) === 'fresh'
}
