/**
 * Delegations: keys that another key has given a part of its budget to. Every spend of one is judged by each policy up to the root,
 * so that nothing that it declares beyond its parent helps it.
 */
import { sql } from 'kysely'
import { budgetRules } from '../../../../policies/budget.ts'
import { loosenings } from '../../../../policies/loosening.ts'
import { type Policy, storedPolicy } from '../../../../policies/policy.ts'
import type { Scope } from '../../../../policies/scopes.ts'
import { toUsdMicros } from '../../../../policies/usd.ts'
import { budgetMembers } from '../../../books/spending/request-text.ts'
import { utcDay } from '../../../core/base/clock.ts'
import type { NewId } from '../../../core/base/ids.ts'
import type { Page } from '../../../core/base/page.ts'
import type { AccessKey, Ancestor } from '../../../core/base/principal.ts'
import { Failure, type Violation } from '../../../core/failures/failure.ts'
import { type Connection, callForRow, type Statement } from '../../../storage/database.ts'
import { keyColumns, parseKey } from '../store.ts'
import { hashPolicy } from './agent-keys.ts'
import { hashApiKey } from './api-keys.ts'
import { computeThumbprint } from './thumbprint.ts'

/** Generations below a root. */
export const MAX_DEPTH = 4

/** What a key is to be given. @property credential its public key, base64url, or the secret of a bearer. */
export interface DelegationGrant {
  readonly accountId: string
  readonly parent: AccessKey
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly policy: Policy | null
  readonly expiresAt: Date
  readonly credential: { readonly publicKey: string } | { readonly secret: string }
  readonly isEarmarked: boolean
  readonly task: string | null
  /** Name and claims of a delegation that the parent signed by itself. */
  readonly signed?: { readonly jti: string; readonly claimsHash: string }
  readonly at: Date
}

interface Row {
  readonly verdict: 'created' | 'taken' | 'stale' | 'paused' | 'account_locked' | 'full' | 'exceeded'
  readonly violations: readonly Violation[]
}

const statement: Statement = { name: 'key_delegate', text: 'select * from key_delegate($1, $2, $3, $4)' }

/**
 * Makes the key, and sets its earmark aside.
 * @throws Failure `conflict`, `insufficient_scope`, `invalid_request`, `policy_denied`, `account_locked`.
 */
export async function delegateKey(
  dependencies: { database: Connection; newId: NewId },
  grant: DelegationGrant,
): Promise<AccessKey> {
  if (listPath(grant.parent).length > MAX_DEPTH)
    throw new Failure('conflict', `Keys are delegated over ${MAX_DEPTH} generations at most.`, {
      hint: 'Delegate from a key nearer to the root.',
    })
  requireNarrower(grant)
  return insertDelegation(dependencies, grant)
}

/**
 * Makes a key that is not wider than its parent, as the caller has found out, and sets its earmark aside.
 * @throws Failure `conflict`, `insufficient_scope`, `policy_denied`, `account_locked`.
 */
export async function insertDelegation(
  { database, newId }: { database: Connection; newId: NewId },
  grant: DelegationGrant,
): Promise<AccessKey> {
  const { parent, policy, at } = grant
  const path = listPath(parent)
  const earmarkMicros =
    grant.isEarmarked && policy?.totalBudget !== undefined ? toUsdMicros(policy.totalBudget.max) : null
  const publicKey = 'publicKey' in grant.credential ? grant.credential.publicKey : null
  const key: AccessKey = {
    id: newId('key', at),
    kind: 'agent',
    name: grant.name,
    thumbprint: publicKey === null ? null : computeThumbprint(publicKey),
    publicKey,
    scopes: grant.scopes,
    status: 'active',
    policy,
    policyVersion: 1,
    policyHash: hashPolicy(policy),
    createdAt: at,
    expiresAt: grant.expiresAt,
    delegation: { path, earmarkMicros, task: grant.task },
  }
  const secretHash =
    'secret' in grant.credential ? Buffer.from(hashApiKey(grant.credential.secret)).toString('hex') : null
  const row = await callForRow<Row>(database, statement, [
    JSON.stringify({
      id: key.id,
      account_id: grant.accountId,
      kind: key.kind,
      name: key.name,
      thumbprint: key.thumbprint,
      public_key: publicKey,
      secret_hash: secretHash,
      scopes: key.scopes,
      policy,
      policy_hash: key.policyHash,
      expires_at: key.expiresAt,
      path: path.map(({ id }) => id),
      earmark_micros: earmarkMicros?.toString() ?? null,
      task: grant.task,
      jti: grant.signed?.jti ?? null,
      claims_hash: grant.signed?.claimsHash ?? null,
    }),
    JSON.stringify(path.map(toJudged)),
    utcDay(at),
    at,
  ])
  if (row.verdict === 'created') return key
  throw buildRefusal(row)
}

/** The keys above a child of a key: its own ancestors, and itself. */
function listPath({ id, name, status, scopes, policy, policyVersion, delegation }: AccessKey) {
  const own: Ancestor = { id, name, status, scopes, policy, policyVersion }
  const [root, ...others] = delegation?.path ?? []
  const path: [Ancestor, ...Ancestor[]] = root === undefined ? [own] : [root, ...others, own]
  return path
}

function toJudged({ id, policyVersion, policy: stored }: Ancestor) {
  const policy = storedPolicy.nullable().parse(stored ?? null)
  return {
    key: id,
    version: policyVersion,
    budgets: policy === null ? [] : budgetRules(policy).map(budgetMembers),
  }
}

