/**
 * Makes the keys of delegations that their parents signed by themselves, at first use. A chain costs strangers, who have no
 * delegation of a registered key, at most one verified signature, and nothing is written before everything is judged.
 */
import { createHash, type KeyObject } from 'node:crypto'
import { sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Policy } from '../../../../policies/policy.ts'
import type { NewId } from '../../../core/base/ids.ts'
import { lazy } from '../../../core/base/lazy.ts'
import type { AccessKey, Account } from '../../../core/base/principal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection, Database } from '../../../storage/database.ts'
import { keyColumns, parseKey, withStanding } from '../store.ts'
import { delegationInvalid, readChain, type SignedDelegation } from './delegation-chain.ts'
import { insertDelegation, listWider, MAX_DEPTH } from './delegations.ts'
import { importPublicKey, verifyEd25519 } from './ed25519.ts'

export interface OfflineDependencies {
  readonly database: Database
  /** Origin of the gateway, which delegations must name. */
  readonly origin: string
  readonly newId: NewId
  /** The policy with the ids of contacts in place of their names. @throws Failure `not_found` for a name that no contact has. */
  readonly keepContacts: (accountId: string, policy: Policy | null) => Promise<Policy | null>
  /** Writes a made key to the journal, in the transaction that made it. */
  readonly recordDelegated: (
    transaction: Connection,
    made: {
      readonly accountId: string
      readonly parentId: string
      readonly key: AccessKey
      readonly at: Date
    },
  ) => Promise<void>
}

/** A chain that came with a request. */
export interface PresentedChain {
  /** Finds the key that must have signed the request. @param keyId as the request names it. @throws Failure `delegation_invalid`. */
  readonly findKey: (keyId: string) => Promise<KeyObject>
  /**
   * Makes the keys that are not there yet. Call it once the request's signature is verified.
   * @throws Failure `delegation_invalid`, `conflict`, `insufficient_scope`, `policy_denied`.
   */
  readonly settle: () => Promise<void>
}

/** A registered key of a chain, revoked or not. */
interface KnownKey {
  readonly key: AccessKey
  readonly accountId: string
  readonly accountStatus: Account['status']
  readonly jti: string | null
  readonly claimsHash: string | null
}

type Chain = readonly [SignedDelegation, ...SignedDelegation[]]

/** How often a chain is judged again because something changed meanwhile. */
const MAX_ATTEMPTS = 3

/**
 * Chains by their hash whose keys were all made, which nothing undoes: they are not verified again. That none of the keys has
 * ended is read for every request, with the last one.
 */
const settled = new LRUCache<string, { subject: string; publicKey: KeyObject; expiresAt: Date }>({
  max: 10_000,
})

/** @throws Failure `delegation_invalid` for what is wrong in the chain itself. */
export function presentChain(dependencies: OfflineDependencies, field: string, now: Date): PresentedChain {
  const { database, origin } = dependencies
  const hash = createHash('sha256').update(`${origin}\n${field}`).digest('base64url')
  const known = settled.get(hash)
  if (known !== undefined && known.expiresAt > now)
    return {
      findKey: async (keyId) => {
        requireSubject(keyId, known.subject)
        return known.publicKey
      },
      settle: async () => {},
    }
  const chain = readChain(field, { origin, now })
  const last = chain.at(-1) ?? chain[0]
  const opened = lazy(() => openChain(database, chain, now))
  const publicKey = lazy(() => importPublicKey(last.publicKey))
  return {
    findKey: async (keyId) => {
      requireSubject(keyId, last.subject)
      await opened()
      return publicKey()
    },
    settle: async () => {
      await settleChain(dependencies, { chain, keys: await opened() }, now)
      const expiresAt = new Date(Math.min(...chain.map((link) => link.expiresAt.getTime())))
      settled.set(hash, { subject: last.subject, publicKey: publicKey(), expiresAt })
    },
  }
}

function requireSubject(keyId: string, subject: string): void {
  if (keyId !== subject)
    throw delegationInvalid('signature', null, 'ends with another key than that of the request’s signature')
}

