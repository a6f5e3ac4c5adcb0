/**
 * The authorization server for MCP clients: OAuth 2.1 with PKCE, dynamic registration, client metadata documents, resource
 * indicators, rotation and revocation. The library speaks the protocol; whom a grant acts for and what it may spend is asked
 * on our own page, and becomes a key like any other.
 */
import type { Adapter, AdapterFactory, Provider } from 'oidc-provider'
import { derivedSeed } from '../../base/seal.ts'
import { Failure } from '../../failures/failure.ts'
import { agentKinds, revokeKey } from '../../identity/keys/owned-keys.ts'
import { issuerOf, tokenJwkOf } from '../../identity/oauth/oauth-tokens.ts'
import { findKey } from '../../identity/store.ts'
import type { Services } from '../../kernel/context.ts'
import { countRequest, requireWithinLimit } from '../../kernel/gates/rate.ts'
import { handleWithNodeResponse, type NodeListener } from '../oidc/handle-with-node-response.ts'
import { createOpenIdStorage, recordOfGrant } from '../oidc/storage.ts'
import type { HttpContext } from '../request.ts'
import { oauthConfiguration } from './configuration.ts'
import { answerConsent } from './consent.tsx'
import { normalizeForProvider, unstorableError } from './requests.ts'

/** Where the owner is asked, below the issuer. */
const CONSENT = '/oauth/consent'

const METADATA = '/.well-known/oauth-authorization-server'

/** Where clients look for what an issuer with a path says of itself. */
export const AUTHORIZATION_METADATA = `${METADATA}/oauth`

/** How long a client that registered itself is known before anybody lets it in. Registering is open to everybody. */
const STRANGER_SECONDS = 24 * 60 * 60

/** The largest registration that is taken, in bytes. */
const MAX_REGISTRATION_BYTES = 8 * 1024

/**
 * Every path that is answered, as it is written here. The library's own router also takes other cases and a slash at the end:
 * requests that it knows by such a name would pass by what is checked by name before it.
 */
const KNOWN_PATH =
  /^\/oauth\/(authorize(\/[\w-]+)?|consent\/[\w-]+|token|register|revoke|jwks|\.well-known\/[\w-]+)$/

/** What strangers can have written, and what it is counted as. */
const written: ReadonlyMap<string, string> = new Map([
  ['/oauth/authorize', 'authorizations'],
  ['/oauth/register', 'registrations'],
])

interface Opened {
  readonly provider: Provider
  readonly listener: NodeListener
}

