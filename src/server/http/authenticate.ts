/** Authenticates requests. Each request may carry exactly one credential. */
import { parse as parseCookies, serialize as serializeCookie } from 'hono/utils/cookie'
import { listOriginNames } from '../../core/base/origins.ts'
import type { AccessKey, Account, KnownBrowser, Principal } from '../../core/base/principal.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Services, Settings } from '../../kernel/context.ts'
import { keepPolicyContacts } from '../../kernel/policy-contacts.ts'
import { browserToken, readBrowserToken } from '../../people/identity/codes/known-browser.ts'
import { API_KEY_PREFIX, authenticateApiKey } from '../../people/identity/keys/api-keys.ts'
import { keyState } from '../../people/identity/keys/key-state.ts'
import { authenticateSignature } from '../../people/identity/keys/request-signature.ts'
import { authenticateAccessToken, isAccessToken } from '../../people/identity/oauth/oauth-tokens.ts'
import {
  authenticateSession,
  type IssuedRenewal,
  type IssuedSession,
  isLastingGuest,
  issueRenewal,
  renewGuestSession,
} from '../../people/identity/sessions/sessions.ts'
import type { Connection } from '../../storage/database.ts'
import { type Caller, type HttpContext, mutatingMethods, readRawRequest } from './request.ts'

/** The session's cookie by its documented name. The `__Host-` prefix requires https. */
export function sessionCookieName(origin: string): string {
  return origin.startsWith('https:') ? '__Host-bursar_session' : 'bursar_session'
}

/**
 * A cookie's name on this gateway. Browsers send a host's cookies to all of its ports, so that two gateways on one host
 * would overwrite each other's: without https, the port is part of the name.
 */
function cookieName(origin: string, name: string): string {
  if (origin.startsWith('https:')) return `__Host-${name}`
  const { port } = new URL(origin)
  return port === '' ? name : `${name}_${port}`
}

/**
 * Builds the Set-Cookie values that set a session; null clears it. Where the port is part of the name, there is one of the
 * documented name too: it counts only without the other.
 */
export function sessionCookies(origin: string, session: IssuedSession | null, now: Date): string[] {
  return sessionCookieNames(origin).map((name) => credentialCookie(origin, name, session, now))
}

function sessionCookieNames(origin: string): string[] {
  return [...new Set([sessionCookieName(origin), cookieName(origin, 'bursar_session')])]
}

function credentialCookie(origin: string, name: string, session: IssuedSession | null, now: Date): string {
  const maxAge =
    session === null ? 0 : Math.max(0, Math.floor((session.expiresAt.getTime() - now.getTime()) / 1000))
  return serializeCookie(name, session?.sessionToken ?? '', {
    path: '/',
    httpOnly: true,
    sameSite: 'Lax',
    secure: origin.startsWith('https:'),
    maxAge,
  })
}

/** Builds the Set-Cookie value by which a guest's browser renews its session; null clears it. */
function renewalCookie(origin: string, renewal: IssuedRenewal | null, now: Date): string {
  const session = renewal === null ? null : { sessionToken: renewal.token, expiresAt: renewal.expiresAt }
  return credentialCookie(origin, cookieName(origin, 'bursar_renewal'), session, now)
}

function setSessionCookie(c: HttpContext, origin: string, session: IssuedSession | null): void {
  for (const [position, cookie] of sessionCookies(origin, session, c.get('now')).entries())
    c.header('Set-Cookie', cookie, { append: position > 0 })
}

/** Sets the cookies of a session: its token, and the renewal of a guest, who could not sign in again. */
export async function setSessionCookies(
  settings: Settings,
  c: HttpContext,
  { account, session }: { account: Pick<Account, 'guest'>; session: IssuedSession },
): Promise<void> {
  const { origin } = settings
  const at = c.get('now')
  setSessionCookie(c, origin, session)
  const isLasting = isLastingGuest(account, settings)
  // The renewal of an earlier guest would bring that guest back after this session.
  if (!isLasting && listRenewals(c, origin).length === 0) return
  const renewal = isLasting ? await issueRenewal(settings, { sessionToken: session.sessionToken, at }) : null
  c.header('Set-Cookie', renewalCookie(origin, renewal, at), { append: true })
}

/** Sets the cookies of a session that was renewed at its authentication. */
export async function renewSessionCookies(settings: Settings, c: HttpContext): Promise<void> {
  const { principal, renewed } = c.get('caller')
  if (renewed === null || principal.kind !== 'session') return
  await setSessionCookies(settings, c, { account: principal.account, session: renewed })
}

