/**
 * Identity: who is calling and whether they still may. Accounts, sessions and keys are read from the database on every
 * request, so that a lock, a revocation or a changed role holds for the very next one. May import base, ports, ledger and
 * policies; knows no transport.
 */

import type { NewId } from '../base/ids.ts'
import type { Account } from '../base/principal.ts'
import { Failure } from '../failures/failure.ts'
import type { Connection } from '../storage/database.ts'

/** What decides who is an administrator. */
export interface RoleSettings {
  readonly mode: 'sandbox' | 'production'
  readonly founderAccount: string | null
}

/** What an account may be. In production the configuration's founder is the one administrator; a guest never is. */
export function roleOf(
  { id, role, guest }: Account,
  { mode, founderAccount }: RoleSettings,
): Account['role'] {
  if (guest) return 'user'
  if (id === founderAccount) return 'admin'
  return mode === 'sandbox' ? role : 'user'
}

/** Creates an account. @param at the moment it is created. @param id where it was given out before. */
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

/** Refuses a locked account. @throws Failure `account_locked`; what it has just shown itself by is used up all the same. */
export function requireUnlocked(account: Account): void {
  if (account.status === 'locked')
    throw new Failure('account_locked', 'The account is locked.', {
      isCommitted: true,
      hint: 'Unlock it through POST /api/auth/recovery/start.',
    })
}

/** Gives an account the role that counts in the sandbox alone: see {@link roleOf}. */
export async function makeSandboxAdmin(database: Connection, accountId: string): Promise<void> {
  await database.kysely.updateTable('account').set({ role: 'admin' }).where('id', '=', accountId).execute()
}
