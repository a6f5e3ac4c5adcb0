/**
 * Identity: who is calling and whether they still may. Accounts, sessions and keys are read from the database on every
 * request, so that a lock, a revocation or a changed role holds for the very next one. May import base, ports, ledger and
 * policies; knows no transport.
 */
import { Failure } from '../failure.ts'
import type { NewId } from '../ids.ts'
import type { Account } from '../principal.ts'
import type { Connection } from '../storage/database.ts'

/** Creates an account. @param at the moment it is created. */
export async function createAccount(
  { database, newId }: { database: Connection; newId: NewId },
  { displayName, guest, at }: { displayName: string; guest: boolean; at: Date },
): Promise<Account> {
  const account: Account = {
    id: newId('acct', at),
    role: 'user',
    status: 'active',
    guest,
    displayName,
    kycLevel: 'none',
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

/** Refuses a locked account. @throws Failure `account_locked`. */
export function requireUnlocked(account: Account): void {
  if (account.status === 'locked')
    throw new Failure('account_locked', 'The account is locked.', {
      hint: 'Unlock it through POST /api/auth/recovery/start.',
    })
}
