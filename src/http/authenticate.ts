/** Which credential a request carries, and who that is. One request, one credential. */
import { parse as parseCookies, serialize as serializeCookie } from 'hono/utils/cookie'
import { Failure } from '../failure.ts'
import { API_KEY_PREFIX, authenticateApiKey } from '../identity/api-keys.ts'
import { authenticateSignature } from '../identity/request-signature.ts'
import { authenticateSession, type IssuedSession } from '../identity/sessions.ts'
import type { Services } from '../kernel/context.ts'
import type { Principal } from '../principal.ts'
import { type HttpContext, mutatingMethods, rawRequestOf } from './request.ts'

/** The session cookie's name: the `__Host-` prefix needs https. */
function cookieName(origin: string): string {
  return origin.startsWith('https:') ? '__Host-bursar_session' : 'bursar_session'
}

/** The Set-Cookie line that hands out a session; null ends it. */
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

/** The caller, or `public` where the request carries no credential. @throws Failure per contract sections 2 to 4. */
export async function authenticate(
  services: Pick<Services, 'database' | 'settings'>,
  c: HttpContext,
): Promise<{ principal: Principal; renewed: IssuedSession | null }> {
  const credential = credentialOf(c, services.settings.origin)
  const now = c.get('now')
  switch (credential?.kind) {
    case undefined:
      return { principal: { kind: 'public' }, renewed: null }
    case 'api-key':
      return { principal: await authenticateApiKey(services.database, credential.value, now), renewed: null }
    case 'signature': {
      const { database, settings } = services
      return {
        principal: await authenticateSignature({ database, origin: settings.origin }, rawRequestOf(c), now),
        renewed: null,
      }
    }
    case 'cookie':
      if (mutatingMethods.has(c.req.method)) requireSameSite(c, services.settings.origin)
      return authenticateSession(services, credential.value, now).catch(endedSession)
    case 'bearer':
      return { ...(await authenticateSession(services, credential.value, now)), renewed: null }
  }
}

/** A browser sends a cookie whose session has ended wherever it goes, also to where it would sign in again: it counts as none. */
function endedSession(error: unknown): { principal: Principal; renewed: null } {
  if (error instanceof Failure && error.code === 'unauthenticated')
    return { principal: { kind: 'public' }, renewed: null }
  throw error
}

function credentialOf(c: HttpContext, origin: string): Credential | undefined {
  const cookie = parseCookies(c.req.header('cookie') ?? '', cookieName(origin))[cookieName(origin)]
  const credentials: Credential[] = [
    ...(cookie === undefined || cookie === '' ? [] : [{ kind: 'cookie' as const, value: cookie }]),
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

function bearerOf(authorization: string | undefined): Credential[] {
  if (authorization === undefined) return []
  const token = /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1]
  if (token === undefined || token.includes(','))
    throw new Failure('unauthenticated', 'The Authorization header is not a single Bearer credential.', {
      hint: 'Send "Authorization: Bearer <session token or API key>".',
    })
  return [{ kind: token.startsWith(API_KEY_PREFIX) ? 'api-key' : 'bearer', value: token }]
}

/** A browser sends cookies along from anywhere; only our own pages may change things with them. */
function requireSameSite(c: HttpContext, origin: string): void {
  const from = c.req.header('origin')
  const isOurs = from === undefined ? c.req.header('sec-fetch-site') === 'same-origin' : from === origin
  if (!isOurs)
    throw new Failure('cross_site_request', `A cookie-authenticated change must come from ${origin}.`, {
      hint: 'Clients without a browser send the session token as "Authorization: Bearer …" instead of the cookie.',
    })
}