/** Verifies all signatures, the registered root's first. @returns the keys of the chain that are there. */
async function openChain(database: Connection, chain: Chain, now: Date): Promise<readonly KnownKey[]> {
  const [first, ...others] = chain
  const keys = await findKeys(database, chain)
  const { key: root } = requireRoot(keys, first.issuer, now)
  if ((root.delegation?.path.length ?? 0) + chain.length > MAX_DEPTH)
    throw delegationInvalid('depth', null, `makes more than ${MAX_DEPTH} generations below the root`)
  let signer = root.publicKey ?? ''
  for (const [place, link] of [first, ...others].entries()) {
    if (!(await verifyEd25519(importPublicKey(signer), link.signedBytes, link.signature)))
      throw delegationInvalid('signature', place, 'is not signed by the key that it names')
    signer = link.publicKey
  }
  return keys
}

/** @throws Failure `delegation_invalid`. */
function requireRoot(keys: readonly KnownKey[], issuer: string, now: Date): KnownKey {
  const root = keys.find(({ key }) => key.thumbprint === issuer)
  if (root === undefined || root.key.publicKey === null || root.accountStatus === 'locked')
    throw delegationInvalid('unknown_parent', 0, 'is of a key that is not registered here')
  requireLiving(root.key, 0, now)
  return root
}

/** @param place of the delegation that the key gave. */
function requireLiving({ status, expiresAt }: AccessKey, place: number, now: Date): void {
  if (status === 'revoked') throw delegationInvalid('revoked', place, 'is of a revoked key')
  if (expiresAt !== null && expiresAt <= now)
    throw delegationInvalid('expired', place, 'is of a key that has ended')
}

async function settleChain(
  dependencies: OfflineDependencies,
  opened: { chain: Chain; keys: readonly KnownKey[] },
  now: Date,
): Promise<void> {
  const { chain } = opened
  let { keys } = opened
  let refusal: Failure | null = null
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const { parent, missing: written } = await findMissing(dependencies.database, { chain, keys }, now)
    const missing = await keepContacts(dependencies, { accountId: parent.accountId, missing: written })
    // Another request may have made them meanwhile, and its earmark is no reason to refuse this one.
    if (missing.length === 0) return
    if (refusal !== null && refusal.code !== 'conflict') throw refusal
    requireNarrower(parent.key, missing)
    refusal = await makeKeys(dependencies, { parent, missing }, now)
    if (refusal === null) return
    keys = await findKeys(dependencies.database, chain)
  }
  if (refusal !== null) throw refusal
}

interface Missing {
  readonly place: number
  readonly link: SignedDelegation
}

/** Walks down the chain to the last key that is there. @throws Failure `delegation_invalid`, `conflict`. */
async function findMissing(
  database: Connection,
  { chain, keys }: { chain: Chain; keys: readonly KnownKey[] },
  now: Date,
): Promise<{ parent: KnownKey; missing: readonly Missing[] }> {
  const links = chain.map((link, place) => ({ link, place }))
  let parent = requireRoot(keys, chain[0].issuer, now)
  for (const { link, place } of links) {
    const named = keys.find(({ key }) => key.thumbprint === link.subject)
    const isItsOwn = named?.jti === link.jti && named.key.delegation?.path.at(-1)?.id === parent.key.id
    const child = isItsOwn ? named : await findByJti(database, parent.key.id, link.jti)
    if (child === undefined) {
      const missing = links.slice(place)
      if (keys.some(({ key }) => missing.some((one) => one.link.subject === key.thumbprint)))
        throw new Failure('conflict', 'A public key of the chain is already registered.', {
          hint: 'Give every delegation a new key pair.',
        })
      return { parent, missing }
    }
    if (child.claimsHash !== link.claimsHash)
      throw delegationInvalid('replayed', place, 'has the name of another one with other claims')
    if (child.key.status === 'revoked') throw delegationInvalid('revoked', place, 'was revoked')
    if (child.key.expiresAt !== null && child.key.expiresAt <= now)
      throw delegationInvalid('expired', place, 'has ended')
    parent = child
  }
  return { parent, missing: [] }
}

