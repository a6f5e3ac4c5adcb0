/** Who is calling: what a credential turned into. Read anew from the database on every request. */

/** The account behind a caller. */
export interface Account {
  readonly id: string
  readonly role: 'user' | 'admin'
  readonly status: 'active' | 'locked'
  readonly guest: boolean
  readonly displayName: string
  readonly kycLevel: string
  /** Whether a second factor is active. */
  readonly mfaEnrolled: boolean
  readonly createdAt: Date
}

/** A person's session. */
export interface Session {
  readonly id: string
  /** When the person signed in. */
  readonly createdAt: Date
  /** When a second factor was last shown on it. */
  readonly steppedUpAt: Date | null
  /** Who keeps its token: a client that can read it, or a browser that hides it from scripts. */
  readonly tokenHolder: 'client' | 'browser'
  /** When the token that it was shown by ends. */
  readonly tokenExpiresAt: Date
  /** When it ends, renewed or not. */
  readonly expiresAt: Date
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
  /** The spend policy's document as it was stored; parsed where it is judged. */
  readonly policy: unknown
  readonly policyVersion: number
  readonly policyHash: string | null
  readonly createdAt: Date
  readonly expiresAt: Date | null
}

/** A caller. `session` is a person, `key` acts for its owner, `public` is anybody. */
export type Principal =
  | { readonly kind: 'public' }
  | { readonly kind: 'session'; readonly account: Account; readonly session: Session }
  | { readonly kind: 'key'; readonly account: Account; readonly key: AccessKey }

/** A caller with an account. */
export type AccountPrincipal = Exclude<Principal, { kind: 'public' }>
