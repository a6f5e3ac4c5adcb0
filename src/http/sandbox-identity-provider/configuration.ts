/** How the sandbox's identity provider behaves, in the words of its library. */
import type { AdapterFactory, Configuration, interactionPolicy as Policy } from 'oidc-provider'
import type { SandboxClient, SandboxOpenIdSecrets } from './client.ts'
import { signInErrorPage } from './sign-in-page.ts'

/** Seconds. */
const lives = {
  AuthorizationCode: 60,
  AccessToken: 10 * 60,
  IdToken: 10 * 60,
  Interaction: 10 * 60,
  Session: 10 * 60,
  Grant: 10 * 60,
} as const

/** The configuration of the provider at an issuer. */
export function sandboxProviderConfiguration({
  issuer,
  clients,
  storage,
  secrets: { clientSecret, cookieKey, signingKey },
  interactionPolicy,
}: {
  issuer: URL
  clients: readonly SandboxClient[]
  storage: AdapterFactory
  secrets: SandboxOpenIdSecrets
  interactionPolicy: typeof Policy
}): Configuration {
  const policy = interactionPolicy.base()
  // Everybody is asked who they are, every time: a tester wants to be somebody else now and then.
  policy
    .get('login')
    ?.checks.add(
      new interactionPolicy.Check(
        'always',
        'Everybody is asked.',
        ({ oidc }) => oidc.result?.login === undefined,
      ),
    )
  const people = storage('SandboxPerson')
  return {
    adapter: storage,
    clients: clients.map(({ clientId, redirectUri }) => ({
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_post',
    })),
    clientDefaults: { id_token_signed_response_alg: 'EdDSA' },
    enabledJWA: { idTokenSigningAlgValues: ['EdDSA'] },
    clientAuthMethods: ['client_secret_post', 'client_secret_basic'],
    responseTypes: ['code'],
    scopes: ['openid'],
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
    // The originals tell the name in the ID token too.
    conformIdTokenClaims: false,
    jwks: { keys: [{ ...signingKey, kty: 'OKP' }] },
    cookies: { keys: [cookieKey] },
    pkce: { required: () => true },
    ttl: lives,
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
    interactions: { policy, url: (_context, { uid }) => `${issuer.pathname}/interaction/${uid}` },
    // Consent goes without saying.
    async loadExistingGrant({ oidc }) {
      const { client, session, provider } = oidc
      if (client === undefined || session?.accountId === undefined) return undefined
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
      grant.addOIDCScope('openid profile email')
      await grant.save()
      return grant
    },
    async findAccount(_context, accountId) {
      const person = await people.find(accountId)
      if (person === undefined) return undefined
      const { name, email } = person
      return { accountId, claims: () => ({ sub: accountId, name, email, email_verified: true }) }
    },
    // Nobody may make it ask anything of anybody.
    fetch: () => Promise.reject(new Error('the sandbox identity provider asks nobody')),
    async renderError(context, { error, error_description: description = error }) {
      context.type = 'html'
      context.body = String(await signInErrorPage(`${description}.`))
    },
  }
}