/** Replaces the names of contacts in policies. @throws Failure `delegation_invalid`. */
function keepContacts(
  dependencies: Pick<OfflineDependencies, 'keepContacts'>,
  { accountId, missing }: { accountId: string; missing: readonly Missing[] },
): Promise<readonly Missing[]> {
  return Promise.all(
    missing.map(async ({ place, link }) => {
      try {
        return { place, link: { ...link, policy: await dependencies.keepContacts(accountId, link.policy) } }
      } catch (error) {
        if (!(error instanceof Failure) || error.code !== 'not_found') throw error
        throw delegationInvalid('wider', place, 'names a contact that the account does not have')
      }
    }),
  )
}

/** @throws Failure `delegation_invalid` for what is plainly wider than its parent, made or not. */
function requireNarrower(
  parent: Pick<AccessKey, 'scopes' | 'policy' | 'expiresAt'>,
  missing: readonly Missing[],
): void {
  let above = parent
  for (const { place, link } of missing) {
    if (!above.scopes.includes('agents:delegate'))
      throw delegationInvalid('wider', place, 'is of a key without the scope agents:delegate')
    const { scopes, issues } = listWider(above, link)
    const members = [...scopes, ...issues.map(({ path }) => path)]
    if (members.length > 0)
      throw delegationInvalid('wider', place, `is wider than the key above it: ${members.join(', ')}`)
    above = link
  }
}

/** Makes keys, all or none. @returns why none was made, which may be that another request has made them. */
async function makeKeys(
  { database, newId, recordDelegated }: OfflineDependencies,
  { parent, missing }: { parent: KnownKey; missing: readonly Missing[] },
  at: Date,
): Promise<Failure | null> {
  const { accountId } = parent
  try {
    await database.transaction(async (transaction) => {
      const made: { readonly parentId: string; readonly key: AccessKey }[] = []
      let above = parent.key
      for (const { link } of missing) {
        const { jti, claimsHash, publicKey, task, name, scopes, policy, expiresAt, isEarmarked } = link
        const key = await insertDelegation(
          { database: transaction, newId },
          {
            accountId,
            parent: above,
            name,
            scopes,
            policy,
            expiresAt,
            credential: { publicKey },
            isEarmarked,
            task: task ?? above.delegation?.task ?? null,
            signed: { jti, claimsHash },
            at,
          },
        )
        made.push({ parentId: above.id, key })
        above = key
      }
      // The journal is locked until the transaction ends.
      for (const one of made) await recordDelegated(transaction, { accountId, ...one, at })
    })
    return null
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

/** Finds the keys that a chain names, revoked ones too. */
async function findKeys(database: Connection, chain: Chain): Promise<readonly KnownKey[]> {
  const thumbprints = [chain[0].issuer, ...chain.map(({ subject }) => subject)]
  const rows = await knownKeys(database).where('access_key.thumbprint', 'in', thumbprints).execute()
  return rows.map(toKnown)
}

async function findByJti(database: Connection, parentId: string, jti: string): Promise<KnownKey | undefined> {
  const row = await knownKeys(database)
    .where(sql<string>`path[cardinality(path)]`, '=', parentId)
    .where('access_key.jti', '=', jti)
    .executeTakeFirst()
  return row === undefined ? undefined : toKnown(row)
}

function knownKeys({ kysely }: Connection) {
  return kysely
    .selectFrom('access_key')
    .innerJoin('account', 'account.id', 'access_key.account_id')
    .select(keyColumns)
    .select([
      'access_key.account_id',
      'account.status as account_status',
      'access_key.jti',
      'access_key.claims_hash',
    ])
}

function toKnown(row: Awaited<ReturnType<ReturnType<typeof knownKeys>['execute']>>[number]): KnownKey {
  return {
    key: withStanding(parseKey(row)),
    accountId: row.account_id,
    accountStatus: row.account_status,
    jti: row.jti,
    claimsHash: row.claims_hash,
  }
}
