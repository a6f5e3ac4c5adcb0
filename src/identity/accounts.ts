/**
 * Identity: authenticates callers. Accounts, sessions and keys are read from the database on every request, so that
 * locks, revocations and role changes apply immediately. May import base, ports, ledger and policies; independent of
 * transports.
 */

import type { NewId } from '../base/ids.ts'
import type { Account } from '../base/principal.ts'
import { Failure } from '../failures/failure.ts'
import type { Connection } from '../storage/database.ts'

export interface RoleSettings {
  readonly mode: 'sandbox' | 'production'
  readonly founderAccount: string | null
}

/** Determines an account's role. In production only the configured founder is an administrator; guests never are. */
export function roleOf(
  { id, role, guest }: Account,
  { mode, founderAccount }: RoleSettings,
): Account['role'] {
  if (guest) return 'user'
  if (id === founderAccount) return 'admin'
  return mode === 'sandbox' ? role : 'user'
}

/** @param at creation time. @param id id that was allocated earlier, if any. */
export async function createAccount(
  { database, newId }: { database: Connection; newId: NewId },
  {
    displayName,
    guest,
    at,
    id = newId('acct', at),
  }: { displayName: string; guest: boolean; at: Date; id?: string },
): Promise<Account> {
  const account: Account = {
    id,
    role: 'user',
    status: 'active',
    guest,
    displayName,
    kycLevel: 'none',
    mfaEnrolled: false,
    createdAt: at,
  }
  await database.kysely
    .insertInto('account')
    .values({
      id: account.id,
      role: account.role,
      status: account.status,
      guest,
      display_name: displayName,
      kyc_level: account.kycLevel,
      created_at: at,
    })
    .execute()
  return account
}

/** @throws Failure `account_locked`, committed, so that the credential just presented stays consumed. */
export function requireUnlocked(account: Account): void {
  if (account.status === 'locked')
    throw new Failure('account_locked', 'The account is locked.', {
      isCommitted: true,
      hint: 'Unlock it through POST /api/auth/recovery/start.',
    })
}

/** Sets a role that applies in the sandbox only; see {@link roleOf}. */
export async function makeSandboxAdmin(database: Connection, accountId: string): Promise<void> {
  await database.kysely.updateTable('account').set({ role: 'admin' }).where('id', '=', accountId).execute()
}

/** Turns a guest into a person, once the account has a sign-in method. @returns the account as it is now. */
export async function settleGuest(
  { kysely }: Connection,
  { account, displayName }: { account: Account; displayName: string },
): Promise<Account> {
  await kysely
    .updateTable('account')
    .set({ guest: false, display_name: displayName })
    .where('id', '=', account.id)
    .execute()
  return { ...account, guest: false, displayName }
}
