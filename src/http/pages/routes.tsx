/**
 * Pages for people, rendered here and alive by a script of our own: nothing on them comes from elsewhere. May import what
 * the transport may; what the script in `client/` does, it does over the same routes as anybody.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { Hono } from 'hono'
import { projectRoot } from '../../base/project-root.ts'
import { Failure, type FailureCode } from '../../failures/failure.ts'
import type { Services } from '../../kernel/context.ts'
import { sessionCookie } from '../authenticate.ts'
import type { Env, HttpContext } from '../request.ts'
import { ApprovalPage } from './approval.tsx'
import { pageHeaders } from './headers.ts'
import { CallbackPage, SignInPage } from './sign-in.tsx'
import { style } from './style.ts'

/** The modules of the script, and the WebAuthn library that it uses. */
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
] as const
/** Where the build has put them. */
const client = new URL('.build/src/http/pages/client/', projectRoot())

const library = new URL(
  '../dist/bundle/index.umd.min.js',
  pathToFileURL(createRequire(import.meta.url).resolve('@simplewebauthn/browser')),
)
const scripts: ReadonlyMap<string, URL> = new Map([
  ['webauthn.js', library],
  ...modules.map((name) => [`${name}.js`, new URL(`${name}.js`, client)] as const),
])

/** The refusals of a session that is over, for now or for good. */
const ended: ReadonlySet<FailureCode> = new Set(['unauthenticated', 'account_locked'])

/** Adds the pages and what they load. */
export function routePages(
  app: Hono<Env>,
  { settings, identityProviders, messages }: Pick<Services, 'settings' | 'identityProviders' | 'messages'>,
): void {
  const providers = [...identityProviders.keys()]
  app.get('/sign-in', (c) => {
    const elsewhere = domainOf(c, settings.webOrigins)
    if (elsewhere !== null) return c.redirect(elsewhere, 302)
    const { principal, refusal } = c.get('caller')
    const told = refusal !== null && ended.has(refusal.code) ? refusal : null
    // A session that does not hold must not get in the way of a new one.
    if (told !== null) c.header('Set-Cookie', sessionCookie(settings.origin, null, c.get('now')))
    return c.html(
      `<!doctype html>${(
        (
          <SignInPage
            isSignedIn={principal.kind === 'session'}
            refusal={told && { detail: told.message, isLocked: told.code === 'account_locked' }}
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
      throw new Failure('not_found', 'There is no identity provider of this name.', {
        hint: 'GET /sign-in shows every way in.',
      })
    const elsewhere = domainOf(c, settings.webOrigins)
    if (elsewhere !== null) return c.redirect(elsewhere, 302)
    return c.html(`<!doctype html>${(<CallbackPage provider={provider} />).toString()}`, 200, pageHeaders)
  })
  app.get('/approvals/:id', (c) => {
    const elsewhere = domainOf(c, settings.webOrigins)
    if (elsewhere !== null) return c.redirect(elsewhere, 302)
    if (c.get('caller').principal.kind !== 'session')
      return c.redirect(`/sign-in?next=${encodeURIComponent(c.req.path)}`, 302)
    return c.html(`<!doctype html>${(<ApprovalPage />).toString()}`, 200, pageHeaders)
  })
  app.get('/assets/sign-in.css', (c) => asset(c, style, 'text/css'))
  for (const [name, file] of scripts)
    app.get(`/assets/${name}`, async (c) => asset(c, await readFile(file, 'utf8'), 'text/javascript'))
}

function asset(c: HttpContext, text: string, type: string): Response {
  return c.body(text, 200, { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-cache' })
}

/**
 * Where a page must be shown for passkeys to work: they belong to a domain, and a loopback address is none. Whoever came
 * through a proxy stays, because the Host that we see may be the proxy's own doing.
 */
function domainOf(c: HttpContext, [first = '']: readonly string[]): string | null {
  const { hostname, port, pathname, search } = new URL(c.req.url)
  const domain = new URL(first)
  const isLoopback = hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
  const isProxied = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host'].some(
    (name) => c.req.header(name) !== undefined,
  )
  if (!isLoopback || isProxied || domain.hostname !== 'localhost' || domain.port !== port) return null
  return `${domain.origin}${pathname}${search}`
}
