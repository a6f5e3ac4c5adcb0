/** Authenticates requests. Each request may carry exactly one credential. */
import { parse as parseCookies, serialize as serializeCookie } from 'hono/utils/cookie'
import { namesOfOrigin } from '../base/origins.ts'
import type { Principal } from '../base/principal.ts'
import { Failure } from '../failures/failure.ts'
import { API_KEY_PREFIX, authenticateApiKey } from '../identity/keys/api-keys.ts'
import { authenticateSignature } from '../identity/keys/request-signature.ts'
import { authenticateAccessToken, isAccessToken } from '../identity/oauth/oauth-tokens.ts'
import { authenticateSession, type IssuedSession } from '../identity/sessions/sessions.ts'
import type { Services } from '../kernel/context.ts'
import { type Caller, type HttpContext, mutatingMethods, rawRequestOf } from './request.ts'

/** The `__Host-` prefix requires https. */
function cookieName(origin: string): string {
  return origin.startsWith('https:') ? '__Host-bursar_session' : 'bursar_session'
}

/** Builds the Set-Cookie value that sets a session; null clears it. */
export function sessionCookie(origin: string, session: IssuedSession | null, now: Date): string {
  const maxAge =
    session === null ? 0 : Math.max(0, Math.floor((session.expiresAt.getTime() - now.getTime()) / 1000))
  return serializeCookie(cookieName(origin), session?.sessionToken ?? '', {
    path: '/',
    httpOnly: true,
    sameSite: 'Lax',
    secure: origin.startsWith('https:'),
    maxAge,
  })
}

type Credential =
  | { readonly kind: 'cookie' | 'bearer' | 'api-key'; readonly value: string }
  | { readonly kind: 'signature' }

/**
 * Authenticates the caller. An invalid credential yields a public principal plus the refusal: public routes continue,
 * all others throw it. @throws Failure `ambiguous_credentials`, `provider_unavailable`.
 */
export async function authenticate(
  services: Pick<Services, 'database' | 'settings'>,
  c: HttpContext,
): Promise<Caller> {
  try {
    const credential = credentialOf(c, services.settings.origin)
    if (credential === undefined) return { principal: { kind: 'public' }, renewed: null, refusal: null }
    return { ...(await verify(services, c, credential)), refusal: null }
  } catch (error) {
    if (!(error instanceof Failure) || ![401, 403, 423].includes(error.status)) throw error
    return { principal: { kind: 'public' }, renewed: null, refusal: error }
  }
}

/**
 * Returns the authenticated principal of a non-public route. @throws Failure with which the credential was rejected.
 */
export function callerOf(c: HttpContext): Principal {
  const { principal, refusal } = c.get('caller')
  if (refusal !== null) throw refusal
  return principal
}

async function verify(
  { database, settings }: Pick<Services, 'database' | 'settings'>,
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
        principal: await authenticateSignature({ database, origin }, rawRequestOf(c), now),
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
      )
  }
}

function credentialOf(c: HttpContext, origin: string): Credential | undefined {
  const credentials: Credential[] = [
    ...cookiesOf(c.req.header('cookie') ?? '', cookieName(origin)),
    ...bearerOf(c.req.header('authorization')),
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
  return credentials[0]
}

/** Collects every session cookie: a page on a neighbouring host can plant a second one. */
function cookiesOf(header: string, name: string): Credential[] {
  return header
    .split(';')
    .flatMap((pair) => Object.entries(parseCookies(pair, name)))
    .flatMap(([, value]) => (value === '' ? [] : [{ kind: 'cookie' as const, value }]))
}

function bearerOf(authorization: string | undefined): Credential[] {
  if (authorization === undefined) return []
  const token = /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1]
  if (token === undefined || token.includes(','))
    throw new Failure('unauthenticated', 'The Authorization header is not a single Bearer credential.', {
      hint: 'Send "Authorization: Bearer <session token or API key>".',
    })
  return [{ kind: token.startsWith(API_KEY_PREFIX) ? 'api-key' : 'bearer', value: token }]
}

/** Browsers attach cookies to cross-site requests; only pages of this origin may make changes with them. */
function requireSameSite(c: HttpContext, origin: string): void {
  const from = c.req.header('origin')
  const origins = namesOfOrigin(origin)
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
  const origins = namesOfOrigin(origin)
  const from = c.req.header('origin')
  const site = c.req.header('sec-fetch-site') ?? 'none'
  if (from === undefined ? site === 'none' || site === 'same-origin' : origins.includes(from)) return
  throw new Failure('cross_site_request', 'A page of another site cannot sign people in or out.', {
    hint: `Use a page of ${origins.join(' or ')}.`,
  })
}
