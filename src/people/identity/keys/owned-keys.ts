/** Lists, changes, pauses and revokes an account's keys. Every request reads keys from the database. */
import { sql } from 'kysely'
import { z } from 'zod'
import type { Policy } from '../../../../policies/policy.ts'
import type { Scope } from '../../../../policies/scopes.ts'
import type { Page } from '../../../core/base/page.ts'
import type { AccessKey } from '../../../core/base/principal.ts'
import type { Connection } from '../../../storage/database.ts'
import { keyColumns, parseKey } from '../store.ts'
import { hashPolicy } from './agent-keys.ts'

/** Key kinds listed as agent keys; OAuth grants are included. */
export const agentKinds = ['agent', 'grant'] as const satisfies readonly AccessKey['kind'][]

export const developerKinds = ['developer'] as const satisfies readonly AccessKey['kind'][]

/** Every kind of key: an owner changes, stops and revokes API keys as agents too. */
export const ownedKinds = [...agentKinds, ...developerKinds]

/** Query member of key lists. */
export const keyStatusFilter = z
  .enum(['active', 'paused', 'revoked', 'all'])
  .optional()
  .describe('Filter by status; absent: all except revoked.')

export interface Owned {
  readonly accountId: string
  readonly kinds: readonly AccessKey['kind'][]
}

/**
 * Lists an account's keys, newest first, one more than the page's limit. @param status filter; all but revoked keys
 * by default.
 */
export async function listKeys(
  database: Connection,
  {
    accountId,
    kinds,
    status,
    page,
  }: Owned & { status?: AccessKey['status'] | 'all' | undefined; page: Page },
): Promise<AccessKey[]> {
  const owned = database.kysely
    .selectFrom('access_key')
    .select(keyColumns)
    .where('account_id', '=', accountId)
    .where('kind', 'in', kinds)
  const query =
    status === 'all' ? owned : owned.where('status', status === undefined ? '!=' : '=', status ?? 'revoked')
  const rows = await (page.after === null ? query : query.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map(parseKey)
}

/** Finds one of an account's keys, revoked or not. */
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
  return row === undefined ? undefined : parseKey(row)
}

/** Finds one of an account's unrevoked keys. @param isLocked locks the row until the transaction ends. */
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
  return row === undefined ? undefined : parseKey(row)
}

export interface KeyChange {
  readonly name: string
  readonly status: 'active' | 'paused'
  readonly scopes: readonly Scope[]
  readonly policy: Policy | null
  readonly expiresAt: Date | null
  /** Time of the change. */
  readonly at: Date
}

/** Updates a key. A changed policy gets a new version, so that spends judged by the old one are judged again. */
export async function changeKey(
  database: Connection,
  key: Pick<AccessKey, 'id' | 'policyVersion' | 'policyHash'>,
  { name, status, scopes, policy, expiresAt, at }: KeyChange,
): Promise<AccessKey> {
  const policyHash = hashPolicy(policy)
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
      paused_at: status === 'paused' ? sql`coalesce(paused_at, ${at})` : null,
    })
    .where('id', '=', key.id)
    .returning(keyColumns)
    .executeTakeFirstOrThrow()
  return parseKey(row)
}

/** Pauses all active keys of an account. @returns the keys that were active, as they are now. */
export async function pauseKeys(
  database: Connection,
  { accountId, at }: { accountId: string; at: Date },
): Promise<AccessKey[]> {
  const rows = await database.kysely
    .updateTable('access_key')
    .set({ status: 'paused', paused_at: at })
    .where('account_id', '=', accountId)
    .where('status', '=', 'active')
    .returning(keyColumns)
    .execute()
  return rows.map(parseKey)
}

/** Lists all unrevoked keys of an account, newest first. */
export async function listAllKeys(database: Connection, accountId: string): Promise<AccessKey[]> {
  const rows = await database.kysely
    .selectFrom('access_key')
    .select(keyColumns)
    .where('account_id', '=', accountId)
    .where('status', '!=', 'revoked')
    .orderBy('id', 'desc')
    .execute()
  return rows.map(parseKey)
}

/** Revokes a key permanently. @returns false if the account has no such key. */
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
