/**
 * Sessions of people: a short-lived signed token with a revocable database row.
 * @see https://www.rfc-editor.org/rfc/rfc7519
 */
import { createSecretKey, type KeyObject } from 'node:crypto'
import { errors, jwtVerify, SignJWT } from 'jose'
import { LRUCache } from 'lru-cache'
import type { NewId } from '../../base/ids.ts'
import type { Account, Principal, Session } from '../../base/principal.ts'
import { keyedHash } from '../../base/seal.ts'
import { Failure } from '../../failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import { type RoleSettings, requireUnlocked, roleOf } from '../accounts.ts'
import { findSession } from '../store.ts'

/** Lifetime of a token: 15 minutes. Renewed when less than half is left. */
const TOKEN_SECONDS = 15 * 60
/** Maximum lifetime of a person's session: 12 hours. */
const SESSION_SECONDS = 12 * 60 * 60
const TYPE = 'bursar-session+jwt'

/** Seconds that a token and its session live. */
interface Lifetime {
  readonly token: number
  readonly session: number
}

const DAY_SECONDS = 24 * 60 * 60
const personLifetime: Lifetime = { token: TOKEN_SECONDS, session: SESSION_SECONDS }
/** A guest cannot sign in again, and the sandbox has no money: the session stays until 30 days after its last use. */
const guestLifetime: Lifetime = { token: 30 * DAY_SECONDS, session: 30 * DAY_SECONDS }

export function lifetimeOf(
  { guest }: Pick<Account, 'guest'>,
  { mode }: Pick<RoleSettings, 'mode'>,
): Lifetime {
  return guest && mode === 'sandbox' ? guestLifetime : personLifetime
}

/** @property origin issuer and audience of tokens. */
export interface TokenSettings {
  readonly sessionKey: Uint8Array
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
    lifetime = personLifetime,
    at,
  }: { accountId: string; method: SessionMethod; lifetime?: Lifetime; at: Date },
): Promise<IssuedSession> {
  const sessionId = newId('sess', at)
  const seconds = lifetime.session
  const endsAt = await insertSession(database, { sessionId, accountId, method, name: null, at, seconds })
  return signToken(settings, { accountId, sessionId, endsAt, at }, lifetime.token)
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
  return signToken(settings, { accountId, sessionId, endsAt, at }, SESSION_SECONDS)
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
  seconds = TOKEN_SECONDS,
): Promise<IssuedSession> {
  const expiresAt = new Date(Math.min(at.getTime() + seconds * 1000, endsAt.getTime()))
  const sessionToken = await new SignJWT({ sid: sessionId })
    .setProtectedHeader({ alg: 'HS256', typ: TYPE })
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
  settings: TokenSettings & RoleSettings,
  { account, session, at }: { account: Account; session: Session; at: Date },
): Promise<IssuedSession> {
  const { id: sessionId, expiresAt: endsAt } = session
  const { token } = lifetimeOf(account, settings)
  return signToken(settings, { accountId: account.id, sessionId, endsAt, at }, token)
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
  const wanted = new Date(at.getTime() + guestLifetime.session * 1000)
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
  const { accountId, sessionId, expiresAt } = await verifyToken(settings, token, now)
  const found = await findSession(database, sessionId, now)
  if (found === undefined || found.account.id !== accountId)
    throw notSignedIn('The session has expired or was revoked.')
  requireUnlocked(found.account)
  const lifetime = lifetimeOf(found.account, settings)
  const isGuest = lifetime === guestLifetime
  const endsAt = isGuest
    ? await extendGuestSession(database, { sessionId, endsAt: found.expiresAt, at: now })
    : found.expiresAt
  const isDevice = found.method === DEVICE_METHOD
  const leftMs = expiresAt.getTime() - now.getTime()
  // A guest's token follows its session. That of a guest who became a person is replaced by a person's.
  const isRenewed = isGuest
    ? endsAt.getTime() - expiresAt.getTime() >= DAY_SECONDS * 1000
    : leftMs < (TOKEN_SECONDS * 1000) / 2 || (!isDevice && leftMs > TOKEN_SECONDS * 1000)
  const renewed = isRenewed
    ? await signToken(settings, { accountId, sessionId, endsAt, at: now }, lifetime.token)
    : null
  const account = { ...found.account, role: roleOf(found.account, settings) }
  const { steppedUpAt } = found
  const session = {
    id: sessionId,
    createdAt: found.createdAt,
    isDevice,
    steppedUpAt,
    tokenHolder,
    tokenExpiresAt: expiresAt,
    expiresAt: endsAt,
  }
  return { principal: { kind: 'session', account, session }, renewed }
}

/** Claims of a token whose signature was verified. @property expiresAt in whole seconds. */
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
  const claims = await verifySignature(settings, token, now)
  verifiedTokens.set(name, claims)
  return claims
}

async function verifySignature(settings: TokenSettings, token: string, now: Date): Promise<TokenClaims> {
  try {
    const { payload } = await jwtVerify(token, keyObject(settings.sessionKey), {
      algorithms: ['HS256'],
      typ: TYPE,
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

function notSignedIn(detail: string): Failure {
  return new Failure('unauthenticated', detail, {
    hint: 'Sign in again; GET /sign-in lists the sign-in methods.',
  })
}
