/** The sign-in form of the sandbox's identity provider. It requires no proof of identity. */
import { createHash } from 'node:crypto'
import type { Adapter, Provider } from 'oidc-provider'
import { z } from 'zod'
import { Failure } from '../../../core/failures/failure.ts'
import { requireNodePair } from '../oidc/handle-with-node-response.ts'
import type { HttpContext } from '../request.ts'
import type { SandboxClient } from './client.ts'
import { signInErrorPage, signInPage } from './sign-in-page.ts'

const MONTH_SECONDS = 30 * 24 * 60 * 60

const form = z.object({
  email: z.email().max(254),
  name: z
    .string()
    .trim()
    .max(100)
    .regex(/^\P{Cc}*$/u)
    .default(''),
})

interface InteractionParts {
  readonly provider: Provider
  readonly people: Adapter
  readonly clients: readonly SandboxClient[]
}

/** Renders the form on GET and processes it on POST. */
export async function handleInteraction(c: HttpContext, parts: InteractionParts): Promise<Response> {
  const { incoming, outgoing } = requireNodePair(c)
  setPageHeaders(c, parts.clients)
  const details = await parts.provider.interactionDetails(incoming, outgoing).catch((error: unknown) => {
    if (error instanceof Error && error.name === 'SessionNotFound') return null
    throw error
  })
  if (details === null || !c.req.path.endsWith(`/${details.uid}`))
    return c.html(signInErrorPage('This sign-in has expired. Go back and start again.'), 400)
  const application = String(details.params.client_id)
  switch (c.req.method) {
    case 'GET':
    case 'HEAD':
      return c.html(signInPage({ application, trouble: null }))
    case 'POST':
      return submit(c, { ...parts, application })
    default:
      c.set('allow', 'GET, POST')
      throw new Failure('method_not_allowed', `${c.req.method} is not allowed here; use GET or POST.`)
  }
}

async function submit(
  c: HttpContext,
  { provider, people, application }: InteractionParts & { application: string },
): Promise<Response> {
  const { incoming, outgoing } = requireNodePair(c)
  const given = Object.fromEntries(new URLSearchParams(new TextDecoder().decode(c.get('body'))))
  if (given.action === 'cancel') {
    const result = { error: 'access_denied', error_description: 'The person cancelled.' }
    return c.redirect(await provider.interactionResult(incoming, outgoing, result), 303)
  }
  const parsed = form.safeParse(given)
  if (!parsed.success)
    return c.html(signInPage({ application, trouble: 'The e-mail address or name is not valid.' }), 400)
  const { email, name } = parsed.data
  const accountId = hashSubject(application, email)
  const person = { accountId, email, name: name === '' ? (email.split('@')[0] ?? email) : name }
  await people.upsert(accountId, person, MONTH_SECONDS)
  const result = { login: { accountId, remember: false } }
  return c.redirect(await provider.interactionResult(incoming, outgoing, result), 303)
}

/** Derives a subject per client, because Google and Apple issue different subjects for the same person. */
function hashSubject(clientId: string, email: string): string {
  return createHash('sha256').update(`${clientId} ${email.toLowerCase()}`).digest('base64url')
}

/** Browsers apply form-action to redirects after the form post too. */
function setPageHeaders(c: HttpContext, clients: readonly SandboxClient[]): void {
  const origins = [...new Set(clients.map(({ redirectUri }) => new URL(redirectUri).origin))]
  c.header(
    'Content-Security-Policy',
    `default-src 'none'; style-src 'unsafe-inline'; form-action 'self' ${origins.join(' ')}; frame-ancestors 'none'; base-uri 'none'`,
  )
  c.header('Referrer-Policy', 'no-referrer')
}
