/**
 * The authorization server for MCP clients: OAuth 2.1 with PKCE, dynamic registration, client metadata documents,
 * resource indicators, rotation and revocation. The library implements the protocol; the owner chooses account,
 * scopes and policy on our consent page, and each grant becomes an agent key.
 */
import type { IncomingMessage } from 'node:http'
import type { Adapter, AdapterFactory, Provider } from 'oidc-provider'
import { derivedSeed } from '../../../core/base/seal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Services } from '../../../kernel/context.ts'
import { agentKinds, revokeKey } from '../../../people/identity/keys/owned-keys.ts'
import { buildIssuer, exportTokenJwks } from '../../../people/identity/oauth/oauth-tokens.ts'
import { findKey } from '../../../people/identity/store.ts'
import { limitAddress } from '../limits.ts'
import { handleWithNodeResponse, type NodeListener } from '../oidc/handle-with-node-response.ts'
import { loadProviderLibrary } from '../oidc/load-provider.ts'
import { createOpenIdStorage, findGrantRecord, listGrantIds } from '../oidc/storage.ts'
import type { HttpContext } from '../request.ts'
import { oauthConfiguration } from './configuration.ts'
import { answerConsent } from './consent.tsx'
import { keepErrors } from './keep-errors.ts'
import { leadsToOwnMachine } from './redirect-uris.ts'
import { normalizeForProvider, unstorableError } from './requests.ts'

/** Path of the consent page. */
const CONSENT = '/oauth/consent'

const METADATA = '/.well-known/oauth-authorization-server'

/** Metadata path of an issuer with a path component. */
export const AUTHORIZATION_METADATA = `${METADATA}/oauth`

/** Lifetime of a registered client without a grant, because registration is public. */
const UNGRANTED_CLIENT_SECONDS = 24 * 60 * 60

const MAX_REGISTRATION_BYTES = 8 * 1024

/**
 * Exact paths that are served. The library's router also accepts other cases and trailing slashes, which would bypass
 * the checks by path that run before it.
 */
const KNOWN_PATH =
  /^\/oauth\/(authorize(\/[\w-]+)?|consent\/[\w-]+|token|register|revoke|jwks|\.well-known\/[\w-]+)$/

/** Rate classes of the routes where unauthenticated requests create records. */
const rateClasses: ReadonlyMap<string, string> = new Map([
  ['/oauth/authorize', 'authorizations'],
  ['/oauth/register', 'registrations'],
])

interface LoadedProvider {
  readonly provider: Provider
  readonly listener: NodeListener
}

/** Serves all routes below `/oauth` and the metadata document. The library is loaded by the first request. */
export function createAuthorizationServer(services: Services): (c: HttpContext) => Promise<Response> {
  const { settings, database, journal, clock, log } = services
  const storage = createOpenIdStorage(services)
  let loaded: Promise<LoadedProvider> | undefined
  const requests = new WeakMap<IncomingMessage, HttpContext>()
  // Revoking a client's tokens revokes the grant's key.
  const revokeGrantKey: RevokeGrantKey = async (id) => {
    const found = await findKey(database, { id })
    if (found === undefined) return
    const accountId = found.account.id
    await database.transaction(async (transaction) => {
      if (!(await revokeKey(transaction, { accountId, kinds: agentKinds, id }))) return
      const actor = { kind: 'key', id } as const
      const object = { kind: 'key', id }
      await journal(transaction, { accountId, actor, action: 'key.revoked', object, at: clock() })
    })
  }

  const load = async (): Promise<LoadedProvider> => {
    const library = await loadProviderLibrary()
    const configuration = oauthConfiguration({
      origin: settings.origin,
      consentPath: CONSENT,
      // The sandbox's identity provider uses the same table, so model names are prefixed.
      storage: (model) => createModelStorage(storage, model, revokeGrantKey),
      cookieKey: Buffer.from(derivedSeed(settings.dataKey, 'oauth cookies')).toString('base64url'),
      signingKeys: await exportTokenJwks(settings.accessTokenKey),
      library,
      isLive: async (id) => (await findKey(database, { id })) !== undefined,
      fetchPublic: services.fetchPublic,
    })
    const provider = new library.Provider(buildIssuer(settings.origin), configuration)
    // handleWithNodeResponse sets the forwarded host and scheme, so they can be trusted.
    provider.proxy = true
    provider.on('server_error', (_context, err) => log.error({ err }, 'the authorization server failed'))
    keepErrors(provider, async (request, failed) => {
      const c = requests.get(request)
      if (c === undefined) return false
      if (await hasApproved(services, c, failed.clientId)) return true
      return failed.isDenial && leadsToOwnMachine(failed.redirectUri)
    })
    const listener = provider.callback()
    return { provider, listener }
  }

  return async (c) => {
    requireKnownPath(c)
    await requireFewRequests(c, services)
    const error = unstorableError(c)
    if (error !== undefined) {
      const error_description = 'the request contains U+0000 or an unpaired surrogate'
      return c.json({ error, error_description }, 400, { 'Cache-Control': 'no-store' })
    }
    if (c.req.path === '/oauth/register' && c.get('body').byteLength > MAX_REGISTRATION_BYTES) {
      const error_description = `the metadata is over ${MAX_REGISTRATION_BYTES} bytes`
      return c.json({ error: 'invalid_client_metadata', error_description }, 400)
    }
    loaded ??= load()
    const { provider, listener } = await loaded.catch((error: unknown) => {
      loaded = undefined
      throw error
    })
    const issuer = buildIssuer(settings.origin)
    if (c.req.path.startsWith(`${CONSENT}/`)) return answerConsent(c, { provider, services })
    // The path is inserted after the well-known segment, not before it.
    // @see https://www.rfc-editor.org/rfc/rfc8414#section-3.1
    if (c.req.path === AUTHORIZATION_METADATA)
      return handleWithNodeResponse(c, listener, new URL(issuer), `/oauth${METADATA}`)
    const webOriginUrl = findWebOriginRedirect(c, services)
    if (webOriginUrl !== null) return c.redirect(webOriginUrl, 302)
    const normalized = await normalizeForProvider(c, services, {
      findRefreshToken: (grantId) => findGrantRecord(services, { model: nameModel('RefreshToken'), grantId }),
      findScope: async (clientId) => (await provider.Client.find(clientId).catch(() => undefined))?.scope,
    })
    if ('error' in normalized) return c.json(normalized, 400, { 'Cache-Control': 'no-store' })
    c.set('body', normalized.body)
    return handleWithNodeResponse(
      c,
      (request, response) => {
        requests.set(request, c)
        return listener(request, response)
      },
      new URL(buildIssuer(browserOrigin(c, services))),
      normalized.target,
    )
  }
}

