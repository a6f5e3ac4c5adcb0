/** The authenticated caller. Read from the database on every request. */

export interface Account {
  readonly id: string
  readonly role: 'user' | 'admin'
  readonly status: 'active' | 'locked'
  readonly guest: boolean
  readonly displayName: string
  readonly kycLevel: string
  /** True if a second factor is active. */
  readonly mfaEnrolled: boolean
  readonly createdAt: Date
  /** Proof that a command made it the administrator of production; see `findRole`. */
  readonly founderMac?: string | null
  /** How many people must agree to its payments, by amount; absent or empty: nobody is asked by it. */
  readonly quorums?: readonly { readonly above: string; readonly count: number }[]
}

export interface Session {
  readonly id: string
  /** Time of the sign-in. */
  readonly createdAt: Date
  /** True for a program's session, which a signed-in person allowed: its start proves no identity. */
  readonly isDevice: boolean
  /** Time of the last second factor in this session. */
  readonly steppedUpAt: Date | null
  /** Holder of the token: a client that can read it, or a browser that hides it from scripts. */
  readonly tokenHolder: 'client' | 'browser'
  /** Expiry of the presented token. */
  readonly tokenExpiresAt: Date
  /** Final expiry; renewals of the token cannot extend it. */
  readonly expiresAt: Date
}

/** What a person may do in an account, from least to most: each may do what those before it may. */
export const memberRoles = ['accountant', 'viewer', 'approver', 'owner'] as const

/**
 * `accountant` reads money and statements, `viewer` reads everything, `approver` decides on approvals too, `owner` does everything.
 */
export type MemberRole = (typeof memberRoles)[number]

/** True if a role includes another one. */
export function includesRole(role: MemberRole, least: MemberRole): boolean {
  return memberRoles.indexOf(role) >= memberRoles.indexOf(least)
}

/** A key that acts for an account: an agent's, a developer's or an OAuth grant's. */
export interface AccessKey {
  /** `key_…`; an agent's `agentId`. */
  readonly id: string
  readonly kind: 'agent' | 'developer' | 'grant'
  readonly name: string
  /** RFC 7638 thumbprint of an agent's public key: its `keyid`. */
  readonly thumbprint: string | null
  /** An agent's Ed25519 public key, 32 bytes as base64url. */
  readonly publicKey: string | null
  readonly scopes: readonly string[]
  readonly status: 'active' | 'paused' | 'revoked'
  /** The stored spend policy document, unparsed. */
  readonly policy: unknown
  readonly policyVersion: number
  readonly policyHash: string | null
  readonly createdAt: Date
  readonly expiresAt: Date | null
  /** Time of the key's first call; absent where it was not read. */
  readonly firstUsedAt?: Date | null
  /** When the key was stopped, null while it is active; absent where it was not read. */
  readonly pausedAt?: Date | null
  /** Absent: the key is its owner's own, and spends below no other. */
  readonly delegation?: Delegation
}

/** A key above another one, whose policy judges its spends too. */
export type Ancestor = Pick<AccessKey, 'id' | 'name' | 'status' | 'scopes' | 'policy' | 'policyVersion'>

/** What a key got from another one. @property path its ancestors, root first. */
export interface Delegation {
  readonly path: readonly [Ancestor, ...Ancestor[]]
  /** What its ancestors set aside for it, in millionths of a US dollar; null: nothing. */
  readonly earmarkMicros: bigint | null
  /** What all its spends are labeled with; null: each call may say it. */
  readonly task: string | null
}

/** State of a key as it counts: one below a paused key is paused. A revocation is written to every key below. */
export function effectiveStatus({
  status,
  delegation,
}: Pick<AccessKey, 'status' | 'delegation'>): AccessKey['status'] {
  if (status !== 'active') return status
  return delegation?.path.every((ancestor) => ancestor.status === 'active') === false ? 'paused' : 'active'
}

/** State of a key as it is shown: one that has ended by itself says so. No key outlives one above it. */
export function shownStatus(
  key: Pick<AccessKey, 'status' | 'delegation' | 'expiresAt'>,
  now: Date,
): AccessKey['status'] | 'expired' {
  const hasEnded = key.expiresAt !== null && key.expiresAt <= now
  return hasEnded && key.status !== 'revoked' ? 'expired' : effectiveStatus(key)
}

/** @property expiresAt from then on the signature is too old to be repeated. */
export interface SignatureNonce {
  readonly value: string
  readonly expiresAt: Date
}

/**
 * The person of a session. They keep their own account as their identity, with their factors and sessions, whichever account
 * they act for. @property id id of that account. @property role what they may do in the account that they act for.
 */
export interface Person extends Pick<Account, 'id' | 'status'> {
  readonly role: MemberRole
}

/** `session` is a person, `key` acts for its owner, `public` is unauthenticated. */
export type Principal =
  | { readonly kind: 'public' }
  | {
      readonly kind: 'session'
      /** The account that the person acts for. Its name, second factor, and its role here are the person's. */
      readonly account: Account
      readonly person: Person
      readonly session: Session
    }
  | {
      readonly kind: 'key'
      readonly account: Account
      readonly key: AccessKey
      /** Nonce that a signed request used up. */
      readonly nonce?: SignatureNonce
    }

export type AccountPrincipal = Exclude<Principal, { kind: 'public' }>

/** Browser that an account signed in with before. It is no credential. @property id of the browser and the account. */
export interface KnownBrowser {
  readonly id: string
  readonly accountId: string
}
