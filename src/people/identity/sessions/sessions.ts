/**
 * Sessions of people: a short-lived signed token with a revocable database row.
 * @see https://www.rfc-editor.org/rfc/rfc7519
 */
import { createSecretKey, type KeyObject } from 'node:crypto'
import { errors, type JWTVerifyOptions, jwtVerify, SignJWT } from 'jose'
import { LRUCache } from 'lru-cache'
import type { NewId } from '../../../core/base/ids.ts'
import type { Account, Person, Principal, Session } from '../../../core/base/principal.ts'
import { keyedHash } from '../../../core/base/seal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection } from '../../../storage/database.ts'
import { findRole, type RoleSettings, requireUnlocked } from '../accounts.ts'
import { findSession } from '../store.ts'

/** Lifetime of a token: 15 minutes. Renewed when less than half is left. */
const TOKEN_SECONDS = 15 * 60
/** Maximum lifetime of a person's session: 12 hours. */
const SESSION_SECONDS = 12 * 60 * 60
const DAY_SECONDS = 24 * 60 * 60
/** Lifetime of a guest's session after its last use: 30 days. */
const GUEST_SECONDS = 30 * DAY_SECONDS
const TYPE = 'bursar-session+jwt'
const RENEWAL_TYPE = 'bursar-renewal+jwt'

/** True for guests of the sandbox: they cannot sign in again, so their sessions stay and their browsers renew them. */
export function isLastingGuest(
  { guest }: Pick<Account, 'guest'>,
  { mode }: Pick<RoleSettings, 'mode'>,
): boolean {
  return guest && mode === 'sandbox'
}

export function sessionSeconds(
  account: Pick<Account, 'guest'>,
  settings: Pick<RoleSettings, 'mode'>,
): number {
  return isLastingGuest(account, settings) ? GUEST_SECONDS : SESSION_SECONDS
}

/** @property origin issuer and audience of tokens. */
export interface TokenSettings {
  readonly sessionKey: Uint8Array
  /** Keys that tokens are verified with too, during a rotation. */
  readonly previousSessionKeys: readonly Uint8Array[]
  readonly origin: string
}

export interface IssuedSession {
  readonly sessionToken: string
  /** Expiry of the token; it is renewed earlier. */
  readonly expiresAt: Date
}

// Importing a key costs as much as a verification, so key objects are cached by the secret's bytes.
const keyObjects = new LRUCache<string, KeyObject>({ max: 4 })

function keyObject(secret: Uint8Array): KeyObject {
  const name = Buffer.from(secret).toString('base64')
  const known = keyObjects.get(name) ?? createSecretKey(secret)
  keyObjects.set(name, known)
  return known
}

/** Sign-in method. */
export type SessionMethod = 'passkey' | 'email' | 'sms' | 'identity_provider' | 'guest' | 'recovery'

/** Method of a session that a signed-in person allowed for a program on another device. */
const DEVICE_METHOD = 'device'

export async function openSession(
  { database, newId, settings }: { database: Connection; newId: NewId; settings: TokenSettings },
  {
    accountId,
    method,
    seconds = SESSION_SECONDS,
    at,
  }: { accountId: string; method: SessionMethod; seconds?: number; at: Date },
): Promise<IssuedSession> {
  const sessionId = newId('sess', at)
  const endsAt = await insertSession(database, { sessionId, accountId, method, name: null, at, seconds })
  return signToken(settings, { accountId, sessionId, endsAt, at })
}

/** Opens the session of a program that a person allowed. @param name name of the program. @returns its id. */
export async function openDeviceSession(
  { database, newId }: { database: Connection; newId: NewId },
  { accountId, name, at }: { accountId: string; name: string; at: Date },
): Promise<string> {
  const sessionId = newId('sess', at)
  await insertSession(database, { sessionId, accountId, method: DEVICE_METHOD, name, at })
  return sessionId
}

/** Issues the token of a program: valid as long as its session, because a program that does not run cannot renew it. */
export function issueDeviceToken(
  settings: TokenSettings,
  { accountId, sessionId, endsAt, at }: { accountId: string; sessionId: string; endsAt: Date; at: Date },
): Promise<IssuedSession> {
  return signToken(settings, { accountId, sessionId, endsAt, at }, { seconds: SESSION_SECONDS })
}

/** @returns the end of the session. */
async function insertSession(
  { kysely }: Connection,
  {
    sessionId,
    accountId,
    method,
    name,
    at,
    seconds = SESSION_SECONDS,
  }: {
    sessionId: string
    accountId: string
    method: SessionMethod | typeof DEVICE_METHOD
    name: string | null
    at: Date
    seconds?: number
  },
): Promise<Date> {
  const endsAt = new Date(at.getTime() + seconds * 1000)
  await kysely
    .insertInto('session')
    .values({
      id: sessionId,
      account_id: accountId,
      method,
      name,
      created_at: at,
      expires_at: endsAt,
      revoked_at: null,
    })
    .execute()
  return endsAt
}

