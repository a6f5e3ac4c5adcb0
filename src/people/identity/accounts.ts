/**
 * Identity: authenticates callers. Accounts, sessions and keys are read from the database on every request, so that
 * locks, revocations and role changes apply immediately. May import base, ports, ledger and policies; independent of
 * transports.
 */

import { timingSafeEqual } from 'node:crypto'
import type { NewId } from '../../core/base/ids.ts'
import type { Account } from '../../core/base/principal.ts'
import { keyedHash } from '../../core/base/seal.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection } from '../../storage/database.ts'

export interface RoleSettings {
  readonly mode: 'sandbox' | 'production'
  readonly founderAccount: string | null
  readonly dataKey: Uint8Array
}

/**
 * Determines an account's role. Production has one administrator: the founder of the configuration, or without one the
 * account that a command with the data key named. Guests never are.
 */
export function findRole(
  { id, role, guest, founderMac }: Account,
  { mode, founderAccount, dataKey }: RoleSettings,
): Account['role'] {
  if (guest) return 'user'
  if (id === founderAccount) return 'admin'
  if (mode === 'sandbox') return role
  const isFounder = founderAccount === null && typeof founderMac === 'string'
  return isFounder && isFounderMac(dataKey, id, founderMac) ? 'admin' : 'user'
}

function computeFounderMac(dataKey: Uint8Array, accountId: string): string {
  return keyedHash(dataKey, 'founder', accountId)
}

function isFounderMac(dataKey: Uint8Array, accountId: string, mac: string): boolean {
  const [given, expected] = [Buffer.from(mac), Buffer.from(computeFounderMac(dataKey, accountId))]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** Finds the administrator that a command named; one whose proof is another deployment's does not count. */
export async function findNamedFounder(
  { kysely }: Connection,
  { dataKey }: Pick<RoleSettings, 'dataKey'>,
): Promise<string | undefined> {
  const row = await kysely
    .selectFrom('account')
    .select(['id', 'founder_mac'])
    .where('founder_mac', 'is not', null)
    .executeTakeFirst()
  if (row === undefined || row.founder_mac === null) return undefined
  return isFounderMac(dataKey, row.id, row.founder_mac) ? row.id : undefined
}

/** Names the administrator of production, or nobody. It applies from the next request. */
export async function nameFounder(
  { kysely }: Connection,
  { dataKey }: Pick<RoleSettings, 'dataKey'>,
  accountId: string | null,
): Promise<void> {
  await kysely
    .updateTable('account')
    .set({ founder_mac: null })
    .where('founder_mac', 'is not', null)
    .execute()
  if (accountId === null) return
  const mac = computeFounderMac(dataKey, accountId)
  await kysely.updateTable('account').set({ founder_mac: mac }).where('id', '=', accountId).execute()
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
export function requireUnlocked(account: Pick<Account, 'status'>): void {
  if (account.status === 'locked')
    throw new Failure('account_locked', 'The account is locked.', {
      isCommitted: true,
      hint: 'Unlock it through POST /api/auth/recovery/start.',
    })
}

/** Sets a role that applies in the sandbox only; see {@link findRole}. */
export async function setSandboxRole(
  { kysely }: Connection,
  { accountId, role }: { accountId: string; role: Account['role'] },
): Promise<void> {
  await kysely.updateTable('account').set({ role }).where('id', '=', accountId).execute()
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