/** @throws Failure `insufficient_scope`, `invalid_request` for what is plainly wider than the parent. */
function requireNarrower({ parent, ...grant }: DelegationGrant): void {
  const { scopes: missing, issues } = listWider(parent, grant)
  if (missing.length > 0)
    throw new Failure('insufficient_scope', `The key "${parent.name}" lacks ${missing.join(', ')}.`, {
      scopes: missing,
      hint: 'A key can give others only scopes that it has itself.',
    })
  if (issues.length === 0) return
  throw new Failure('invalid_request', issues.map(({ path, message }) => `${path}: ${message}`).join('; '), {
    issues,
  })
}

/** What a key gives another one, or has itself. */
interface Granted {
  readonly scopes: readonly string[]
  readonly policy: Policy | null
  readonly expiresAt: Date
}

/** Lists in what a key would be plainly wider than the one above it. */
export function listWider(
  parent: Pick<AccessKey, 'scopes' | 'policy' | 'expiresAt'>,
  { scopes, policy, expiresAt }: Granted,
): {
  readonly scopes: readonly string[]
  readonly issues: readonly { readonly path: string; readonly message: string }[]
} {
  const above = storedPolicy.nullable().parse(parent.policy ?? null)
  return {
    scopes: scopes.filter((scope) => !parent.scopes.includes(scope)),
    issues: [
      ...findWider(above, policy).map((member) => ({
        path: `policy.${member}`,
        message: 'is wider than the policy of the key above',
      })),
      ...(parent.expiresAt !== null && expiresAt > parent.expiresAt
        ? [{ path: 'expiresAt', message: 'is after the end of the key above' }]
        : []),
    ],
  }
}

/** Members of a child's policy that are plainly wider than its parent's. What a child leaves out is its parent's. */
function findWider(parent: Policy | null, child: Policy | null): readonly string[] {
  if (child === null || parent === null) return child === null ? [] : loosenings(parent, child)
  // Members that the child leaves out hold as they do above it. The two have one type, and so has what comes of them.
  return loosenings(parent, fillIn(parent, child) as Policy)
}

function fillIn(above: unknown, below: unknown): unknown {
  if (!isRecord(above) || !isRecord(below)) return below === undefined ? above : below
  const names = new Set([...Object.keys(above), ...Object.keys(below)])
  return Object.fromEntries([...names].map((name) => [name, fillIn(above[name], below[name])]))
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function buildRefusal({ verdict, violations }: Row): Failure {
  switch (verdict) {
    case 'taken':
      return new Failure('conflict', 'This public key is already registered.', {
        hint: 'Create a new key pair: "bursar agent new".',
      })
    case 'full':
      return new Failure('conflict', 'The key has 256 living children, which is the most.', {
        hint: 'Revoke those that have done their work.',
      })
    case 'exceeded':
      return new Failure('policy_denied', 'A key above has less left than the earmark.', {
        violations,
        hint: 'Ask for a smaller total budget, or without `earmark`.',
      })
    case 'paused':
      return new Failure('policy_denied', 'The key, or one above it, is paused.', {
        violations,
        hint: 'Only its owner can resume it: tell the owner.',
      })
    case 'account_locked':
      return new Failure('account_locked', 'The account is locked.', {
        hint: 'Unlock it through POST /api/auth/recovery/start.',
      })
    case 'stale':
    case 'created':
      return new Failure('conflict', 'A key above changed during this request, which had no effect.', {
        hint: 'Send the request again.',
      })
  }
}

/** Keys below others. @property below only those below this key; null: all of the account. */
interface Below {
  readonly accountId: string
  readonly below: string | null
}

/** Lists delegated keys, newest first, one more than the page's limit. @param parentId only its children. */
export async function listDelegations(
  database: Connection,
  {
    accountId,
    below,
    parentId,
    status,
    page,
    now,
  }: Below & {
    parentId?: string | undefined
    status?: AccessKey['status'] | 'all' | undefined
    page: Page
    now: Date
  },
): Promise<AccessKey[]> {
  let query = database.kysely
    .selectFrom('access_key')
    .select(keyColumns)
    .where('account_id', '=', accountId)
    .where(sql<boolean>`path <> '{}'`)
  if (below !== null) query = query.where(sql<boolean>`path @> array[${below}]::text[]`)
  if (parentId !== undefined) query = query.where(sql<boolean>`path[cardinality(path)] = ${parentId}`)
  if (status !== 'all') query = query.where('status', status === undefined ? '!=' : '=', status ?? 'revoked')
  if (status === 'active' || status === 'paused')
    query = query.where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
  if (page.after !== null) query = query.where('id', '<', page.after)
  const rows = await query
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map(parseKey)
}

/** Finds a delegated key of an account, revoked or not. */
export async function findDelegation(
  database: Connection,
  { accountId, below, id }: Below & { id: string },
): Promise<AccessKey | undefined> {
  let query = database.kysely
    .selectFrom('access_key')
    .select(keyColumns)
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where(sql<boolean>`path <> '{}'`)
  if (below !== null) query = query.where(sql<boolean>`path @> array[${below}]::text[]`)
  const row = await query.executeTakeFirst()
  return row === undefined ? undefined : parseKey(row)
}

/** Lists a key and all keys below it, oldest first. */
export async function listTree(
  database: Connection,
  { accountId, id }: { accountId: string; id: string },
): Promise<AccessKey[]> {
  const rows = await database.kysely
    .selectFrom('access_key')
    .select(keyColumns)
    .where('account_id', '=', accountId)
    .where(sql<boolean>`(id = ${id} or path @> array[${id}]::text[] and path <> '{}')`)
    .orderBy('id')
    .execute()
  return rows.map(parseKey)
}