/** Clears the cookies of a session. */
export function clearSessionCookies({ origin }: Pick<Settings, 'origin'>, c: HttpContext): void {
  const at = c.get('now')
  setSessionCookie(c, origin, null)
  if (listRenewals(c, origin).length > 0)
    c.header('Set-Cookie', renewalCookie(origin, null, at), { append: true })
}

/** Browsers keep a cookie for at most 400 days. @see https://httpwg.org/http-extensions/draft-ietf-httpbis-rfc6265bis.html */
const BROWSER_SECONDS = 400 * 24 * 60 * 60

/** Builds the Set-Cookie value by which a browser is known after its session ends. It is no credential. */
export function browserCookie(
  { origin, dataKey }: Pick<Settings, 'origin' | 'dataKey'>,
  c: HttpContext,
  accountId: string,
): string {
  const token = browserToken({ dataKey }, accountId, readKnownBrowser({ origin, dataKey }, c))
  return serializeCookie(cookieName(origin, 'bursar_browser'), token, {
    path: '/',
    httpOnly: true,
    sameSite: 'Lax',
    secure: origin.startsWith('https:'),
    maxAge: BROWSER_SECONDS,
  })
}

/** Reads the browser that an account signed in with before; null for others. */
export function readKnownBrowser(
  { origin, dataKey }: Pick<Settings, 'origin' | 'dataKey'>,
  c: HttpContext,
): KnownBrowser | null {
  const header = c.req.header('cookie')
  const name = cookieName(origin, 'bursar_browser')
  const token = header === undefined ? undefined : parseCookies(header, name)[name]
  return token === undefined ? null : readBrowserToken({ dataKey }, token)
}

type Credential =
  | { readonly kind: 'cookie' | 'bearer' | 'api-key'; readonly value: string }
  | { readonly kind: 'signature' }
  | { readonly kind: 'renewal'; readonly value: string }

type AuthenticationServices = Pick<Services, 'database' | 'settings' | 'newId' | 'journal'>

/** Writes a key to the journal that its parent made without asking the gateway. */
function recordDelegated(
  journal: Services['journal'],
  transaction: Connection,
  { accountId, parentId, key, at }: { accountId: string; parentId: string; key: AccessKey; at: Date },
): Promise<void> {
  return journal(transaction, {
    accountId,
    actor: { kind: 'key', id: parentId },
    action: 'key.delegated',
    object: { kind: 'key', id: key.id },
    after: keyState(key),
    at,
  })
}

/**
 * Authenticates the caller. An invalid credential yields a public principal plus the refusal: public routes continue,
 * all others throw it. @throws Failure `ambiguous_credentials`, `provider_unavailable`.
 */
export async function authenticate(services: AuthenticationServices, c: HttpContext): Promise<Caller> {
  try {
    const credential = readCredential(c, services.settings.origin)
    if (credential === undefined) return { principal: { kind: 'public' }, renewed: null, refusal: null }
    return { ...(await verify(services, c, credential)), refusal: null }
  } catch (error) {
    if (!(error instanceof Failure) || ![401, 403, 409, 423].includes(error.status)) throw error
    return { principal: { kind: 'public' }, renewed: null, refusal: error }
  }
}

/**
 * Returns the authenticated principal of a non-public route. @throws Failure with which the credential was rejected.
 */
export function requireCaller(c: HttpContext): Principal {
  const { principal, refusal } = c.get('caller')
  if (refusal !== null) throw refusal
  return principal
}

async function verify(
  { database, settings, newId, journal }: AuthenticationServices,
  c: HttpContext,
  credential: Credential,
) {
  const { origin } = settings
  const now = c.get('now')
  switch (credential.kind) {
    case 'api-key':
      return { principal: await authenticateApiKey(database, credential.value, now), renewed: null }
    case 'signature':
      return {
        principal: await authenticateSignature(
          {
            database,
            origin,
            newId,
            keepContacts: (accountId, policy) =>
              keepPolicyContacts({ database, settings }, { accountId, policy }),
            recordDelegated: (transaction, made) => recordDelegated(journal, transaction, made),
          },
          readRawRequest(c),
          now,
        ),
        renewed: null,
      }
    case 'bearer':
      // OAuth access tokens are valid for /mcp only.
      if (c.req.path === '/mcp' && isAccessToken(credential.value))
        return {
          principal: await authenticateAccessToken({ database, settings }, credential.value, now),
          renewed: null,
        }
      return {
        ...(await authenticateSession(
          { database, settings },
          { token: credential.value, tokenHolder: 'client' },
          now,
        )),
        renewed: null,
      }
    case 'cookie':
      if (mutatingMethods.has(c.req.method)) requireSameSite(c, origin)
      return authenticateSession(
        { database, settings },
        { token: credential.value, tokenHolder: 'browser' },
        now,
      ).catch((error: unknown) => {
        const isExpired = error instanceof Failure && error.code === 'unauthenticated'
        const renewal = isExpired ? readRenewal(c, origin) : undefined
        if (renewal === undefined) throw error
        return renewGuestSession({ database, settings }, renewal, now)
      })
    case 'renewal':
      if (mutatingMethods.has(c.req.method)) requireSameSite(c, origin)
      return renewGuestSession({ database, settings }, credential.value, now)
  }
}

