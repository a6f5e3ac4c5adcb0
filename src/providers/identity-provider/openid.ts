/**
 * OpenID Connect with `openid-client`: authorization code flow with PKCE, state and nonce. The library verifies the
 * ID token: signature, issuer, audience, times and nonce.
 * @see https://openid.net/specs/openid-connect-core-1_0.html#CodeFlowAuth
 * @see https://www.rfc-editor.org/rfc/rfc9700
 */
import type { ClientAuth, Configuration, CustomFetch, IDToken } from 'openid-client'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import { rootCause } from '../../core/failures/root-cause.ts'
import { callProvider } from '../http-client.ts'
import type { IdentityProvider, ProvidedIdentity } from './port.ts'

/**
 * Our registration at a provider.
 * @property scope null: the default scope, which includes the person's name if supported.
 */
export interface OpenIdClient {
  /** Display name, such as `google`. */
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scope: string | null
  /** URL for requests to a provider served by this process, whose public origin may not be reachable from here. */
  readonly reachedAt?: () => string
}

/** Time limit per request; a person is waiting. */
const TIMEOUT_SECONDS = 5
/** Time limit for a provider in this process, which loads on the first request and blocks the process meanwhile. */
const OWN_TIMEOUT_SECONDS = 20
const RETRY_SECONDS = 5
const MAX_NAME_LENGTH = 100

/** Creates an identity provider. Nothing is loaded or requested before the first sign-in. */
export function createOpenIdProvider(
  client: OpenIdClient,
  {
    log,
    timeoutSeconds = client.reachedAt === undefined ? TIMEOUT_SECONDS : OWN_TIMEOUT_SECONDS,
  }: { log: Log; timeoutSeconds?: number },
): IdentityProvider {
  let discovered: Promise<Configuration> | undefined
  const configuration = async (): Promise<Configuration> => {
    discovered ??= discover(client, timeoutSeconds)
    const mine = discovered
    try {
      return await mine
    } catch (error) {
      if (discovered === mine) discovered = undefined
      throw unavailable(client, log, error)
    }
  }
  return {
    async authorizationUrl({ state, nonce, codeVerifier }, redirectUri) {
      const config = await configuration()
      const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import('openid-client')
      return buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: client.scope ?? defaultScope(client.issuer),
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
      }).href
    },
    async identify({ code, iss }, { state, nonce, codeVerifier }, redirectUri) {
      const config = await configuration()
      const { authorizationCodeGrant } = await import('openid-client')
      const callback = new URL(redirectUri)
      callback.searchParams.set('code', code)
      callback.searchParams.set('state', state)
      const answeredBy = iss ?? impliedIssuer(config)
      if (answeredBy !== null) callback.searchParams.set('iss', answeredBy)
      try {
        const tokens = await authorizationCodeGrant(config, callback, {
          pkceCodeVerifier: codeVerifier,
          expectedState: state,
          expectedNonce: nonce,
          idTokenExpected: true,
        })
        return parseIdentity(tokens.claims())
      } catch (error) {
        if (error instanceof Failure) throw error
        if (refuses(error)) throw buildRefusal(client, error)
        throw unavailable(client, log, error)
      }
    },
  }
}

/**
 * Apple returns other scopes only in a form posted to us.
 * @see
 * https://developer.apple.com/documentation/signinwithapplerestapi/request-an-authorization-to-the-sign-in-with-apple-server
 */
function defaultScope(issuer: string): string {
  return new URL(issuer).origin === 'https://appleid.apple.com' ? 'openid' : 'openid profile'
}

/**
 * A provider that states its issuer in the response must be the right one (RFC 9207). A client that does not forward
 * the issuer used a redirect URI specific to this provider, which is the alternative defence against mix-up attacks.
 * @see https://www.rfc-editor.org/rfc/rfc9700#section-4.4.2
 */
function impliedIssuer(config: Configuration): string | null {
  const { issuer, authorization_response_iss_parameter_supported: namesItself } = config.serverMetadata()
  return namesItself === true ? issuer : null
}

