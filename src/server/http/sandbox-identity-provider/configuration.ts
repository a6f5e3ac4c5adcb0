/** Configuration of `oidc-provider` for the sandbox's identity provider. */
import type { AdapterFactory, Configuration, interactionPolicy as Policy } from 'oidc-provider'
import { alwaysAsk } from '../oidc/always-ask.ts'
import type { SandboxClient, SandboxOpenIdSecrets } from './client.ts'
import { signInErrorPage } from './sign-in-page.ts'

/** Lifetimes in seconds. */
const lifetimes = {
  AuthorizationCode: 60,
  AccessToken: 10 * 60,
  IdToken: 10 * 60,
  Interaction: 10 * 60,
  Session: 10 * 60,
  Grant: 10 * 60,
} as const

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
  // Sign-in is required every time, so that testers can switch identities.
  const policy = alwaysAsk(interactionPolicy, 'Sign-in is always required.')
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
    // Google and Apple include the name in the ID token.
    conformIdTokenClaims: false,
    jwks: { keys: [{ ...signingKey, kty: 'OKP' }] },
    cookies: { keys: [cookieKey] },
    pkce: { required: () => true },
    ttl: lifetimes,
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
    interactions: { policy, url: (_context, { uid }) => `${issuer.pathname}/interaction/${uid}` },
    // Consent is granted implicitly.
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
    // Outgoing requests are disabled.
    fetch: () => Promise.reject(new Error('the sandbox identity provider sends no requests')),
    async renderError(context, { error, error_description: description = error }) {
      context.type = 'html'
      context.body = String(await signInErrorPage(`${description}.`))
    },
  }
}
