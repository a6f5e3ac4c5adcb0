/**
 * Server-rendered pages with our own scripts; nothing is loaded from other origins. The scripts in `client/` use the
 * same API routes as every client. May import what the transport may.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { Hono } from 'hono'
import type { Account } from '../../base/principal.ts'
import { projectRoot } from '../../base/project-root.ts'
import { Failure, type FailureCode } from '../../failures/failure.ts'
import { grantMembers } from '../../identity/keys/key-grant.ts'
import type { Services } from '../../kernel/context.ts'
import { sessionCookie } from '../authenticate.ts'
import type { Env, HttpContext } from '../request.ts'
import { ApprovalPage } from './approval.tsx'
import { ConnectPage } from './connect.tsx'
import { DevicePage } from './device.tsx'
import { pageHeaders } from './headers.ts'
import { CallbackPage, SignInPage } from './sign-in.tsx'
import { style } from './style.ts'

/** Script modules; the WebAuthn library is served beside them. */
const modules = [
  'sign-in',
  'api',
  'elements',
  'attempts',
  'session',
  'step-up',
  'account',
  'passkeys',
  'codes',
  'recovery',
  'providers',
  'next',
  'consent',
  'approval',
  'grant',
  'connect',
  'device',
] as const
/** Build output of the script modules. */
const client = new URL('.build/src/http/pages/client/', projectRoot())

const library = new URL(
  '../dist/bundle/index.umd.min.js',
  pathToFileURL(createRequire(import.meta.url).resolve('@simplewebauthn/browser')),
)
const scripts: ReadonlyMap<string, URL> = new Map([
  ['webauthn.js', library],
  ...modules.map((name) => [`${name}.js`, new URL(`${name}.js`, client)] as const),
])

/** Failure codes of a session that is no longer valid. */
const invalidSessionCodes: ReadonlySet<FailureCode> = new Set(['unauthenticated', 'account_locked'])

export function routePages(
  app: Hono<Env>,
  { settings, identityProviders, messages }: Pick<Services, 'settings' | 'identityProviders' | 'messages'>,
): void {
  const providers = [...identityProviders.keys()]
  app.get('/sign-in', (c) => {
    const webOriginUrl = findWebOriginRedirect(c, settings.webOrigins)
    if (webOriginUrl !== null) return c.redirect(webOriginUrl, 302)
    const { principal, refusal } = c.get('caller')
    const sessionFailure = refusal !== null && invalidSessionCodes.has(refusal.code) ? refusal : null
    // Clears the invalid cookie, so that it cannot block a new sign-in.
    if (sessionFailure !== null) c.header('Set-Cookie', sessionCookie(settings.origin, null, c.get('now')))
    return c.html(
      `<!doctype html>${(
        (
          <SignInPage
            isSignedIn={principal.kind === 'session'}
            refusal={
              sessionFailure && {
                detail: sessionFailure.message,
                isLocked: sessionFailure.code === 'account_locked',
              }
            }
            isSandbox={settings.mode === 'sandbox'}
            channels={messages.channels}
            providers={providers}
            guests={settings.guests}
          />
        )
      ).toString()}`,
      200,
      pageHeaders,
    )
  })
  app.get('/sign-in/:provider', (c) => {
    const provider = c.req.param('provider')
    if (!identityProviders.has(provider))
      throw new Failure('not_found', 'No identity provider has this name.', {
        hint: 'GET /sign-in lists the sign-in methods.',
      })
    const webOriginUrl = findWebOriginRedirect(c, settings.webOrigins)
    if (webOriginUrl !== null) return c.redirect(webOriginUrl, 302)
    return c.html(`<!doctype html>${(<CallbackPage provider={provider} />).toString()}`, 200, pageHeaders)
  })
  /** Adds a page for signed-in owners; others sign in first. */
  const routeOwnerPage = (path: string, render: (account: Account) => { toString(): string }) =>
    app.get(path, (c) => {
      const webOriginUrl = findWebOriginRedirect(c, settings.webOrigins)
      if (webOriginUrl !== null) return c.redirect(webOriginUrl, 302)
      const { principal } = c.get('caller')
      if (principal.kind !== 'session')
        return c.redirect(`/sign-in?next=${encodeURIComponent(c.req.path)}`, 302)
      return c.html(`<!doctype html>${render(principal.account).toString()}`, 200, pageHeaders)
    })
  routeOwnerPage('/approvals/:id', () => <ApprovalPage />)
  routeOwnerPage('/agents/connect/:code', ({ id, displayName }) => (
    <ConnectPage
      person={displayName}
      accountId={id}
      scopes={grantMembers.scopes.in.element.options}
      isSandbox={settings.mode === 'sandbox'}
    />
  ))
  routeOwnerPage('/devices/:code', ({ id, displayName }) => (
    <DevicePage person={displayName} accountId={id} isSandbox={settings.mode === 'sandbox'} />
  ))
  app.get('/assets/sign-in.css', (c) => asset(c, style, 'text/css'))
  for (const [name, file] of scripts)
    app.get(`/assets/${name}`, async (c) => asset(c, await readFile(file, 'utf8'), 'text/javascript'))
}

function asset(c: HttpContext, text: string, type: string): Response {
  return c.body(text, 200, { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-cache' })
}

/**
 * Redirects loopback addresses to the web origin, because passkeys are bound to a domain. Requests through a proxy
 * stay, because the proxy may have set the Host header.
 */
function findWebOriginRedirect(c: HttpContext, [first = '']: readonly string[]): string | null {
  const { hostname, port, pathname, search } = new URL(c.req.url)
  const domain = new URL(first)
  const isLoopback = hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
  const isProxied = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host'].some(
    (name) => c.req.header(name) !== undefined,
  )
  if (!isLoopback || isProxied || domain.hostname !== 'localhost' || domain.port !== port) return null
  return `${domain.origin}${pathname}${search}`
}
