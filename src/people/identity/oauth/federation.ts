/** Signs in through identity providers, in two steps joined by a single-use state. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { type NewId, randomToken } from '../../../core/base/ids.ts'
import type { Account } from '../../../core/base/principal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { IdentityProvider, ProvidedIdentity } from '../../../providers/identity-provider/port.ts'
import type { Connection, Database } from '../../../storage/database.ts'
import { createAccount } from '../accounts.ts'
import { openChallenge, takeChallenge } from '../challenges.ts'
import { findAccount } from '../store.ts'

/** Time limit at the provider: 10 minutes. */
const SIGN_IN_SECONDS = 10 * 60

/** Facts stored between the two steps. */
const challengeFacts = z.strictObject({ provider: z.string(), nonce: z.string(), codeVerifier: z.string() })

export interface NamedProvider {
  readonly name: string
  readonly provider: IdentityProvider
  readonly redirectUri: string
}

/** Callback page of a provider. Each provider has its own, so that responses cannot be mixed up. */
export function buildRedirectUri(
  { webOrigins: [first], origin }: { webOrigins: readonly string[]; origin: string },
  name: string,
): string {
  return `${first ?? origin}/sign-in/${name}`
}

/** Starts a sign-in. @returns the URL for the redirect. @throws Failure `provider_unavailable`. */
export async function startFederatedSignIn(
  parts: { database: Connection; newId: NewId },
  { name, provider, redirectUri }: NamedProvider,
  at: Date,
): Promise<{ authorizationUrl: string; state: string }> {
  const secrets = { state: randomToken(32), nonce: randomToken(32), codeVerifier: randomToken(32) }
  const { state, nonce, codeVerifier } = secrets
  const authorizationUrl = await provider.authorizationUrl(secrets, redirectUri)
  await openChallenge(parts, {
    kind: 'identity_provider',
    subject: hashState(state),
    accountId: null,
    facts: { provider: name, nonce, codeVerifier },
    at,
    seconds: SIGN_IN_SECONDS,
  })
  return { authorizationUrl, state }
}

/**
 * Identifies a person after the redirect. The state is consumed before the provider is called. Never call it within a
 * transaction. @throws Failure `unauthenticated`, `provider_unavailable`.
 */
export async function identifyReturned(
  { database }: { database: Database },
  { name, provider, redirectUri }: NamedProvider,
  { code, state, iss, at }: { code: string; state: string; iss: string | null; at: Date },
): Promise<ProvidedIdentity> {
  const by = { subject: hashState(state) }
  const challenge = await takeChallenge(database, { kind: 'identity_provider', by, now: at })
  const facts = challengeFacts.safeParse(challenge?.facts).data
  if (facts?.provider !== name)
    throw new Failure('unauthenticated', 'The sign-in is unknown, completed or expired.', {
      hint: `Start again: POST /api/auth/${name} with {}.`,
    })
  const { nonce, codeVerifier } = facts
  return provider.identify({ code, iss }, { state, nonce, codeVerifier }, redirectUri)
}

/**
 * Finds or creates the account of an identity, by issuer and subject, never by e-mail address, which a provider may
 * reassign. Call it within a transaction. @param furnish sets up a new account.
 */
export async function accountOfIdentity(
  { database, newId }: { database: Connection; newId: NewId },
  { issuer, subject, displayName }: ProvidedIdentity,
  { at, furnish }: { at: Date; furnish: (account: Account) => Promise<void> },
): Promise<Account> {
  const known = await findFederated(database, issuer, subject)
  if (known !== undefined) return known
  // The first request creates the account; concurrent ones wait for the lock and find it.
  await database.call(lockIdentity, [issuer, subject])
  const made = await findFederated(database, issuer, subject)
  if (made !== undefined) return made
  const account = await createAccount(
    { database, newId },
    { displayName: displayName ?? 'Person', guest: false, at },
  )
  await database.kysely
    .insertInto('federated_identity')
    .values({ issuer, subject, account_id: account.id, created_at: at })
    .execute()
  await furnish(account)
  return account
}

const lockIdentity = {
  name: 'identity_lock_federated',
  text: 'select pg_advisory_xact_lock(hashtext($1), hashtext($2))',
}

async function findFederated(
  database: Connection,
  issuer: string,
  subject: string,
): Promise<Account | undefined> {
  const row = await database.kysely
    .selectFrom('federated_identity')
    .select('account_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
  return row === undefined ? undefined : findAccount(database, row.account_id)
}

/** Hashed, so that reading the row does not suffice to complete the sign-in. */
function hashState(state: string): string {
  return createHash('sha256').update(state).digest('base64url')
}