/** Answers everything below `/oauth`, and its metadata at the well-known place. The library is loaded by the first request. */
export function createAuthorizationServer(services: Services): (c: HttpContext) => Promise<Response> {
  const { settings, database, journal, clock, log } = services
  const storage = createOpenIdStorage(services)
  let opened: Promise<Opened> | undefined
  // A client that revokes its tokens gives its key back.
  const endKey: EndKey = async (id) => {
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

  const open = async (): Promise<Opened> => {
    const library = await import('oidc-provider')
    const configuration = oauthConfiguration({
      origin: settings.origin,
      consentPath: CONSENT,
      // The sandbox's identity provider keeps its records in the same table.
      storage: (model) => ownStorage(storage, model, endKey),
      cookieKey: Buffer.from(derivedSeed(settings.dataKey, 'oauth cookies')).toString('base64url'),
      signingKey: await tokenJwkOf(settings.dataKey),
      library,
      isLive: async (id) => (await findKey(database, { id })) !== undefined,
    })
    const provider = new library.Provider(issuerOf(settings.origin), configuration)
    // The host and scheme that it is told are ours: answerByNode puts them there.
    provider.proxy = true
    provider.on('server_error', (_context, err) => log.error({ err }, 'the authorization server failed'))
    return { provider, listener: provider.callback() }
  }

  return async (c) => {
    requireKnownPath(c)
    await requireFewRequests(c, services)
    const error = unstorableError(c)
    if (error !== undefined) {
      const error_description = 'the request holds U+0000 or half a surrogate pair'
      return c.json({ error, error_description }, 400, { 'Cache-Control': 'no-store' })
    }
    if (c.req.path === '/oauth/register' && c.get('body').byteLength > MAX_REGISTRATION_BYTES) {
      const error_description = `the metadata are over ${MAX_REGISTRATION_BYTES} bytes`
      return c.json({ error: 'invalid_client_metadata', error_description }, 400)
    }
    opened ??= open()
    const { provider, listener } = await opened.catch((error: unknown) => {
      opened = undefined
      throw error
    })
    const issuer = issuerOf(settings.origin)
    if (c.req.path.startsWith(`${CONSENT}/`)) return answerConsent(c, { provider, services })
    // Beside the issuer's path and not below it. @see https://www.rfc-editor.org/rfc/rfc8414#section-3.1
    if (c.req.path === AUTHORIZATION_METADATA)
      return handleWithNodeResponse(c, listener, new URL(issuer), `/oauth${METADATA}`)
    const elsewhere = domainOf(c, services)
    if (elsewhere !== null) return c.redirect(elsewhere, 302)
    const taken = await normalizeForProvider(c, services, {
      refreshTokenOf: (grantId) => recordOfGrant(services, { model: modelOf('RefreshToken'), grantId }),
      scopeOf: async (clientId) => (await provider.Client.find(clientId).catch(() => undefined))?.scope,
    })
    if ('error' in taken) return c.json(taken, 400, { 'Cache-Control': 'no-store' })
    c.set('body', taken.body)
    return handleWithNodeResponse(c, listener, new URL(issuerOf(browserOrigin(c, services))), taken.target)
  }
}

/** @throws Failure `not_found`. */
function requireKnownPath(c: HttpContext): void {
  if (c.req.path === AUTHORIZATION_METADATA || KNOWN_PATH.test(c.req.path)) return
  throw new Failure('not_found', 'The authorization server answers nothing here.', {
    hint: `GET ${AUTHORIZATION_METADATA} lists its endpoints.`,
  })
}

/** Counts what anybody can have us write, by their address. @throws Failure `rate_limited`. */
async function requireFewRequests(c: HttpContext, services: Services): Promise<void> {
  const rateClass = written.get(c.req.path)
  if (rateClass === undefined) return
  const [client, now] = [c.get('clientAddress'), c.get('now')]
  const reading = await countRequest(services, { rateClass, client, now, failClosed: true })
  if (reading === null) return
  c.set('reading', reading)
  requireWithinLimit(reading)
}

/** The name of a model of ours: others keep records in the same table. */
function modelOf(model: string): string {
  return `oauth ${model}`
}

/** Ends the key of a grant. */
type EndKey = (grantId: string) => Promise<void>

/**
 * Records of our own. Anybody may register a client: one that nobody lets in is forgotten after a day, with its registration
 * token, and registers anew by itself. With a
 * grant, and with a refresh token that is not merely rotated, ends their key, and before them: what fails can be repeated.
 */
function ownStorage(storage: AdapterFactory, model: string, endKey: EndKey): Adapter {
  const kept = storage(modelOf(model))
  if (model === 'Client' || model === 'RegistrationAccessToken')
    return { ...kept, upsert: (id, record, seconds = STRANGER_SECONDS) => kept.upsert(id, record, seconds) }
  if (model !== 'Grant' && model !== 'RefreshToken') return kept
  return {
    ...kept,
    async destroy(id) {
      const grantId = model === 'Grant' ? id : (await kept.find(id))?.grantId
      if (grantId !== undefined) await endKey(grantId)
      await kept.destroy(id)
    },
  }
}

/**
 * The origin that a browser has us at: that of our pages where it came there, so that the cookies of both are of one host.
 * Everybody else is told the issuer's.
 */
function browserOrigin(c: HttpContext, { settings }: Pick<Services, 'settings'>): string {
  const host = c.env.incoming?.headers.host
  return settings.webOrigins.find((origin) => new URL(origin).host === host) ?? settings.origin
}

/** Where an authorization goes on: passkeys belong to a domain, and a loopback address is none. */
function domainOf(c: HttpContext, { settings }: Pick<Services, 'settings'>): string | null {
  const [page = settings.origin] = settings.webOrigins
  const isAsked = c.req.method === 'GET' && c.req.path === '/oauth/authorize'
  if (!isAsked || browserOrigin(c, { settings }) === page) return null
  const host = c.env.incoming?.headers.host
  if (host !== new URL(settings.origin).host) return null
  const { pathname, search } = new URL(c.req.url)
  return `${page}${pathname}${search}`
}