async function signToken(
  settings: TokenSettings,
  { accountId, sessionId, endsAt, at }: { accountId: string; sessionId: string; endsAt: Date; at: Date },
  { seconds = TOKEN_SECONDS, type = TYPE }: { seconds?: number; type?: string } = {},
): Promise<IssuedSession> {
  const expiresAt = new Date(Math.min(at.getTime() + seconds * 1000, endsAt.getTime()))
  const sessionToken = await new SignJWT({ sid: sessionId })
    .setProtectedHeader({ alg: 'HS256', typ: type })
    .setSubject(accountId)
    .setIssuer(settings.origin)
    .setAudience(settings.origin)
    .setIssuedAt(at)
    .setExpirationTime(expiresAt)
    .sign(keyObject(settings.sessionKey))
  return { sessionToken, expiresAt }
}

/** Issues a new token for an authenticated session. */
export function renewToken(
  settings: TokenSettings,
  { person, session, at }: { person: Pick<Person, 'id'>; session: Session; at: Date },
): Promise<IssuedSession> {
  const { id: sessionId, expiresAt: endsAt } = session
  return signToken(settings, { accountId: person.id, sessionId, endsAt, at })
}

/** Renewal token of a guest's browser. It is no session token: only {@link renewGuestSession} accepts it. */
export interface IssuedRenewal {
  readonly token: string
  readonly expiresAt: Date
}

/** Issues the token by which a browser renews a guest's session after its token expired. @param sessionToken the guest's. */
export async function issueRenewal(
  settings: TokenSettings,
  { sessionToken, at }: { sessionToken: string; at: Date },
): Promise<IssuedRenewal> {
  const { accountId, sessionId } = await verifyToken(settings, sessionToken, at)
  const endsAt = new Date(at.getTime() + GUEST_SECONDS * 1000)
  const lasting = { seconds: GUEST_SECONDS, type: RENEWAL_TYPE }
  const { sessionToken: token, expiresAt } = await signToken(
    settings,
    { accountId, sessionId, endsAt, at },
    lasting,
  )
  return { token, expiresAt }
}

/** Ends the longer life of a guest's sessions: the account has become a person's. */
export async function endGuestLifetime(
  { kysely }: Connection,
  { accountId, at }: { accountId: string; at: Date },
): Promise<void> {
  const endsAt = new Date(at.getTime() + SESSION_SECONDS * 1000)
  await kysely
    .updateTable('session')
    .set({ expires_at: endsAt })
    .where('account_id', '=', accountId)
    .where('expires_at', '>', endsAt)
    .execute()
}

/** Extends a guest's session by its use, at most once a day. @returns the end of the session. */
async function extendGuestSession(
  { kysely }: Connection,
  { sessionId, endsAt, at }: { sessionId: string; endsAt: Date; at: Date },
): Promise<Date> {
  const wanted = new Date(at.getTime() + GUEST_SECONDS * 1000)
  if (wanted.getTime() - endsAt.getTime() < DAY_SECONDS * 1000) return endsAt
  await kysely
    .updateTable('session')
    .set({ expires_at: wanted })
    .where('id', '=', sessionId)
    .where('revoked_at', 'is', null)
    .execute()
  return wanted
}

/** @property renewed new token, if the old one is past half its lifetime. */
export interface SessionCaller {
  readonly principal: Extract<Principal, { kind: 'session' }>
  readonly renewed: IssuedSession | null
}

/** @throws Failure `unauthenticated` when the token or its session is not valid, `account_locked`. */
export async function authenticateSession(
  { database, settings }: { database: Connection; settings: TokenSettings & RoleSettings },
  { token, tokenHolder }: { token: string; tokenHolder: Session['tokenHolder'] },
  now: Date,
): Promise<SessionCaller> {
  const claims = await verifyToken(settings, token, now)
  const { account, person, session } = await loadSession({ database, settings }, claims, { tokenHolder, now })
  const leftMs = claims.expiresAt.getTime() - now.getTime()
  // A guest's token of an earlier version lasts for 30 days, and is replaced.
  const isRenewed =
    leftMs < (TOKEN_SECONDS * 1000) / 2 || (!session.isDevice && leftMs > TOKEN_SECONDS * 1000)
  const renewed = isRenewed ? await renewToken(settings, { person, session, at: now }) : null
  return { principal: { kind: 'session', account, person, session }, renewed }
}

