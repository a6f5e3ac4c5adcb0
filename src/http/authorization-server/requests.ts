/** What a request to the authorization server says before the library reads it. */
import { z } from 'zod'
import { isStorable, parseJson } from '../../base/json.ts'
import { namesOfOrigin } from '../../base/origins.ts'
import { Failure } from '../../failures/failure.ts'
import { isScope, scopes } from '../../identity/keys/grantable.ts'
import { authenticateAccessToken, isAccessToken, resourceOf } from '../../identity/oauth/oauth-tokens.ts'
import type { Services } from '../../kernel/context.ts'
import { type HttpContext, rawTargetOf } from '../request.ts'

/** The error of OAuth for a text that nothing can hold: U+0000 or half a surrogate pair; undefined: there is none. */
export function unstorableError(c: HttpContext): 'invalid_request' | 'invalid_client_metadata' | undefined {
  const [, query = ''] = rawTargetOf(c).split('?', 2)
  const text = Buffer.from(c.get('body')).toString('utf8')
  if (isJson(c)) return isStorableForm(query) && isStorableJson(text) ? undefined : 'invalid_client_metadata'
  return isStorableForm(query) && isStorableForm(text) ? undefined : 'invalid_request'
}

function isJson(c: HttpContext): boolean {
  return /^application\/json\b/i.test(c.req.header('content-type') ?? '')
}

function isStorableForm(text: string): boolean {
  return [...new URLSearchParams(text)].every(([name, value]) => isStorable(name) && isStorable(value))
}

function isStorableJson(text: string): boolean {
  try {
    JSON.parse(text)
  } catch {
    // What is no JSON is told so by the library.
    return true
  }
  try {
    parseJson(text)
    return true
  } catch {
    return false
  }
}

/** A request as the library takes it, or what the client is told instead. */
type Taken =
  | { readonly target: string; readonly body: Uint8Array }
  | { readonly error: 'invalid_target'; readonly error_description: string }

/** What is known of clients and grants. @property scopeOf what a client registered to ask for; undefined: anything. */
interface Known {
  readonly refreshTokenOf: (grantId: string) => Promise<string | undefined>
  readonly scopeOf: (clientId: string) => Promise<string | undefined>
}

/** What a request means where the library would read something else in it. */
export async function normalizeForProvider(
  c: HttpContext,
  services: Pick<Services, 'database' | 'settings'>,
  { refreshTokenOf, scopeOf }: Known,
): Promise<Taken> {
  const body = c.get('body')
  const target = rawTargetOf(c)
  const [path = '', query = ''] = target.split('?', 2)
  const form = () => new URLSearchParams(Buffer.from(body).toString('utf8'))
  const of = (text: string) => Buffer.from(text)
  const { origin } = services.settings
  switch (`${c.req.method} ${path.slice(path.lastIndexOf('/') + 1)}`) {
    case 'GET authorize':
      return {
        target: `${path}?${await withScopes(withResource(new URLSearchParams(query), origin), scopeOf)}`,
        body,
      }
    case 'POST authorize':
      return { target, body: of((await withScopes(withResource(form(), origin), scopeOf)).toString()) }
    case 'POST register':
      return { target, body: of(asRegistration(Buffer.from(body).toString('utf8'))) }
    case 'POST revoke':
      return { target, body: of((await asRevocation(form(), c, services, refreshTokenOf)).toString()) }
    case 'POST token': {
      // The library would look at it when the code or the refresh token is used up already.
      const resource = resourceOf(origin)
      const asked = withResource(form(), origin)
      if (asked.getAll('resource').every((one) => one === resource))
        return { target, body: asked.has('resource') ? of(asked.toString()) : body }
      return { error: 'invalid_target', error_description: `resource: is not ${resource}` }
    }
    default:
      return { target, body }
  }
}

/** The resource by the one name that tokens have it by, whatever name of this machine the client knows it by. */
function withResource(asked: URLSearchParams, origin: string): URLSearchParams {
  const names = namesOfOrigin(origin).map(resourceOf)
  const resources = asked.getAll('resource')
  asked.delete('resource')
  for (const one of resources) asked.append('resource', names.includes(one) ? resourceOf(origin) : one)
  return asked
}

/** Who asks for nothing that we know is offered everything: the owner picks. What is asked for is said, so that it is no new question. */
async function withScopes(asked: URLSearchParams, scopeOf: Known['scopeOf']): Promise<URLSearchParams> {
  const named = asked.getAll('scope')
  // Two of them are an error, which the library tells.
  if (named.length > 1) return asked
  const words = wordsOf(named[0] ?? '')
  if (words.some(isScope)) return asked
  const registered = wordsOf((await scopeOf(asked.get('client_id') ?? '')) ?? '').filter(isScope)
  const offered = registered.length > 0 ? registered : Object.keys(scopes)
  asked.set('scope', [...words, ...offered].join(' '))
  return asked
}

function wordsOf(scope: string): string[] {
  return scope.split(' ').filter((word) => word !== '')
}

/**
 * A client that names no method of authentication gets none, and so no secret; one that means to ask for nothing of ours
 * may ask for anything. What is no object is told so by the library.
 */
function asRegistration(text: string): string {
  const parsed = z.looseObject({ scope: z.unknown() }).safeParse(jsonOf(text)).data
  if (parsed === undefined) return text
  const { scope, ...metadata } = parsed
  const isOurs = typeof scope !== 'string' || wordsOf(scope).some(isScope)
  return JSON.stringify({
    token_endpoint_auth_method: 'none',
    ...metadata,
    ...(scope !== undefined && isOurs ? { scope } : {}),
  })
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * A revocation. The library revokes what it stores, and access tokens it does not: in place of one stands the grant's refresh
 * token, so that the client is checked as for any other, and the key ends with it. One that is over already stands for nothing.
 * @see https://www.rfc-editor.org/rfc/rfc7009#section-2.2
 */
async function asRevocation(
  form: URLSearchParams,
  c: HttpContext,
  { database, settings }: Pick<Services, 'database' | 'settings'>,
  refreshTokenOf: Known['refreshTokenOf'],
): Promise<URLSearchParams> {
  const token = form.get('token') ?? ''
  if (!isAccessToken(token)) return form
  const principal = await authenticateAccessToken({ database, settings }, token, c.get('now')).catch(
    (error: unknown) => {
      if (error instanceof Failure && over.has(error.code)) return null
      throw error
    },
  )
  const other = principal?.kind === 'key' ? await refreshTokenOf(principal.key.id) : 'over'
  if (other === undefined) return form
  form.set('token', other)
  form.delete('token_type_hint')
  return form
}

/** What an access token that can be used no more is told. */
const over: ReadonlySet<string> = new Set(['unauthenticated', 'unknown_key'])
