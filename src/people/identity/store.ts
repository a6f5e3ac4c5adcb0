/** Reads and writes identity rows, mapped to base types. */
import { type ExpressionBuilder, type Selectable, type SqlBool, sql } from 'kysely'
import { quorums } from '../../../policies/quorum.ts'
import { parseAncestors } from '../../core/base/ancestors.ts'
import type { Page } from '../../core/base/page.ts'
import { deleteInPortions } from '../../core/base/portions.ts'
import {
  type AccessKey,
  type Account,
  effectiveStatus,
  type MemberRole,
  type Person,
} from '../../core/base/principal.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import type { AccessKeyTable, Schema, SessionTable } from '../../storage/schema.ts'

const accountColumns = [
  'account.id as account_id',
  'account.role',
  'account.status as account_status',
  'account.guest',
  'account.display_name',
  'account.kyc_level',
  'account.created_at as account_created_at',
  'account.founder_mac',
  'account.quorums',
] as const

const activeMfa = (query: ExpressionBuilder<Schema, 'account'>) =>
  query
    .exists(
      query
        .selectFrom('mfa')
        .select('mfa.account_id')
        .whereRef('mfa.account_id', '=', 'account.id')
        .where('mfa.status', '=', 'active'),
    )
    .as('mfa_enrolled')

/** Columns for {@link parseKey}. */
export const keyColumns = [
  'access_key.id',
  'access_key.kind',
  'access_key.name',
  'access_key.thumbprint',
  'access_key.public_key',
  'access_key.scopes',
  'access_key.status',
  'access_key.policy',
  'access_key.policy_version',
  'access_key.policy_hash',
  'access_key.created_at',
  'access_key.expires_at',
  'access_key.first_used_at',
  'access_key.paused_at',
  'access_key.earmark_micros',
  'access_key.task',
  sql<unknown>`key_ancestors(access_key.path)`.as('ancestors'),
] as const

export type KeyRow = Omit<
  Selectable<AccessKeyTable>,
  'account_id' | 'secret_hash' | 'paused_at' | 'first_used_at' | 'path' | 'jti' | 'claims_hash'
> & { readonly ancestors: unknown }

interface AccountRow {
  account_id: string
  role: Account['role']
  account_status: Account['status']
  guest: boolean
  display_name: string
  kyc_level: string
  account_created_at: Date
  mfa_enrolled: SqlBool
  quorums: unknown
}

function parseAccount(row: AccountRow, founderMac: string | null = null): Account {
  return {
    id: row.account_id,
    role: row.role,
    status: row.account_status,
    guest: row.guest,
    displayName: row.display_name,
    kycLevel: row.kyc_level,
    mfaEnrolled: row.mfa_enrolled === true,
    createdAt: row.account_created_at,
    founderMac,
    quorums: quorums.parse(row.quorums ?? []),
  }
}

const sessionStatement: Statement = {
  name: 'identity_session',
  // The limit keeps the planner from joining whole tables: a batch is always shorter than it expects.
  text: `
    select s.*
    from rows from (jsonb_to_recordset($1::jsonb) as (id text, at timestamptz)) with ordinality as q
    left join lateral (
      select a.id as account_id, p.role, a.status as account_status, p.guest, p.display_name, a.kyc_level,
        a.created_at as account_created_at, p.founder_mac, a.quorums, s.method, s.created_at, s.expires_at, s.stepped_up_at,
        exists (select from mfa m where m.account_id = p.id and m.status = 'active') as mfa_enrolled,
        p.id as person_id, coalesce(of.role, 'owner') as member_role,
        case when of.person_id is null then p.status when of.locked_at is null then 'active' else 'locked' end as person_status
      from session s join account p on p.id = s.account_id left join membership of on of.person_id = p.id
        join account a on a.id = coalesce(of.account_id, p.id)
      where s.id = q.id and s.revoked_at is null and s.expires_at > q.at limit 1
    ) s on true
    order by q.ordinality`,
}

interface SessionRow extends Omit<AccountRow, 'mfa_enrolled'> {
  readonly founder_mac: string | null
  readonly mfa_enrolled: boolean
  readonly method: Selectable<SessionTable>['method']
  readonly created_at: Date
  readonly expires_at: Date
  readonly stepped_up_at: Date | null
  readonly person_id: string
  readonly person_status: Account['status']
  readonly member_role: MemberRole
}

/** Finds a valid session with its person and the account that they act for. */
export async function findSession(database: Connection, sessionId: string, now: Date) {
  const row = await database.gather<SessionRow | { readonly account_id: null }>(sessionStatement, {
    id: sessionId,
    at: now,
  })
  return row.account_id === null
    ? undefined
    : {
        account: parseAccount(row, row.founder_mac),
        person: { id: row.person_id, status: row.person_status, role: row.member_role },
        method: row.method,
        createdAt: row.created_at,
        expiresAt: row.expires_at,
        steppedUpAt: row.stepped_up_at,
      }
}