/**
 * Authenticates the browser of a guest whose token has expired, and renews it. @throws Failure `unauthenticated` when the
 * renewal token or its session is not valid, or the account is no guest's any more; `account_locked`.
 */
export async function renewGuestSession(
  { database, settings }: { database: Connection; settings: TokenSettings & RoleSettings },
  renewalToken: string,
  now: Date,
): Promise<SessionCaller> {
  const claims = await verifySignature(settings, { token: renewalToken, type: RENEWAL_TYPE }, now)
  const how = { tokenHolder: 'browser', now } as const
  const { account, person, session } = await loadSession({ database, settings }, claims, how)
  if (session.isDevice || !isLastingGuest(account, settings))
    throw notSignedIn('The session token has expired.')
  const renewed = await renewToken(settings, { person, session, at: now })
  const tokenExpiresAt = renewed.expiresAt
  return { principal: { kind: 'session', account, person, session: { ...session, tokenExpiresAt } }, renewed }
}

/** Loads the session of a verified token, and extends that of a guest. @throws Failure `unauthenticated`, `account_locked`. */
async function loadSession(
  { database, settings }: { database: Connection; settings: RoleSettings },
  { accountId, sessionId, expiresAt: tokenExpiresAt }: TokenClaims,
  { tokenHolder, now }: { tokenHolder: Session['tokenHolder']; now: Date },
): Promise<{ account: Account; person: Person; session: Session }> {
  const found = await findSession(database, sessionId, now)
  if (found === undefined || found.person.id !== accountId)
    throw notSignedIn('The session has expired or was revoked.')
  requireUnlocked(found.person)
  requireUnlocked(found.account)
  const { createdAt, steppedUpAt } = found
  const isDevice = found.method === DEVICE_METHOD
  const expiresAt =
    !isDevice && isLastingGuest(found.account, settings)
      ? await extendGuestSession(database, { sessionId, endsAt: found.expiresAt, at: now })
      : found.expiresAt
  return {
    account: { ...found.account, role: findRole({ ...found.account, id: found.person.id }, settings) },
    person: found.person,
    session: { id: sessionId, createdAt, isDevice, steppedUpAt, tokenHolder, tokenExpiresAt, expiresAt },
  }
}

/** Claims of a token whose signature was verified. @property accountId the person's own account. @property expiresAt in whole seconds. */
interface TokenClaims {
  readonly accountId: string
  readonly sessionId: string
  readonly expiresAt: Date
}

// A token comes with each request of its session, and its signature stays valid; what may change is read each time.
const verifiedTokens = new LRUCache<string, TokenClaims>({ max: 2_000 })

async function verifyToken(settings: TokenSettings, token: string, now: Date): Promise<TokenClaims> {
  const name = keyedHash(settings.sessionKey, 'session token', `${settings.origin} ${token}`)
  const known = verifiedTokens.get(name)
  if (known !== undefined) {
    if (known.expiresAt > now) return known
    throw notSignedIn('The session token has expired.')
  }
  const claims = await verifySignature(settings, { token, type: TYPE }, now)
  verifiedTokens.set(name, claims)
  return claims
}

async function verifySignature(
  settings: TokenSettings,
  { token, type }: { token: string; type: string },
  now: Date,
): Promise<TokenClaims> {
  const keys = [settings.sessionKey, ...settings.previousSessionKeys]
  try {
    const { payload } = await verifyByAny(token, keys, {
      algorithms: ['HS256'],
      typ: type,
      issuer: settings.origin,
      audience: settings.origin,
      requiredClaims: ['sub', 'sid', 'exp'],
      currentDate: now,
    })
    if (typeof payload.sub !== 'string' || typeof payload.sid !== 'string' || payload.exp === undefined)
      throw notSignedIn('The session token was not issued by this gateway.')
    return { accountId: payload.sub, sessionId: payload.sid, expiresAt: new Date(payload.exp * 1000) }
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    if (cause instanceof errors.JWTExpired) throw notSignedIn('The session token has expired.')
    throw notSignedIn('The session token is not valid.')
  }
}

/** Verifies by the first key that made the signature. @throws the error of the last one. */
async function verifyByAny(token: string, keys: readonly Uint8Array[], options: JWTVerifyOptions) {
  for (const key of keys.slice(0, -1))
    try {
      return await jwtVerify(token, keyObject(key), options)
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error
    }
  return jwtVerify(token, keyObject(keys.at(-1) ?? new Uint8Array()), options)
}

function notSignedIn(detail: string): Failure {
  return new Failure('unauthenticated', detail, {
    hint: 'Sign in again; GET /sign-in lists the sign-in methods.',
  })
}
