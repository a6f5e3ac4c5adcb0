/** The keys of an account in its owner's hands: listed, changed, paused, revoked. Every request reads them anew. */
import type { Policy } from '../../../policies/policy.ts'
import type { Scope } from '../../../policies/scopes.ts'
import type { Page } from '../../base/page.ts'
import type { AccessKey } from '../../base/principal.ts'
import type { Connection } from '../../storage/database.ts'
import { keyColumns, keyOf } from '../store.ts'
import { policyHashOf } from './agent-keys.ts'

/** Kinds of keys as they are listed together: an OAuth grant shows up among the agents. */
export const agentKinds = ['agent', 'grant'] as const satisfies readonly AccessKey['kind'][]

/** See {@link agentKinds}. */
export const developerKinds = ['developer'] as const satisfies readonly AccessKey['kind'][]

/** Which keys of whom. */
export interface Owned {
  readonly accountId: string
  readonly kinds: readonly AccessKey['kind'][]
}

/** An account's keys, newest first: one more than the page's limit. @param status those alone; absent: all but revoked ones. */
export async function listKeys(
  database: Connection,
  { accountId, kinds, status, page }: Owned & { status?: AccessKey['status'] | undefined; page: Page },
): Promise<AccessKey[]> {
  const query = database.kysely
    .selectFrom('access_key')
    .select(keyColumns)
    .where('account_id', '=', accountId)
    .where('kind', 'in', kinds)
    .where('status', status === undefined ? '!=' : '=', status ?? 'revoked')
  const rows = await (page.after === null ? query : query.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map(keyOf)
}

/** One of an account's keys with its history, revoked or not. */
export async function findAnyKey(
  database: Connection,
  { accountId, kinds, id }: Owned & { id: string },
): Promise<AccessKey | undefined> {
  const row = await database.kysely
    .selectFrom('access_key')
    .select(keyColumns)
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('kind', 'in', kinds)
    .executeTakeFirst()
  return row === undefined ? undefined : keyOf(row)
}

/** One of an account's keys, or undefined where it has no such key that was not revoked. @param isLocked whether nobody may change it before the transaction's end. */
export async function findOwnKey(
  database: Connection,
  { accountId, kinds, id, isLocked }: Owned & { id: string; isLocked: boolean },
): Promise<AccessKey | undefined> {
  const query = database.kysely
    .selectFrom('access_key')
    .select(keyColumns)
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('kind', 'in', kinds)
    .where('status', '!=', 'revoked')
  const row = await (isLocked ? query.forUpdate() : query).executeTakeFirst()
  return row === undefined ? undefined : keyOf(row)
}

/** What an owner can change of a key. */
export interface KeyChange {
  readonly name: string
  readonly status: 'active' | 'paused'
  readonly scopes: readonly Scope[]
  readonly policy: Policy | null
  readonly expiresAt: Date | null
}

/** Changes a key. A changed policy gets a new version, so that a spend that was judged by the old one is judged anew. */
export async function changeKey(
  database: Connection,
  key: Pick<AccessKey, 'id' | 'policyVersion' | 'policyHash'>,
  { name, status, scopes, policy, expiresAt }: KeyChange,
): Promise<AccessKey> {
  const policyHash = policyHashOf(policy)
  const row = await database.kysely
    .updateTable('access_key')
    .set({
      name,
      status,
      scopes: [...scopes],
      policy: policy === null ? null : JSON.stringify(policy),
      policy_version: policyHash === key.policyHash ? key.policyVersion : key.policyVersion + 1,
      policy_hash: policyHash,
      expires_at: expiresAt,
    })
    .where('id', '=', key.id)
    .returning(keyColumns)
    .executeTakeFirstOrThrow()
  return keyOf(row)
}

/** Pauses every key of an account that is active. */
export async function pauseKeys(database: Connection, accountId: string): Promise<void> {
  await database.kysely
    .updateTable('access_key')
    .set({ status: 'paused' })
    .where('account_id', '=', accountId)
    .where('status', '=', 'active')
    .execute()
}

/** All keys of an account that were not revoked, newest first. */
export async function allDeveloperKeys(database: Connection, accountId: string): Promise<AccessKey[]> {
  const rows = await database.kysely
    .selectFrom('access_key')
    .select(keyColumns)
    .where('account_id', '=', accountId)
    .where('status', '!=', 'revoked')
    .orderBy('id', 'desc')
    .execute()
  return rows.map(keyOf)
}

/** Revokes one of an account's keys, for good. @returns false where it has no such key. */
export async function revokeKey(
  database: Connection,
  { accountId, kinds, id }: Owned & { id: string },
): Promise<boolean> {
  const row = await database.kysely
    .updateTable('access_key')
    .set({ status: 'revoked' })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('kind', 'in', kinds)
    .where('status', '!=', 'revoked')
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}
