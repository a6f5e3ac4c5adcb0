/**
 * Server-rendered pages with our own scripts; nothing is loaded from other origins. The scripts in `client/` use the
 * same API routes as every client. May import what the transport may.
 */
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Hono } from 'hono'
import { accepts } from 'hono/accepts'
import type { Account } from '../../../core/base/principal.ts'
import { projectRoot } from '../../../core/base/project-root.ts'
import { Failure, type FailureCode } from '../../../core/failures/failure.ts'
import type { Services } from '../../../kernel/context.ts'
import { grantMembers } from '../../../people/identity/keys/key-grant.ts'
import { clearSessionCookies, renewSessionCookies } from '../authenticate.ts'
import { sendPublic } from '../compressed.ts'
import type { Env, HttpContext } from '../request.ts'
import { parseOwnPage } from './client/own-page.ts'
import { ConnectPage } from './connect.tsx'
import { ConsolePage, consolePaths, icon, manifest } from './console.tsx'
import { DevicePage } from './device.tsx'
import { pageHeaders } from './headers.ts'
import { NotFoundPage } from './not-found.tsx'
import { CallbackPage, SignInPage } from './sign-in.tsx'

/** Script modules; the WebAuthn library is served beside them. */
const modules = [
  'sign-in',
  'api',
  'elements',
  'attempts',
  'session',
  'step-up',
  'passkeys',
  'codes',
  'recovery',
  'providers',
  'next',
  'own-page',
  'consent',
  'grant',
  'planned-agent',
  'connect',
  'device',
  'sign-out',
] as const
/** Build output of the script modules. */
const client = new URL('.build/pages/', projectRoot())

/** The client as a package that npm installs from this gateway, so that both are of one version. */
const clientPackage = new URL('.build/bursar-client.tgz', projectRoot())

/** The library of passkeys, and modules. */
const scripts: ReadonlyMap<string, URL> = new Map(
  ['webauthn', ...modules].map((name) => [`${name}.js`, new URL(`${name}.js`, client)]),
)

/** Failure codes of a session that is no longer valid. */
const invalidSessionCodes: ReadonlySet<FailureCode> = new Set(['unauthenticated', 'account_locked'])

export function routePages(
  app: Hono<Env>,
  {
    settings,
    identityProviders,
    messages,
    chain,
  }: Pick<Services, 'settings' | 'identityProviders' | 'messages'> & {
    readonly chain: { readonly name: string }
  },
): void {
  const providers = [...identityProviders.keys()]
  app.get('/sign-in', async (c) => {
    const webOriginUrl = findWebOriginRedirect(c, settings.webOrigins)
    if (webOriginUrl !== null) return c.redirect(webOriginUrl, 302)
    const { principal, refusal } = c.get('caller')
    await renewSessionCookies(settings, c)
    if (principal.kind === 'session') return c.redirect(parseOwnPage(c.req.query('next') ?? '') ?? '/', 302)
    const sessionFailure = refusal !== null && invalidSessionCodes.has(refusal.code) ? refusal : null
    // Clears the invalid cookie, so that it cannot block a new sign-in.
    if (sessionFailure !== null) clearSessionCookies(settings, c)
    return c.html(
      `<!doctype html>${(
        (
          <SignInPage
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
    app.get(path, async (c) => {
      const webOriginUrl = findWebOriginRedirect(c, settings.webOrigins)
      if (webOriginUrl !== null) return c.redirect(webOriginUrl, 302)
      const { principal } = c.get('caller')
      if (principal.kind !== 'session')
        return c.redirect(
          `/sign-in?next=${encodeURIComponent(`${c.req.path}${new URL(c.req.url).search}`)}`,
          302,
        )
      await renewSessionCookies(settings, c)
      return c.html(`<!doctype html>${render(principal.account).toString()}`, 200, pageHeaders)
    })
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
  for (const path of consolePaths)
    routeOwnerPage(path, () => <ConsolePage mode={settings.mode} chain={chain.name} />)
  app.get('/favicon.ico', (c) => asset(c, { name: 'favicon.ico', text: icon, type: 'image/svg+xml' }))
  app.get('/manifest.webmanifest', (c) =>
    asset(c, { name: 'manifest.webmanifest', text: manifest, type: 'application/manifest+json' }),
  )
  routeConsoleFiles(app)
  app.get('/bursar-client.tgz', async (c) =>
    c.body(new Uint8Array(await readFile(clientPackage)), 200, {
      'Content-Type': 'application/gzip',
      'Cache-Control': 'no-cache',
    }),
  )
  for (const [name, file] of scripts)
    app.get(`/assets/${name}`, async (c) =>
      asset(c, { name, text: await readFile(file, 'utf8'), type: 'text/javascript' }),
    )
}

/** True for a browser that opens an address outside the API. */
export function wantsPage(c: HttpContext): boolean {
  if (
    c.req.method !== 'GET' ||
    /^\/(api|sandbox|mcp|webhooks|assets|oauth|\.well-known)(\/|$)/.test(c.req.path)
  )
    return false
  const types = ['application/json', 'text/html']
  return accepts(c, { header: 'Accept', supports: types, default: 'application/json' }) === 'text/html'
}

export function notFoundPage(c: HttpContext): Response | Promise<Response> {
  return c.html(`<!doctype html>${(<NotFoundPage />).toString()}`, 404, pageHeaders)
}

/** Build output of the console: entries by name, and parts whose names change with their content. */
const consoleFiles = new URL('.build/console/', projectRoot())
const YEAR_SECONDS = 31_536_000

/** Serves the scripts and the stylesheet of the console. */
function routeConsoleFiles(app: Hono<Env>): void {
  const names = readdirSync(consoleFiles).filter((name) => /\.(js|css)$/.test(name))
  for (const name of names) {
    const type = name.endsWith('.css') ? 'text/css' : 'text/javascript'
    const isFixed = /-[A-Z0-9]{8}\.js$/.test(name)
    const caching = isFixed ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache'
    app.get(`/assets/${name}`, async (c) => {
      const text = await readFile(new URL(name, consoleFiles), 'utf8')
      return asset(c, { name, text, type, caching })
    })
  }
}

function asset(
  c: HttpContext,
  { name, text, type, caching = 'no-cache' }: { name: string; text: string; type: string; caching?: string },
): Promise<Response> {
  const headers = { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': caching }
  return sendPublic(c, { name: `/assets/${name}`, text, headers })
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