async function discover(
  { issuer, clientId, clientSecret, reachedAt }: OpenIdClient,
  timeout: number,
): Promise<Configuration> {
  const openid = await import('openid-client')
  const [basic, post] = [openid.ClientSecretBasic(clientSecret), openid.ClientSecretPost(clientSecret)]
  const authenticate: ClientAuth = (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    return (methods.includes('client_secret_post') ? post : basic)(server, ...rest)
  }
  // Plain HTTP only where the connection stays on this machine.
  const isOpen = reachedAt !== undefined || isLoopback(issuer)
  const config = await openid.discovery(new URL(issuer), clientId, undefined, authenticate, {
    timeout,
    execute: [
      // Without it the library trusts an ID token based on the TLS connection.
      openid.enableNonRepudiationChecks,
      ...(isOpen ? [openid.allowInsecureRequests] : []),
    ],
    [openid.customFetch]: reachedAt === undefined ? fetchBounded : redirectTo(issuer, reachedAt),
  })
  const { authorization_endpoint, token_endpoint, jwks_uri } = config.serverMetadata()
  for (const endpoint of [authorization_endpoint, token_endpoint, jwks_uri])
    if (endpoint === undefined || !(endpoint.startsWith('https://') || (isOpen && isNear(endpoint, issuer))))
      throw new Error('its discovery document lacks an endpoint that can be used')
  return config
}

/** Sends the requests for an issuer's URLs to another origin. */
function redirectTo(issuer: string, origin: () => string): CustomFetch {
  return (url, options) => {
    const { pathname, search } = new URL(url)
    if (new URL(url).origin !== new URL(issuer).origin) throw new TypeError('the URL is not of the issuer')
    return fetchBounded(`${origin()}${pathname}${search}`, options)
  }
}

/** Fetches with a limit on the answer's size. */
const fetchBounded: CustomFetch = async (url, options) => {
  const { method, headers, body, signal } = options
  const answer = await callProvider({
    url,
    method,
    headers,
    body: body ?? null,
    signal,
  })
  return new Response(answer.text === '' ? null : answer.text, answer)
}

/** Checks whether a URL belongs to the issuer or to this machine. */
function isNear(text: string, issuer: string): boolean {
  return isLoopback(text) || (URL.canParse(text) && new URL(text).origin === new URL(issuer).origin)
}

function isLoopback(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  return protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(hostname)
}

function parseIdentity(claims: IDToken | undefined): ProvidedIdentity {
  // OpenID Connect limits the subject to 255 ASCII characters.
  if (claims === undefined || !/^[\x20-\x7e]{1,255}$/.test(claims.sub))
    throw new Failure('unauthenticated', 'The identity provider did not return a valid subject.', {
      hint: 'Start the sign-in again.',
    })
  return { issuer: claims.iss, subject: claims.sub, displayName: parseName(claims.name) }
}

function parseName(claim: unknown): string | null {
  if (typeof claim !== 'string') return null
  const name = [...claim.replace(/\p{Cc}/gu, ' ').trim()].slice(0, MAX_NAME_LENGTH).join('')
  return name === '' ? null : name
}

/** Library error codes for an invalid answer. */
const refusals: ReadonlySet<unknown> = new Set([
  'OAUTH_AUTHORIZATION_RESPONSE_ERROR',
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
])

/** Checks whether only this sign-in is invalid, rather than the provider or our registration. */
function refuses(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false
  if (error.code !== 'OAUTH_RESPONSE_BODY_ERROR') return refusals.has(error.code)
  return 'error' in error && (error.error === 'invalid_grant' || error.error === 'access_denied')
}

function buildRefusal({ name }: OpenIdClient, cause: unknown): Failure {
  return new Failure(
    'unauthenticated',
    `The sign-in with ${name} is invalid.`,
    { hint: 'Start the sign-in again; a code is valid for one exchange and a few minutes.' },
    { cause },
  )
}

function unavailable({ name }: OpenIdClient, log: Log, cause: unknown): Failure {
  log.warn(
    { provider: name, reason: rootCause(cause).slice(0, 200) },
    'the identity provider does not answer',
  )
  return new Failure(
    'provider_unavailable',
    `The identity provider ${name} is not answering correctly.`,
    { retryAfter: RETRY_SECONDS, hint: 'Try again in a moment, or use another authentication method.' },
    { cause },
  )
}
