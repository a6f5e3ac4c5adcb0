/** Normalizes requests to the authorization server before the library parses them. */
import { z } from 'zod'
import { isStorable, parseJson } from '../../../core/base/json.ts'
import { namesOfOrigin } from '../../../core/base/origins.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Services } from '../../../kernel/context.ts'
import { isScope, scopes } from '../../../people/identity/keys/grantable.ts'
import {
  authenticateAccessToken,
  buildResource,
  isAccessToken,
} from '../../../people/identity/oauth/oauth-tokens.ts'
import { type HttpContext, readRawTarget } from '../request.ts'

/** Returns the OAuth error for text that the database cannot store (U+0000 or an unpaired surrogate), or undefined. */
export function unstorableError(c: HttpContext): 'invalid_request' | 'invalid_client_metadata' | undefined {
  const [, query = ''] = readRawTarget(c).split('?', 2)
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
    // The library rejects invalid JSON itself.
    return true
  }
  try {
    parseJson(text)
    return true
  } catch {
    return false
  }
}

type NormalizedRequest =
  | { readonly target: string; readonly body: Uint8Array }
  | { readonly error: 'invalid_target'; readonly error_description: string }

/** Look-ups of stored clients and grants. @property findScope scopes that a client registered; undefined means any. */
interface GrantLookups {
  readonly findRefreshToken: (grantId: string) => Promise<string | undefined>
  readonly findScope: (clientId: string) => Promise<string | undefined>
}

/**
 * Rewrites a request where the library would interpret it differently: resource aliases, default scopes, registration
 * defaults and revocation of access tokens.
 */
export async function normalizeForProvider(
  c: HttpContext,
  services: Pick<Services, 'database' | 'settings'>,
  { findRefreshToken, findScope }: GrantLookups,
): Promise<NormalizedRequest> {
  const body = c.get('body')
  const target = readRawTarget(c)
  const [path = '', query = ''] = target.split('?', 2)
  const form = () => new URLSearchParams(Buffer.from(body).toString('utf8'))
  const encode = (text: string) => Buffer.from(text)
  const { origin } = services.settings
  switch (`${c.req.method} ${path.slice(path.lastIndexOf('/') + 1)}`) {
    case 'GET authorize':
      return {
        target: `${path}?${await withScopes(withResource(new URLSearchParams(query), origin), findScope)}`,
        body,
      }
    case 'POST authorize':
      return { target, body: encode((await withScopes(withResource(form(), origin), findScope)).toString()) }
    case 'POST register':
      return { target, body: encode(normalizeRegistration(Buffer.from(body).toString('utf8'))) }
    case 'POST revoke':
      return {
        target,
        body: encode((await normalizeRevocation(form(), c, services, findRefreshToken)).toString()),
      }
    case 'POST token': {
      // The library checks the resource only after it has consumed the code or refresh token.
      const resource = buildResource(origin)
      const parameters = withResource(form(), origin)
      if (parameters.getAll('resource').every((one) => one === resource))
        return { target, body: parameters.has('resource') ? encode(parameters.toString()) : body }
      return { error: 'invalid_target', error_description: `resource must be ${resource}` }
    }
    default:
      return { target, body }
  }
}

/** Replaces any known alias of the resource by its canonical name, which tokens carry. */
function withResource(parameters: URLSearchParams, origin: string): URLSearchParams {
  const names = namesOfOrigin(origin).map(buildResource)
  const resources = parameters.getAll('resource')
  parameters.delete('resource')
  for (const one of resources)
    parameters.append('resource', names.includes(one) ? buildResource(origin) : one)
  return parameters
}

/**
 * Offers all scopes to a client that requests none we support; the owner selects among them. The scopes are written
 * into the request, so that the consent covers them.
 */
async function withScopes(
  parameters: URLSearchParams,
  findScope: GrantLookups['findScope'],
): Promise<URLSearchParams> {
  const named = parameters.getAll('scope')
  // The library rejects a repeated scope parameter.
  if (named.length > 1) return parameters
  const requested = splitScope(named[0] ?? '')
  if (requested.some(isScope)) return parameters
  const registered = splitScope((await findScope(parameters.get('client_id') ?? '')) ?? '').filter(isScope)
  const offered = registered.length > 0 ? registered : Object.keys(scopes)
  parameters.set('scope', [...requested, ...offered].join(' '))
  return parameters
}

function splitScope(scope: string): string[] {
  return scope.split(' ').filter((word) => word !== '')
}

/**
 * Defaults to no client authentication, so no secret is issued, and drops a registered scope that names none of ours,
 * so the client may request any. The library rejects bodies that are not objects.
 */
function normalizeRegistration(text: string): string {
  const parsed = z.looseObject({ scope: z.unknown() }).safeParse(parseJsonText(text)).data
  if (parsed === undefined) return text
  const { scope, ...metadata } = parsed
  const isOurs = typeof scope !== 'string' || splitScope(scope).some(isScope)
  return JSON.stringify({
    token_endpoint_auth_method: 'none',
    ...metadata,
    ...(scope !== undefined && isOurs ? { scope } : {}),
  })
}

function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Rewrites a revocation. The library revokes only tokens it stores, and access tokens are not stored: an access token
 * is replaced by its grant's refresh token, so the client is checked as usual and the key is revoked with it. An
 * expired access token becomes an unknown token. @see https://www.rfc-editor.org/rfc/rfc7009#section-2.2
 */
async function normalizeRevocation(
  form: URLSearchParams,
  c: HttpContext,
  { database, settings }: Pick<Services, 'database' | 'settings'>,
  findRefreshToken: GrantLookups['findRefreshToken'],
): Promise<URLSearchParams> {
  const token = form.get('token') ?? ''
  if (!isAccessToken(token)) return form
  const principal = await authenticateAccessToken({ database, settings }, token, c.get('now')).catch(
    (error: unknown) => {
      if (error instanceof Failure && invalidTokenCodes.has(error.code)) return null
      throw error
    },
  )
  const other = principal?.kind === 'key' ? await findRefreshToken(principal.key.id) : 'over'
  if (other === undefined) return form
  form.set('token', other)
  form.delete('token_type_hint')
  return form
}

/** Failure codes of access tokens that are no longer valid. */
const invalidTokenCodes: ReadonlySet<string> = new Set(['unauthenticated', 'unknown_key'])
