/** How the authorization server behaves, in the words of its library. OAuth 2.1: codes with PKCE, for one resource. */
import type {
  AdapterFactory,
  Configuration,
  errors as Errors,
  interactionPolicy as Policy,
} from 'oidc-provider'
import { scopes } from '../../identity/keys/grantable.ts'
import { KEY_CLAIM, resourceOf } from '../../identity/oauth/oauth-tokens.ts'
import { fetchPublic } from './fetch-public.ts'
import { redirectUriError } from './redirect-uris.ts'

const DAY = 24 * 60 * 60

/** Seconds. A refresh token that is used is replaced, and lives on. */
const lives = {
  AuthorizationCode: 60,
  AccessToken: 10 * 60,
  RefreshToken: 30 * DAY,
  Interaction: 10 * 60,
  Session: 10 * 60,
  Grant: 365 * DAY,
} as const

/** The configuration. @property isLive whether the key of a grant can still be used. */
export function oauthConfiguration({
  origin,
  consentPath,
  storage,
  cookieKey,
  signingKey,
  library: { interactionPolicy, errors },
  isLive,
}: {
  origin: string
  consentPath: string
  storage: AdapterFactory
  cookieKey: string
  signingKey: Readonly<Record<string, unknown>>
  library: { interactionPolicy: typeof Policy; errors: typeof Errors }
  isLive: (keyId: string) => Promise<boolean>
}): Configuration {
  const resource = resourceOf(origin)
  const policy = interactionPolicy.base()
  // The owner is asked every time: who they are is told by our own session, and what is granted becomes a new key.
  policy
    .get('login')
    ?.checks.add(
      new interactionPolicy.Check(
        'always',
        'The owner is asked.',
        ({ oidc }) => oidc.result?.login === undefined,
      ),
    )
  return {
    adapter: storage,
    clientDefaults: {
      // Agents run on their user's machine: loopback at any port, or a scheme of their own.
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
          const misfit = typeof uri === 'string' ? redirectUriError(uri) : undefined
          if (misfit !== undefined) throw new errors.InvalidClientMetadata(`redirect_uris ${misfit}`)
        }
      },
    },
    enabledJWA: { idTokenSigningAlgValues: ['EdDSA'] },
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    responseTypes: ['code'],
    scopes: ['offline_access', ...Object.keys(scopes)],
    claims: { openid: ['sub'] },
    // Nobody is signed in by us: `openid` is known, so that clients may ask for it, and granted to none.
    discovery: { scopes_supported: ['offline_access', ...Object.keys(scopes)] },
    jwks: { keys: [{ ...signingKey, kty: 'OKP' }] },
    cookies: { keys: [cookieKey] },
    pkce: { required: () => true },
    ttl: lives,
    rotateRefreshToken: true,
    // A client that may refresh gets a token for it whether or not it knew to ask.
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
      // A token is sent as a bearer alone: one that is bound to a key would be taken without its proof.
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
        getResourceServerInfo: (_context, asked) => {
          if (asked !== resource) throw new errors.InvalidTarget()
          return {
            scope: Object.keys(scopes).join(' '),
            audience: resource,
            accessTokenFormat: 'jwt',
            accessTokenTTL: lives.AccessToken,
            jwt: { sign: { alg: 'EdDSA' } },
          }
        },
      },
    },
    interactions: { policy, url: (_context, { uid }) => `${consentPath}/${uid}` },
    findAccount: async (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    // The id of a grant is that of its key; a grant whose key is gone gives nothing out any more.
    async extraTokenClaims(_context, token) {
      const { grantId = '' } = { grantId: undefined, ...token }
      if (!(await isLive(grantId))) throw new errors.InvalidGrant('the grant was revoked')
      return { [KEY_CLAIM]: grantId }
    },
    fetch: fetchPublic,
    async renderError(context, { error, error_description: description = error }) {
      context.type = 'text'
      context.body = `This authorization cannot go on: ${description}.\n`
    },
  }
}
