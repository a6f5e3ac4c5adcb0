/** Tables of `sql/migrations/0001-baseline/01-people.sql`: sign-in methods. */
import type { Generated } from 'kysely'
import type { JsonColumn } from './schema.ts'

/**
 * A single-use challenge. `subject` is the value presented by the client: a WebAuthn challenge, an OAuth state, a
 * destination's keyed hash.
 */
export interface ChallengeTable {
  id: string
  kind: 'passkey_register' | 'passkey_login' | 'otp' | 'recovery' | 'identity_provider'
  subject: string
  account_id: string | null
  facts: JsonColumn
  tries: Generated<number>
  created_at: Date
  expires_at: Date
}

/** `credential_id` is the authenticator's id, base64url; `public_key` is COSE. */
export interface PasskeyTable {
  credential_id: string
  id: string
  account_id: string
  public_key: Uint8Array
  counter: bigint
  transports: readonly string[]
  device_type: 'singleDevice' | 'multiDevice'
  backed_up: boolean
  created_at: Date
  last_used_at: Date | null
}

/** A sign-in address: its keyed hash, and the encrypted address. */
export interface LoginDestinationTable {
  destination_hash: string
  account_id: string
  channel: 'email' | 'sms'
  sealed_address: Uint8Array
  created_at: Date
}

/** An identity at an identity provider. */
export interface FederatedIdentityTable {
  issuer: string
  subject: string
  account_id: string
  created_at: Date
}

/** A second factor (TOTP). `last_time_step` is the newest used step. */
export interface MfaTable {
  account_id: string
  sealed_secret: Uint8Array
  status: 'pending' | 'active'
  last_time_step: Generated<bigint>
  created_at: Date
  activated_at: Date | null
}

/** A recovery code as keyed hash. */
export interface MfaRecoveryCodeTable {
  account_id: string
  code_hash: string
  used_at: Date | null
}

/** A failed second factor of a signed-in session. */
export interface FailedFactorTable {
  account_id: string
  at: Date
}

/** Outbox of undelivered sandbox messages. */
export interface SandboxMessageTable {
  id: string
  channel: 'email' | 'sms'
  destination: string
  code: string
  body: string
  sent_at: Date
}

/** Storage of the OpenID providers that the gateway serves. */
export interface OpenidRecordTable {
  model: string
  id: string
  payload: JsonColumn
  grant_id: string | null
  uid: string | null
  expires_at: Date | null
  consumed_at: Date | null
}
