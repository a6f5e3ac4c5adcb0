/** Configuration of `oidc-provider` for the authorization server: OAuth 2.1 codes with PKCE, for one resource. */
import type {
  AdapterFactory,
  Configuration,
  errors as Errors,
  interactionPolicy as Policy,
} from 'oidc-provider'
import { scopes } from '../../../people/identity/keys/grantable.ts'
import { buildResource, KEY_CLAIM, WHOLE_CLAIM } from '../../../people/identity/oauth/oauth-tokens.ts'
import type { PublicFetch } from '../../../providers/public-fetch.ts'
import { alwaysAsk } from '../oidc/always-ask.ts'
import { fetchClientDocument } from './fetch-client-document.ts'
import { errorText } from './keep-errors.ts'
import { redirectUriError } from './redirect-uris.ts'

const DAY = 24 * 60 * 60

/** Lifetimes in seconds. Using a refresh token rotates it and restarts its lifetime. */
const lifetimes = {
  AuthorizationCode: 60,
  AccessToken: 10 * 60,
  RefreshToken: 30 * DAY,
  Interaction: 10 * 60,
  Session: 10 * 60,
  Grant: 365 * DAY,
} as const

/** Names of the provider's cookies: those of another gateway on the host, which has another port, are not overwritten. */
function cookieNames(origin: string) {
  const { port } = new URL(origin)
  const suffix = port === '' ? '' : `_${port}`
  return {
    session: `_session${suffix}`,
    interaction: `_interaction${suffix}`,
    resume: `_interaction_resume${suffix}`,
  }
}

/** @param input `isLive` is true while the key of a grant can be used. */
export function oauthConfiguration({
  origin,
  consentPath,
  storage,
  cookieKey,
  signingKeys,
  library: { interactionPolicy, errors },
  isLive,
  fetchPublic,
}: {
  origin: string
  consentPath: string
  storage: AdapterFactory
  cookieKey: string
  signingKeys: readonly Readonly<Record<string, unknown>>[]
  library: { interactionPolicy: typeof Policy; errors: typeof Errors }
  isLive: (keyId: string) => Promise<boolean>
  fetchPublic: PublicFetch
}): Configuration {
  const resource = buildResource(origin)
  // Consent is required every time: our own session identifies the owner, and each grant becomes a new key.
  const policy = alwaysAsk(interactionPolicy, 'Consent is always required.')
  return {
    adapter: storage,
    clientDefaults: {
      // Agents run on their user's machine and use loopback at any port, or a custom URI scheme.
      application_type: 'native',
      id_token_signed_response_alg: 'EdDSA',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
    extraClientMetadata: {
      properties: ['redirect_uris'],
      validator: (_context, _name, uris) => {
        for (const uri of Array.isArray(uris) ? uris : []) {
          const problem = typeof uri === 'string' ? redirectUriError(uri) : undefined
          if (problem !== undefined) throw new errors.InvalidClientMetadata(`redirect_uris ${problem}`)
        }
      },
    },
    enabledJWA: { idTokenSigningAlgValues: ['EdDSA'] },
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    responseTypes: ['code'],
    scopes: ['offline_access', ...Object.keys(scopes)],
    claims: { openid: ['sub'] },
    // `openid` is accepted because clients request it, but it is never granted and not advertised.
    discovery: { scopes_supported: ['offline_access', ...Object.keys(scopes)] },
    jwks: { keys: signingKeys.map((key) => ({ ...key, kty: 'OKP' })) },
    cookies: { keys: [cookieKey], names: cookieNames(origin) },
    pkce: { required: () => true },
    ttl: lifetimes,
    rotateRefreshToken: true,
    // Clients registered for refresh_token get one without requesting offline_access.
    issueRefreshToken: async (_context, client) => client.grantTypeAllowed('refresh_token'),
    clientBasedCORS: () => true,
    routes: {
      authorization: '/authorize',
      token: '/token',
      registration: '/register',
      revocation: '/revoke',
      jwks: '/jwks',
    },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      userinfo: { enabled: false },
      // Access tokens are accepted as bearer tokens only; a key-bound token would be accepted without its proof.
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      clientIdMetadataDocument: {
        enabled: true,
        ack: 'draft-02',
        allowFetch: async (_context, id) => new URL(id).protocol === 'https:',
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, requested) => {
          if (requested !== resource) throw new errors.InvalidTarget()
          return {
            scope: Object.keys(scopes).join(' '),
            audience: resource,
            accessTokenFormat: 'jwt',
            accessTokenTTL: lifetimes.AccessToken,
            jwt: { sign: { alg: 'EdDSA' } },
          }
        },
      },
    },
    interactions: { policy, url: (_context, { uid }) => `${consentPath}/${uid}` },
    findAccount: async (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    // A grant has the id of its key; a grant whose key was revoked issues no more tokens.
    async extraTokenClaims({ oidc }, token) {
      const { grantId = '', scope = '' } = { grantId: undefined, ...token }
      if (!(await isLive(grantId))) throw new errors.InvalidGrant('the grant was revoked')
      const held = scope.split(' ')
      const granted = oidc.entities.Grant?.getResourceScope(resource).split(' ')
      const isWhole = granted?.every((one) => held.includes(one)) === true
      return { [KEY_CLAIM]: grantId, ...(isWhole ? { [WHOLE_CLAIM]: true } : {}) }
    },
    fetch: (input) => fetchClientDocument(input, fetchPublic),
    async renderError(context, out) {
      context.type = 'text'
      context.body = errorText(out)
    },
  }
}