const standingStatement: Statement = {
  name: 'identity_standing',
  text: `
    select a.id as account_id, p.role, a.status as account_status, p.guest, p.display_name, a.kyc_level,
      a.created_at as account_created_at, p.founder_mac, a.quorums, p.id as person_id, coalesce(of.role, 'owner') as member_role,
      exists (select from mfa m where m.account_id = p.id and m.status = 'active') as mfa_enrolled,
      case when of.person_id is null then p.status when of.locked_at is null then 'active' else 'locked' end as person_status
    from account p left join membership of on of.person_id = p.id join account a on a.id = coalesce(of.account_id, p.id)
    where p.id = $1`,
}

/** Finds a person with the account that they act for. */
export async function findStanding(
  database: Connection,
  personId: string,
): Promise<{ readonly account: Account; readonly person: Person }> {
  const row = await callForRow<Omit<SessionRow, 'method' | 'created_at' | 'expires_at' | 'stepped_up_at'>>(
    database,
    standingStatement,
    [personId],
  )
  return {
    account: parseAccount(row, row.founder_mac),
    person: { id: row.person_id, status: row.person_status, role: row.member_role },
  }
}

export async function findAccount(database: Connection, id: string): Promise<Account | undefined> {
  const row = await database.kysely
    .selectFrom('account')
    .select(accountColumns)
    .select(activeMfa)
    .where('account.id', '=', id)
    .executeTakeFirst()
  return row === undefined ? undefined : parseAccount(row, row.founder_mac)
}

/**
 * Revokes one, all but one, or all sessions of an account. Expired ones too, so that nothing of theirs goes on.
 * @returns how many were in use.
 */
export async function revokeSessions(
  database: Connection,
  {
    accountId,
    sessionId,
    exceptId,
    at,
  }: { accountId: string; sessionId?: string; exceptId?: string; at: Date },
): Promise<number> {
  const query = database.kysely
    .updateTable('session')
    .set({ revoked_at: at })
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
  const rest = exceptId === undefined ? query : query.where('id', '!=', exceptId)
  const rows = await (sessionId === undefined ? rest : rest.where('id', '=', sessionId))
    .returning('expires_at')
    .execute()
  return rows.filter(({ expires_at }) => expires_at > at).length
}

/** Lists valid sessions, newest first, one more than the page's limit. */
export async function listSessions(
  database: Connection,
  { accountId, page, now }: { accountId: string; page: Page; now: Date },
) {
  const query = database.kysely
    .selectFrom('session')
    .select(['id', 'method', 'name', 'created_at as createdAt', 'expires_at as expiresAt'])
    .where('account_id', '=', accountId)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now)
  return (page.after === null ? query : query.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
}

/** Records a second factor for a session. */
export async function stepUpSession(database: Connection, sessionId: string, at: Date): Promise<void> {
  await database.kysely
    .updateTable('session')
    .set({ stepped_up_at: at })
    .where('id', '=', sessionId)
    .execute()
}

/** Clears the second factor of all sessions of an account. */
export async function endStepUps(database: Connection, accountId: string): Promise<void> {
  await database.kysely
    .updateTable('session')
    .set({ stepped_up_at: null })
    .where('account_id', '=', accountId)
    .execute()
}

const keysWithOwners = ({ kysely }: Connection) =>
  kysely
    .selectFrom('access_key')
    .innerJoin('account', 'account.id', 'access_key.account_id')
    .select(accountColumns)
    .select(activeMfa)
    .select(keyColumns)

/** Finds an unrevoked key with its owner. */
export async function findKey(
  database: Connection,
  by: { thumbprint: string } | { secretHash: Uint8Array } | { id: string },
): Promise<{ account: Account; key: AccessKey } | undefined> {
  const query = keysWithOwners(database).where('access_key.status', '!=', 'revoked')
  const row = await ('thumbprint' in by
    ? query.where('access_key.thumbprint', '=', by.thumbprint)
    : 'id' in by
      ? query.where('access_key.id', '=', by.id)
      : query.where('access_key.secret_hash', '=', by.secretHash)
  ).executeTakeFirst()
  return row === undefined ? undefined : { account: parseAccount(row), key: withStanding(parseKey(row)) }
}

/** A key as it may act: with what the keys above it have too. @see effectiveStatus */
export function withStanding(key: AccessKey): AccessKey {
  if (key.delegation === undefined) return key
  const { path } = key.delegation
  const scopes = key.scopes.filter((scope) => path.every((ancestor) => ancestor.scopes.includes(scope)))
  return { ...key, scopes, status: effectiveStatus(key) }
}

/** Finds a key with its owner, revoked or not. Keys are never deleted. */
export async function findIssuedKey(
  database: Connection,
  { id }: { id: string },
): Promise<{ account: Account; key: AccessKey }> {
  const row = await keysWithOwners(database).where('access_key.id', '=', id).executeTakeFirstOrThrow()
  return { account: parseAccount(row), key: withStanding(parseKey(row)) }
}