function readCredential(c: HttpContext, origin: string): Credential | undefined {
  const credentials: Credential[] = [
    ...readSessionTokens(c, origin).map((value) => ({ kind: 'cookie' as const, value })),
    ...parseBearer(c.req.header('authorization')),
    ...(c.req.header('signature') === undefined && c.req.header('signature-input') === undefined
      ? []
      : [{ kind: 'signature' as const }]),
  ]
  if (credentials.length > 1)
    throw new Failure(
      'ambiguous_credentials',
      `The request carries ${credentials.map(({ kind }) => kind).join(' and ')}.`,
      {
        hint: 'Send exactly one credential.',
      },
    )
  if (credentials[0] !== undefined) return credentials[0]
  const renewal = readRenewal(c, origin)
  return renewal === undefined ? undefined : { kind: 'renewal', value: renewal }
}

/** Finds the renewal of a guest's browser. It counts only without a credential. @throws Failure `ambiguous_credentials`. */
function readRenewal(c: HttpContext, origin: string): string | undefined {
  const [value, second] = listRenewals(c, origin)
  if (second !== undefined)
    throw new Failure('ambiguous_credentials', 'The request carries two renewal cookies.', {
      hint: 'Clear the cookies of this site.',
    })
  return value
}

function listRenewals(c: HttpContext, origin: string): string[] {
  return cookieValues(c.req.header('cookie') ?? '', cookieName(origin, 'bursar_renewal'))
}

/** Collects the session's tokens in cookies: those of this gateway's own name, else those of the documented one. */
function readSessionTokens(c: HttpContext, origin: string): string[] {
  const header = c.req.header('cookie') ?? ''
  const tokens = sessionCookieNames(origin).map((name) => cookieValues(header, name))
  return tokens.findLast((values) => values.length > 0) ?? []
}

/** Collects every cookie of a name: a page on a neighbouring host can plant a second one. */
function cookieValues(header: string, name: string): string[] {
  return header
    .split(';')
    .flatMap((pair) => Object.values(parseCookies(pair, name)))
    .filter((value) => value !== '')
}

function parseBearer(authorization: string | undefined): Credential[] {
  if (authorization === undefined) return []
  const token = /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1]
  if (token === undefined || token.includes(','))
    throw new Failure('unauthenticated', 'The Authorization header is not a single Bearer credential.', {
      hint: 'Send "Authorization: Bearer <session token or API key>".',
    })
  if (token.startsWith(API_KEY_PREFIX)) return [{ kind: 'api-key', value: token }]
  // Session and access tokens are JSON Web Tokens in three parts.
  if (token.split('.').length !== 3)
    throw new Failure('unauthenticated', 'The bearer token is neither an API key nor a session token.', {
      hint: 'An API key starts with "bsk_": copy the whole of it. An agent’s own key signs its requests instead.',
    })
  return [{ kind: 'bearer', value: token }]
}

/** Browsers attach cookies to cross-site requests; only pages of this origin may make changes with them. */
function requireSameSite(c: HttpContext, origin: string): void {
  const from = c.req.header('origin')
  const origins = listOriginNames(origin)
  const isSameOrigin =
    from === undefined ? c.req.header('sec-fetch-site') === 'same-origin' : origins.includes(from)
  if (!isSameOrigin)
    throw new Failure(
      'cross_site_request',
      `A cookie-authenticated change must come from ${origins.join(' or ')}.`,
      {
        hint: 'Clients that are not browsers send the session token as "Authorization: Bearer …" instead of the cookie.',
      },
    )
}

/**
 * Rejects sign-in and sign-out from other sites, which could otherwise sign a person in to an attacker's account.
 * Clients that are not browsers send no Origin. @throws Failure `cross_site_request`.
 */
export function requireSameSitePage(c: HttpContext, origin: string): void {
  const origins = listOriginNames(origin)
  const from = c.req.header('origin')
  const site = c.req.header('sec-fetch-site') ?? 'none'
  if (from === undefined ? site === 'none' || site === 'same-origin' : origins.includes(from)) return
  throw new Failure('cross_site_request', 'A page of another site cannot sign people in or out.', {
    hint: `Use a page of ${origins.join(' or ')}.`,
  })
}
