/** The identity provider port: OpenID Connect against a real provider, correct and faulty. */
import { generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../../src/core/base/clock.ts'
import { randomToken } from '../../src/core/base/ids.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { createOpenIdProvider } from '../../src/providers/identity-provider/openid.ts'
import {
  answerWith,
  clientSecret,
  neverAnswer,
  type OpenIdWorld,
  redirectUri,
  startOpenIdProvider,
} from './openid-world.ts'

const newSecrets = () => ({ state: randomToken(32), nonce: randomToken(32), codeVerifier: randomToken(32) })

async function catchRefusal(attempt: Promise<unknown>): Promise<Failure> {
  const thrown: unknown = await attempt.then(
    () => undefined,
    (error) => error,
  )
  if (!(thrown instanceof Failure)) throw new Error('the call did not fail', { cause: thrown })
  return thrown
}

const down = {
  code: 'provider_unavailable',
  members: expect.objectContaining({ retryAfter: expect.any(Number) }),
}
const refused = { code: 'unauthenticated' }

describe('identity provider: OpenID Connect', () => {
  let world: OpenIdWorld
  beforeAll(async () => {
    world = await startOpenIdProvider()
  })
  afterEach(() => world.misbehave(null))
  afterAll(() => world.close())

  const newClient = (changes: { issuer?: string; clientSecret?: string; scope?: string } = {}) =>
    createOpenIdProvider(
      { name: 'test', issuer: world.issuer, clientId: 'bursar', clientSecret, scope: null, ...changes },
      { log: silentLog, timeoutSeconds: 0.3 },
    )
  const signIn = async (client = newClient(), login = 'ada') => {
    const secrets = newSecrets()
    const back = await world.signIn(await client.authorizationUrl(secrets, redirectUri), login)
    return { client, secrets, back }
  }

  it('redirects to the provider with state, nonce and PKCE challenge', async () => {
    const secrets = newSecrets()
    const url = new URL(await newClient().authorizationUrl(secrets, redirectUri))
    expect(url.origin).toBe(world.issuer)
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      client_id: 'bursar',
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid profile',
      state: secrets.state,
      nonce: secrets.nonce,
      code_challenge_method: 'S256',
    })
    expect(url.href).not.toContain(secrets.codeVerifier)
    const narrow = new URL(await newClient({ scope: 'openid' }).authorizationUrl(secrets, redirectUri))
    expect(narrow.searchParams.get('scope')).toBe('openid')
  })

  it('returns the identity, with and without the issuer parameter', async () => {
    const { client, secrets, back } = await signIn()
    expect(back.state).toBe(secrets.state)
    const ada = { issuer: world.issuer, subject: 'ada', displayName: 'ada' }
    expect(await client.identify(back, secrets, redirectUri)).toEqual(ada)
    const again = await signIn(client)
    expect(await client.identify({ code: again.back.code, iss: null }, again.secrets, redirectUri)).toEqual(
      ada,
    )
    const nameless = await signIn(client, 'nameless')
    expect(await client.identify(nameless.back, nameless.secrets, redirectUri)).toMatchObject({
      subject: 'nameless',
      displayName: null,
    })
  })

  it.each(['nonce', 'codeVerifier'] as const)('rejects an answer to another %s', async (member) => {
    const { client, secrets, back } = await signIn()
    const other = { ...secrets, [member]: randomToken(32) }
    expect(await catchRefusal(client.identify(back, other, redirectUri))).toMatchObject(refused)
  })

  it('rejects another redirect URI', async () => {
    const { client, secrets, back } = await signIn()
    expect(
      await catchRefusal(client.identify(back, secrets, 'http://localhost/sign-in/other')),
    ).toMatchObject(refused)
  })

  it('rejects a spent or invented code, without exposing a secret', async () => {
    const { client, secrets, back } = await signIn()
    await client.identify(back, secrets, redirectUri)
    for (const code of [back.code, 'made-up']) {
      const failure = await catchRefusal(client.identify({ ...back, code }, secrets, redirectUri))
      expect(failure).toMatchObject(refused)
      const problemText = JSON.stringify(failure.toProblem())
      for (const secret of [code, clientSecret, ...Object.values(secrets)])
        expect(problemText).not.toContain(secret)
    }
  })

  it('rejects the answer of another issuer', async () => {
    const { client, secrets, back } = await signIn()
    const iss = 'https://evil.example'
    expect(await catchRefusal(client.identify({ ...back, iss }, secrets, redirectUri))).toMatchObject(refused)
  })

  it('rejects a token that the provider’s keys did not sign', async () => {
    const known = z
      .object({
        keys: z.array(z.looseObject({ kid: z.string(), kty: z.string(), alg: z.string().optional() })),
      })
      .parse(await (await fetch(`${world.issuer}/jwks`)).json())
    const foreignKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' })
    const forged = known.keys.filter(({ kty }) => kty === 'RSA').map((key) => ({ ...key, ...foreignKey }))
    expect(forged.length).toBeGreaterThan(0)
    for (const keys of [forged, []]) {
      const { client, secrets, back } = await signIn()
      world.misbehave(answerWith(/^\/jwks/, JSON.stringify({ keys })))
      expect(await catchRefusal(client.identify(back, secrets, redirectUri))).toMatchObject(refused)
      world.misbehave(null)
    }
  })

  it('rejects an ID token that is for another client, of another issuer, expired, or for another sign-in', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'own', use: 'sig', alg: 'RS256' }]
    const now = Math.floor(systemClock().getTime() / 1000)
    const identify = async (claims: object, header: object = {}) => {
      const { client, secrets, back } = await signIn()
      const whole = { iss: world.issuer, aud: 'bursar', sub: 'ada', iat: now, exp: now + 60 }
      const token = await new SignJWT({ ...whole, nonce: secrets.nonce, ...claims })
        .setProtectedHeader({ alg: 'RS256', kid: 'own', ...header })
        .sign(privateKey)
      const answers = [
        answerWith(/^\/jwks/, JSON.stringify({ keys })),
        answerWith(/^\/token/, JSON.stringify({ access_token: 'x', token_type: 'bearer', id_token: token })),
      ]
      world.misbehave((request, response) => answers.some((answer) => answer(request, response)))
      return client.identify(back, secrets, redirectUri).finally(() => world.misbehave(null))
    }
    // The unchanged token is accepted: the rejections below are due to their change alone.
    expect(await identify({})).toMatchObject({ subject: 'ada', issuer: world.issuer })
    for (const claims of [
      { aud: 'another client' },
      { aud: undefined },
      { aud: ['bursar', 'another client'], azp: 'another client' },
      { iss: 'https://evil.example' },
      { exp: now - 3600, iat: now - 7200 },
      { nonce: 'another sign-in' },
      { nonce: undefined },
      { sub: undefined },
    ])
      expect([claims, await catchRefusal(identify(claims))]).toMatchObject([claims, refused])
  })

  it('treats unavailable keys as a provider outage', async () => {
    const { client, secrets, back } = await signIn()
    world.misbehave(answerWith(/^\/jwks/, 'oops', 'text/html', 500))
    expect(await catchRefusal(client.identify(back, secrets, redirectUri))).toMatchObject(down)
  })

  it.each([
    ['HTML', '<html>maintenance</html>', 'text/html', 200],
    ['an error', '{}', 'application/json', 500],
    ['broken JSON', '{"issuer":', 'application/json', 200],
    ['another issuer', '{"issuer":"https://evil.example"}', 'application/json', 200],
    ['a redirect', '', 'text/plain', 302],
  ])('treats %s as a provider outage, and retries on the next call', async (_name, body, type, status) => {
    const client = newClient()
    world.misbehave(answerWith(/well-known/, body, type, status))
    expect(await catchRefusal(client.authorizationUrl(newSecrets(), redirectUri))).toMatchObject(down)
    world.misbehave(null)
    expect(await client.authorizationUrl(newSecrets(), redirectUri)).toContain(world.issuer)
  })

  it.each([
    ['no endpoints', {}],
    ['a script for an endpoint', { authorization_endpoint: 'javascript:alert(1)' }],
    ['an endpoint in the clear', { token_endpoint: 'http://idp.example/token' }],
  ])('treats a description with %s as a provider outage', async (_name, changes) => {
    const whole = {
      authorization_endpoint: `${world.issuer}/auth`,
      token_endpoint: `${world.issuer}/token`,
      jwks_uri: `${world.issuer}/jwks`,
    }
    const described = {
      issuer: world.issuer,
      ...(Object.keys(changes).length === 0 ? {} : whole),
      ...changes,
    }
    world.misbehave(answerWith(/well-known/, JSON.stringify(described)))
    expect(await catchRefusal(newClient().authorizationUrl(newSecrets(), redirectUri))).toMatchObject(down)
  })

  it('does not wait for a slow provider', async () => {
    const { client, secrets, back } = await signIn()
    world.misbehave(neverAnswer(/^\/token/))
    expect(await catchRefusal(client.identify(back, secrets, redirectUri))).toMatchObject(down)
    world.misbehave(neverAnswer(/well-known/))
    expect(await catchRefusal(newClient().authorizationUrl(newSecrets(), redirectUri))).toMatchObject(down)
  })

  it.each([
    ['garbage', 'oops', 'text/html', 200],
    ['a server error', '{"error":"server_error"}', 'application/json', 500],
    ['invalid_client', '{"error":"invalid_client"}', 'application/json', 401],
  ])('treats a token endpoint that answers %s as a provider outage', async (_name, body, type, status) => {
    const { client, secrets, back } = await signIn()
    world.misbehave(answerWith(/^\/token/, body, type, status))
    expect(await catchRefusal(client.identify(back, secrets, redirectUri))).toMatchObject(down)
  })

  it('treats a wrong client secret of ours as an outage', async () => {
    const { client, secrets, back } = await signIn(
      newClient({ clientSecret: 'another one of thirty-two letters' }),
    )
    expect(await catchRefusal(client.identify(back, secrets, redirectUri))).toMatchObject(down)
  })

  it('fetches the description once for many sign-ins', async () => {
    const client = newClient()
    world.requestedPaths.length = 0
    await Promise.all([1, 2, 3].map(() => client.authorizationUrl(newSecrets(), redirectUri)))
    await client.authorizationUrl(newSecrets(), redirectUri)
    expect(world.requestedPaths.filter((path) => path.includes('well-known'))).toHaveLength(1)
  })

  it('calls a provider in this process at its listening address', async () => {
    const named = {
      name: 'test',
      issuer: 'https://idp.example',
      clientId: 'bursar',
      clientSecret,
      scope: null,
    }
    const client = createOpenIdProvider({ ...named, reachedAt: () => world.issuer }, { log: silentLog })
    const described = {
      issuer: named.issuer,
      authorization_endpoint: `${named.issuer}/auth`,
      token_endpoint: `${named.issuer}/token`,
      jwks_uri: 'https://elsewhere.example/jwks',
    }
    world.misbehave(answerWith(/well-known/, JSON.stringify(described)))
    expect(await client.authorizationUrl(newSecrets(), redirectUri)).toContain(`${named.issuer}/auth?`)
  })

  it('is unavailable on a closed port, and over plain HTTP except on loopback', async () => {
    const closedWorld = await startOpenIdProvider()
    await closedWorld.close()
    for (const issuer of [closedWorld.issuer, 'http://idp.example', 'http://127.0.0.1.idp.example'])
      expect(
        await catchRefusal(newClient({ issuer }).authorizationUrl(newSecrets(), redirectUri)),
      ).toMatchObject(down)
  })
})