/** Checks whether the person of this browser has allowed a client, and still does. */
async function hasApproved(
  { database }: Pick<Services, 'database'>,
  c: HttpContext,
  clientId: string,
): Promise<boolean> {
  const { principal } = c.get('caller')
  if (principal.kind !== 'session') return false
  const grants = { model: nameModel('Grant'), accountId: principal.account.id, clientId }
  for (const id of await listGrantIds(database, grants))
    if ((await findKey(database, { id })) !== undefined) return true
  return false
}

/** @throws Failure `not_found`. */
function requireKnownPath(c: HttpContext): void {
  if (c.req.path === AUTHORIZATION_METADATA || KNOWN_PATH.test(c.req.path)) return
  throw new Failure('not_found', 'The authorization server has no endpoint at this path.', {
    hint: `GET ${AUTHORIZATION_METADATA} lists its endpoints.`,
  })
}

/** Rate-limits record-creating requests by client address. @throws Failure `rate_limited`. */
async function requireFewRequests(c: HttpContext, services: Services): Promise<void> {
  const rateClass = rateClasses.get(c.req.path)
  if (rateClass === undefined) return
  await limitAddress(services, c, rateClass, { failClosed: true, isMetered: false })
}

/** Prefixes a model name, because other providers share the table. */
function nameModel(model: string): string {
  return `oauth ${model}`
}

type RevokeGrantKey = (grantId: string) => Promise<void>

/**
 * Storage for one model. A registered client without a grant expires after a day, together with its registration
 * token. Destroying a grant or a refresh token also revokes the grant's key, and does so first so that a failed
 * attempt can be repeated.
 */
function createModelStorage(storage: AdapterFactory, model: string, revokeGrantKey: RevokeGrantKey): Adapter {
  const kept = storage(nameModel(model))
  if (model === 'Client' || model === 'RegistrationAccessToken')
    return {
      ...kept,
      upsert: (id, record, seconds = UNGRANTED_CLIENT_SECONDS) => kept.upsert(id, record, seconds),
    }
  if (model !== 'Grant' && model !== 'RefreshToken') return kept
  return {
    ...kept,
    async destroy(id) {
      const grantId = model === 'Grant' ? id : (await kept.find(id))?.grantId
      if (grantId !== undefined) await revokeGrantKey(grantId)
      await kept.destroy(id)
    },
  }
}

/**
 * The web origin that the browser uses, so that the cookies of our pages and of the provider share a host. Other
 * clients get the issuer's origin.
 */
function browserOrigin(c: HttpContext, { settings }: Pick<Services, 'settings'>): string {
  const host = c.env.incoming?.headers.host
  return settings.webOrigins.find((origin) => new URL(origin).host === host) ?? settings.origin
}

/** Redirects a browser from a loopback address to the web origin, because passkeys are bound to a domain. */
function findWebOriginRedirect(c: HttpContext, { settings }: Pick<Services, 'settings'>): string | null {
  const [page = settings.origin] = settings.webOrigins
  const isAuthorizeRequest = c.req.method === 'GET' && c.req.path === '/oauth/authorize'
  if (!isAuthorizeRequest || browserOrigin(c, { settings }) === page) return null
  const host = c.env.incoming?.headers.host
  if (host !== new URL(settings.origin).host) return null
  const { pathname, search } = new URL(c.req.url)
  return `${page}${pathname}${search}`
}