/** @param row `first_used_at` and `paused_at` are absent where a call is authenticated in one round trip. */
export function parseKey(
  row: KeyRow & { readonly first_used_at?: Date | null; readonly paused_at?: Date | null },
): AccessKey {
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    thumbprint: row.thumbprint,
    publicKey: row.public_key,
    scopes: row.scopes,
    status: row.status,
    policy: row.policy,
    policyVersion: row.policy_version,
    policyHash: row.policy_hash,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    ...(row.first_used_at === undefined ? {} : { firstUsedAt: row.first_used_at }),
    ...(row.paused_at === undefined ? {} : { pausedAt: row.paused_at }),
    ...parseDelegation(row),
  }
}

function parseDelegation({
  ancestors: above,
  earmark_micros: earmarkMicros,
  task,
}: Pick<KeyRow, 'ancestors' | 'earmark_micros' | 'task'>): Pick<AccessKey, 'delegation'> {
  const path = parseAncestors(above)
  return path === null ? {} : { delegation: { path, earmarkMicros, task } }
}

const authenticateStatement: Statement = {
  name: 'identity_authenticate',
  // Nonces are used up in one order, whatever the order of the requests: two batches with the same ones would deadlock.
  text: `
    select a.*
    from (
      select *
      from rows from (jsonb_to_recordset($1::jsonb) as (
        thumbprint text, secret_hash text, nonce text, nonce_expires_at timestamptz, at timestamptz
      )) with ordinality as r
      order by r.thumbprint, r.nonce, r.ordinality
    ) q
    left join lateral authenticate(q.thumbprint, decode(q.secret_hash, 'hex'), q.nonce, q.nonce_expires_at, q.at) a on true
    order by q.ordinality`,
}

/** Row of an unknown or revoked key. */
interface Unknown {
  readonly id: null
}

interface AuthenticatedRow extends KeyRow, Omit<AccountRow, 'mfa_enrolled'> {
  readonly mfa_enrolled: boolean
  readonly is_nonce_new: boolean
}

/**
 * Finds an unrevoked key with its owner, as {@link findKey}, and consumes the nonce of a signed request, in one round trip.
 * @returns `isNonceNew` false for a repeated nonce. An expired key or a locked account consumes nothing.
 */
export async function authenticateKey(
  database: Connection,
  by: { thumbprint: string; nonce: string; nonceExpiresAt: Date } | { secretHash: Uint8Array },
  now: Date,
): Promise<{ account: Account; key: AccessKey; isNonceNew: boolean } | undefined> {
  const isSigned = 'thumbprint' in by
  const row = await database.gather<AuthenticatedRow | Unknown>(authenticateStatement, {
    thumbprint: isSigned ? by.thumbprint : null,
    secret_hash: isSigned ? null : Buffer.from(by.secretHash).toString('hex'),
    nonce: isSigned ? by.nonce : null,
    nonce_expires_at: isSigned ? by.nonceExpiresAt : null,
    at: now,
  })
  if (row.id === null) return undefined
  return { account: parseAccount(row), key: withStanding(parseKey(row)), isNonceNew: row.is_nonce_new }
}

/** @returns false if the thumbprint or secret is already registered. */
export async function insertKey(
  database: Connection,
  accountId: string,
  key: AccessKey & { secretHash: Uint8Array | null },
): Promise<boolean> {
  const inserted = await database.kysely
    .insertInto('access_key')
    .values({
      id: key.id,
      account_id: accountId,
      kind: key.kind,
      name: key.name,
      thumbprint: key.thumbprint,
      public_key: key.publicKey,
      secret_hash: key.secretHash,
      scopes: [...key.scopes],
      status: key.status,
      policy: key.policy === null ? null : JSON.stringify(key.policy),
      policy_version: key.policyVersion,
      policy_hash: key.policyHash,
      created_at: key.createdAt,
      expires_at: key.expiresAt,
      path: key.delegation?.path.map(({ id }) => id) ?? [],
      earmark_micros: key.delegation?.earmarkMicros ?? null,
      task: key.delegation?.task ?? null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

/** Deletes nonces of expired signatures. @returns how many. */
export async function sweepNonces(database: Connection, now: Date): Promise<bigint> {
  return deleteInPortions(async (limit) => {
    const expired = database.kysely
      .selectFrom('signature_nonce')
      .select(['key_id', 'nonce'])
      .where('expires_at', '<', now)
      .limit(limit)
    const result = await database.kysely
      .deleteFrom('signature_nonce')
      .where(({ eb, refTuple }) => eb(refTuple('key_id', 'nonce'), 'in', expired.$asTuple('key_id', 'nonce')))
      .executeTakeFirst()
    return result.numDeletedRows
  })
}
