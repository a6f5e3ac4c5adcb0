/**
 * An MCP client without prior registration: it discovers the authorization server, registers, is authorized by the
 * owner, and spends within a policy.
 */

import {
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  exchangeAuthorization,
  refreshAuthorization,
  registerClient,
  startAuthorization,
} from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { postCall } from '../mcp/post-call.ts'
import { sharedGateway } from './gateway.ts'
import { newOAuthBrowser } from './oauth-browser.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const REDIRECT = 'http://127.0.0.1:39999/callback'
const payeeAddress = '0x000000000000000000000000000000000000dEaD'
const policy = {
  perTransaction: { max: '5' },
  dailyBudget: { max: '20' },
  categories: { allow: ['transfer'] },
  approval: { above: '3', ttlSec: 600 },
}

const journal = z.object({
  entries: z.array(
    z.looseObject({
      action: z.string(),
      object: z.looseObject({ id: z.string() }),
      actor: z.looseObject({}),
    }),
  ),
})

describe('an MCP client over OAuth', () => {
  const gateway = { origin: sharedGateway() }
  let page: string
  let owner: Person
  beforeAll(async () => {
    // Browsers get the pages on the origin where passkeys work.
    page = gateway.origin.replace('127.0.0.1', 'localhost')
    owner = await newGuest(gateway.origin)
  })

  const discover = async (origin = gateway.origin) => {
    const mcp = `${origin}/mcp`
    const refused = await fetch(mcp, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    })
    expect(refused.status).toBe(401)
    const challenge = refused.headers.get('www-authenticate') ?? ''
    const resourceMetadataUrl = /resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? ''
    const resource = await discoverOAuthProtectedResourceMetadata(mcp, { resourceMetadataUrl })
    const [issuer = ''] = resource.authorization_servers ?? []
    const metadata = await discoverAuthorizationServerMetadata(issuer)
    if (metadata === undefined) throw new Error('the authorization server has no metadata')
    return { resource, issuer, metadata }
  }
  const register = async (origin = gateway.origin) => {
    const { metadata, issuer, resource } = await discover(origin)
    const clientInformation = await registerClient(issuer, {
      metadata,
      clientMetadata: {
        client_name: 'Test agent',
        redirect_uris: [REDIRECT],
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    })
    return { metadata, issuer, clientInformation, resource: new URL(resource.resource) }
  }
  type Registered = Awaited<ReturnType<typeof register>>
  const begin = ({ issuer, ...known }: Registered, scope: string) =>
    startAuthorization(issuer, { ...known, redirectUrl: REDIRECT, scope, state: 'xyz' })
  const browser = () => newOAuthBrowser(page, owner.token)
  const authorize = async (scopes: readonly string[], requestedScope: string, origin = gateway.origin) =>
    authorizeAgain(await register(origin), { scopes, requestedScope })
  const authorizeAgain = async (
    registered: Registered,
    {
      scopes,
      requestedScope,
      ...more
    }: { scopes: readonly string[]; requestedScope: string; keepEarlier?: boolean },
  ) => {
    const { authorizationUrl, codeVerifier } = await begin(registered, requestedScope)
    const back = await browser().authorize(authorizationUrl, {
      decision: 'approve',
      scopes,
      policy,
      ...more,
    })
    expect(back.searchParams.get('state')).toBe('xyz')
    expect(back.searchParams.get('iss')).toBe(registered.issuer)
    const authorizationCode = back.searchParams.get('code') ?? ''
    const exchange = () =>
      exchangeAuthorization(registered.issuer, {
        ...registered,
        authorizationCode,
        codeVerifier,
        redirectUri: REDIRECT,
      })
    return { registered, exchange, tokens: await exchange() }
  }
  const connect = async (accessToken: string, origin = gateway.origin) => {
    const client = new Client({ name: 'test', version: '1' })
    const headers = { authorization: `Bearer ${accessToken}` }
    const transport = new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), {
      requestInit: { headers },
    })
    await client.connect(transport)
    return client
  }
  const call = async (client: Client, name: string, args: Record<string, unknown>) => {
    const { content, isError } = await client.callTool({ name, arguments: args })
    const [first] = z.array(z.object({ text: z.string() })).parse(content)
    return {
      isError: isError === true,
      body: z.record(z.string(), z.unknown()).parse(JSON.parse(first?.text ?? '{}')),
    }
  }

  it('discovers the authorization server and the supported scopes', async () => {
    const { resource, issuer, metadata } = await discover()
    expect(resource).toMatchObject({
      resource: `${gateway.origin}/mcp`,
      bearer_methods_supported: ['header'],
    })
    expect(metadata).toMatchObject({
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      registration_endpoint: `${issuer}/register`,
      revocation_endpoint: `${issuer}/revoke`,
      code_challenge_methods_supported: ['S256'],
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      authorization_response_iss_parameter_supported: true,
    })
    expect(metadata.scopes_supported).toContain('wallets:transfer')
  })

  it('is authorized under any local name of the gateway, which are one resource', async () => {
    expect((await discover(page)).resource.resource).toBe(`${page}/mcp`)
    const { tokens } = await authorize(['wallets:read'], 'wallets:read', page)
    for (const origin of [page, gateway.origin]) {
      const client = await connect(tokens.access_token, origin)
      expect((await call(client, 'wallets_get', {})).isError).toBe(false)
    }
  })

  it('loses its earlier grant when it is granted anew, unless its owner keeps it', async () => {
    const registered = await register()
    const again = (more: { keepEarlier?: boolean } = {}) =>
      authorizeAgain(registered, { scopes: ['wallets:read'], requestedScope: 'wallets:read', ...more })
    const works = async ({ tokens }: Awaited<ReturnType<typeof authorize>>) => {
      const { status } = await fetch(`${gateway.origin}/mcp`, {
        method: 'POST',
        headers: { authorization: `Bearer ${tokens.access_token}`, 'content-type': 'application/json' },
        body: '{}',
      })
      return status !== 401
    }
    const first = await again()
    const second = await again()
    expect([await works(first), await works(second)]).toEqual([false, true])
    const { entries } = journal.parse((await owner.send('GET', '/api/security/journal?limit=3')).body)
    const [revoked, granted, replaced] = entries
    expect([revoked?.action, granted?.action, replaced?.action]).toEqual([
      'key.revoked',
      'key.created',
      'key.created',
    ])
    expect(revoked).toMatchObject({
      actor: { kind: 'person', id: owner.accountId },
      object: replaced?.object,
    })
    const third = await again({ keepEarlier: true })
    expect([await works(second), await works(third)]).toEqual([true, true])
  })

  it('gets a consent page that preselects no changing scope, and describes what presets allow', async () => {
    const registered = await register()
    const requestedScope = 'wallets:read banking:write compliance:write wallets:transfer'
    const { authorizationUrl } = await begin(registered, requestedScope)
    const { page: consentPage } = await browser().begin(authorizationUrl)
    const box = (scope: string) =>
      new RegExp(`<input type="checkbox" name="scope" value="${scope}"[^>]*>`).exec(consentPage)?.[0]
    expect(box('wallets:read')).toContain('checked')
    for (const scope of ['banking:write', 'compliance:write', 'wallets:transfer'])
      expect([scope, box(scope)]).toEqual([scope, expect.not.stringContaining('checked')])
    const seen = consentPage.slice(consentPage.indexOf('It may see'), consentPage.indexOf('It may change'))
    expect(seen).not.toContain('write')
    expect(consentPage).toMatch(/The name is not verified\.[\s\S]+Access lasts up to a year/)
    const careful = consentPage.slice(consentPage.indexOf('>Careful<')).replaceAll(/<[^>]+>/g, ' ')
    expect(careful.replaceAll(/\s+/g, ' ')).toContain(
      'Careful $20 a day $5 a payment $60 a week, $150 a month Asks you above $2',
    )
  })

  it('gets the ticked scopes, spends within the policy, and waits for approval above it', async () => {
    const { tokens } = await authorize(
      ['wallets:read', 'wallets:transfer'],
      'wallets:read wallets:transfer cards:read',
    )
    const client = await connect(tokens.access_token)
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['wallets_get', 'wallets_transfer', 'context']))
    expect(names).not.toContain('cards_list')
    expect((await call(client, 'wallets_get', {})).isError).toBe(false)
    const pay = (amount: string, key: string) =>
      call(client, 'wallets_transfer', {
        destination: payeeAddress,
        amount,
        signature: 'sandbox',
        idempotency_key: key,
      })
    expect(await pay('1', 'one')).toMatchObject({ isError: false, body: { status: 'confirmed' } })
    expect(await pay('6', 'two')).toMatchObject({ isError: true, body: { code: 'policy_denied' } })
    const waiting = await pay('4', 'three')
    expect(waiting).toMatchObject({ isError: true, body: { code: 'approval_required' } })
    const approved = await owner.send('POST', `/api/approvals/${String(waiting.body.approvalId)}`, {
      decision: 'approve',
    })
    expect(approved.status).toBe(200)
    expect(await pay('4', 'three')).toMatchObject({ isError: false, body: { status: 'confirmed' } })
    await client.close()
  })

  it('gets the missing scope in a challenge, and is listed as a key that its owner can revoke', async () => {
    const { tokens, registered } = await authorize(['wallets:read'], 'wallets:read')
    const client = await connect(tokens.access_token)
    const refused = await postCall(gateway.origin, tokens.access_token, 'wallets_transfer', {})
    expect(refused.status).toBe(403)
    expect(refused.headers.get('www-authenticate')).toMatch(
      /error="insufficient_scope", scope="wallets:transfer".*resource_metadata=/,
    )
    const { body } = await owner.send('GET', '/api/agents/keys')
    const [key] = z.array(z.looseObject({ agentId: z.string(), name: z.string() })).parse(body.keys)
    expect(key).toMatchObject({ name: 'Test agent', scopes: ['wallets:read'] })
    expect((await owner.send('DELETE', `/api/agents/keys/${key?.agentId}`)).status).toBe(200)
    await expect(client.callTool({ name: 'wallets_get', arguments: {} })).rejects.toThrow()
    await expect(
      refreshAuthorization(registered.issuer, { ...registered, refreshToken: tokens.refresh_token ?? '' }),
    ).rejects.toThrow()
    await client.close()
  })

  it('has what its owner grants and takes later, but never more than the narrower token it asked for', async () => {
    const { tokens, registered } = await authorize(['wallets:read', 'cards:read'], 'wallets:read cards:read')
    const client = await connect(tokens.access_token)
    const toolNames = async (of: Client) => (await of.listTools()).tools.map(({ name }) => name)
    expect(await toolNames(client)).not.toContain('investing_portfolio')
    const { body } = await owner.send('GET', '/api/agents/keys')
    const [key] = z.array(z.looseObject({ agentId: z.string() })).parse(body.keys)
    const narrower = await fetch(`${gateway.origin}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: tokens.refresh_token ?? '',
        client_id: registered.clientInformation.client_id,
        scope: 'wallets:read',
      }),
    })
    const { access_token } = z.looseObject({ access_token: z.string() }).parse(await narrower.json())
    const scopes = ['wallets:read', 'investing:read']
    expect((await owner.send('PATCH', `/api/agents/keys/${key?.agentId}`, { scopes })).status).toBe(200)
    const names = await toolNames(client)
    expect(names).toContain('investing_portfolio')
    expect(names).not.toContain('cards_list')
    expect((await call(client, 'investing_portfolio', {})).isError).toBe(false)
    const narrow = await connect(access_token)
    expect(await toolNames(narrow)).toContain('wallets_get')
    expect(await toolNames(narrow)).not.toContain('investing_portfolio')
    await client.close()
    await narrow.close()
  })

  it('rotates refresh tokens, and loses its key when a token is revoked', async () => {
    const { tokens, registered } = await authorize(['wallets:read'], 'wallets:read offline_access')
    const refresh = (refreshToken = '') =>
      refreshAuthorization(registered.issuer, { ...registered, refreshToken })
    const fresh = await refresh(tokens.refresh_token)
    expect(fresh.refresh_token).not.toBe(tokens.refresh_token)
    const client = await connect(fresh.access_token)
    expect((await call(client, 'wallets_get', {})).isError).toBe(false)
    const revoked = await fetch(`${registered.issuer}/revoke`, {
      method: 'POST',
      body: new URLSearchParams({
        token: fresh.refresh_token ?? '',
        client_id: registered.clientInformation.client_id,
      }),
    })
    expect(revoked.status).toBe(200)
    await expect(client.callTool({ name: 'wallets_get', arguments: {} })).rejects.toThrow()
    await expect(refresh(fresh.refresh_token)).rejects.toThrow()
    await client.close()
  })

  it('loses its key when a replaced refresh token is replayed', async () => {
    const { tokens, registered } = await authorize(['wallets:read'], 'wallets:read offline_access')
    const refresh = (refreshToken = '') =>
      refreshAuthorization(registered.issuer, { ...registered, refreshToken })
    const fresh = await refresh(tokens.refresh_token)
    await expect(refresh(tokens.refresh_token)).rejects.toThrow()
    // Either holder may be a thief, so both lose access.
    await expect(refresh(fresh.refresh_token)).rejects.toThrow()
    await expect(connect(fresh.access_token)).rejects.toThrow()
  })

  it('gets tokens only for a code or a refresh token, and needs its secret if it has one', async () => {
    const token = async (form: Record<string, string>, headers: Record<string, string> = {}) => {
      const body = new URLSearchParams(form)
      const response = await fetch(`${gateway.origin}/oauth/token`, { method: 'POST', body, headers })
      return [response.status, z.looseObject({ error: z.string() }).parse(await response.json()).error]
    }
    const { body: open } = await registration({})
    const client_id = String(open.client_id)
    for (const grant_type of ['password', 'client_credentials', 'implicit'])
      expect(await token({ grant_type, client_id, username: 'ada', password: 'x' })).toEqual([
        400,
        'unsupported_grant_type',
      ])
    const { body: secret } = await registration({ token_endpoint_auth_method: 'client_secret_basic' })
    const consentPage = (password: string) => ({
      authorization: `Basic ${Buffer.from(`${String(secret.client_id)}:${password}`).toString('base64')}`,
    })
    const grant = { grant_type: 'authorization_code', code: 'x', redirect_uri: REDIRECT, code_verifier: 'x' }
    const withoutSecret = { ...grant, client_id: String(secret.client_id) }
    expect(await token(withoutSecret)).toEqual([401, 'invalid_client'])
    expect(await token(grant, consentPage('wrong'))).toEqual([401, 'invalid_client'])
    expect(await token(grant, consentPage(String(secret.client_secret)))).toEqual([400, 'invalid_grant'])
  })

  it('redeems a code once, with its verifier, for our resource and redirect URI only', async () => {
    const { exchange, tokens } = await authorize(['wallets:read'], 'wallets:read')
    await expect(exchange()).rejects.toThrow()
    // A replayed code may have been stolen: its tokens are revoked too.
    const after = await fetch(`${gateway.origin}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens.access_token}`, 'content-type': 'application/json' },
      body: '{}',
    })
    expect(after.status).toBe(401)

    const registered = await register()
    const { authorizationUrl } = await begin(registered, 'wallets:read')
    const alter = (name: string, value: string | null) => {
      const url = new URL(authorizationUrl)
      if (value === null) url.searchParams.delete(name)
      else url.searchParams.set(name, value)
      return browser().authorize(url, { decision: 'approve', scopes: ['wallets:read'] })
    }
    await expect(alter('code_challenge', null)).rejects.toThrow()
    await expect(alter('code_challenge_method', 'plain')).rejects.toThrow()
    await expect(alter('redirect_uri', 'https://evil.example/callback')).rejects.toThrow('no consent page')
    await expect(alter('resource', 'https://evil.example/mcp')).rejects.toThrow()
  })

  it('is not authorized by a denial, by a cross-site post, or on another client’s request', async () => {
    const registered = await register()
    const { authorizationUrl } = await begin(registered, 'wallets:read')
    const back = await browser().authorize(authorizationUrl, { decision: 'deny' })
    expect(back.searchParams.get('error')).toBe('access_denied')
    const consent = `${page}/oauth/consent/abcdefghijklmnopqrstu`
    const posted = await requestJson(page, 'POST', '/oauth/consent/abcdefghijklmnopqrstu', {
      body: { decision: 'approve', scopes: ['wallets:read'] },
      headers: { cookie: `bursar_session=${owner.token}`, origin: 'https://evil.example' },
    })
    expect(posted.body.code).toBe('cross_site_request')
    expect((await browser().open(consent)).status).toBe(400)
    const unsigned = newOAuthBrowser(page, '')
    await expect(unsigned.authorize(authorizationUrl, { decision: 'deny' })).rejects.toThrow('/sign-in?next=')
  })

  it('cannot use its token on REST, nor a session on MCP', async () => {
    const { tokens } = await authorize(['wallets:read'], 'wallets:read')
    const rest = await requestJson(gateway.origin, 'GET', '/api/wallets', {
      headers: { authorization: `Bearer ${tokens.access_token}` },
    })
    expect(rest.status).toBe(401)
    const mcp = await requestJson(gateway.origin, 'POST', '/mcp', {
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      headers: { authorization: `Bearer ${owner.token}` },
    })
    expect(mcp.status).toBe(401)
  })

  const registration = (metadata: object) =>
    requestJson(gateway.origin, 'POST', '/oauth/register', {
      body: {
        client_name: 'Test agent',
        redirect_uris: [REDIRECT],
        token_endpoint_auth_method: 'none',
        ...metadata,
      },
    })

  it('may redirect to https, to loopback at any port, and to a private-use scheme', async () => {
    for (const uri of [
      'http://evil.example/callback',
      'https://user:secret@app.example/callback',
      'https://*.app.example/callback',
      'http://127.0.0.1.evil.example/callback',
      'javascript:alert(1)',
    ])
      for (const application_type of [undefined, 'web', 'native']) {
        const { status, body } = await registration({ redirect_uris: [REDIRECT, uri], application_type })
        expect([uri, status, body.error]).toEqual([uri, 400, 'invalid_redirect_uri'])
      }
    for (const uri of [
      'https://app.example/callback',
      'http://localhost/callback',
      'http://[::1]:1/callback',
      'cursor://anysphere.cursor-retrieval/oauth/callback',
    ]) {
      const { status, body } = await registration({ redirect_uris: [uri] })
      expect([uri, status, body.application_type]).toEqual([uri, 201, 'native'])
    }
    const registered = await register()
    const { authorizationUrl } = await begin(registered, 'wallets:read')
    authorizationUrl.searchParams.set('redirect_uri', REDIRECT.replace('39999', '40123'))
    const back = await browser().authorize(authorizationUrl, { decision: 'deny' })
    expect(back.port).toBe('40123')
  })

  it('gets a 400 for texts that cannot be stored', async () => {
    for (const metadata of [
      { client_name: 'a\u0000b' },
      { client_name: 'a\ud800' },
      { redirect_uris: [`${REDIRECT}\u0000`] },
    ]) {
      const { status, body } = await registration(metadata)
      expect([status, body.error]).toEqual([400, 'invalid_client_metadata'])
    }
    const { authorizationUrl } = await begin(await register(), 'wallets:read')
    authorizationUrl.searchParams.set('state', 'a\u0000b')
    const requestedScope = await fetch(authorizationUrl.href.replace('127.0.0.1', 'localhost'))
    expect([requestedScope.status, await requestedScope.json()]).toMatchObject([
      400,
      { error: 'invalid_request' },
    ])
    const token = await fetch(`${gateway.origin}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'a\0', client_id: 'b\0' }),
    })
    expect([token.status, await token.json()]).toMatchObject([400, { error: 'invalid_request' }])
  })

  const authorization = (members: Readonly<Record<string, string>>, origin = gateway.origin) => {
    const url = new URL(`${origin}/oauth/authorize`)
    const all = {
      redirect_uri: REDIRECT,
      response_type: 'code',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
      scope: 'wallets:read',
      ...members,
    }
    for (const [name, value] of Object.entries(all)) url.searchParams.set(name, value)
    return url
  }

  it('is displayed by the visible characters of its name', async () => {
    const { body } = await registration({
      client_name: '\u202eknab ruoY\u2066\n\u200bBank',
      scope: undefined,
    })
    const url = authorization({ client_id: String(body.client_id) })
    const { page: consentPage } = await browser().begin(url)
    expect(consentPage).toContain('Allow “<bdi>knab ruoY Bank</bdi>”?')
    expect(consentPage).not.toMatch(/[\u202e\u2066\u200b]/)
  })

  it('is displayed by at most 80 characters of its name, and of a redirect URI by its host', async () => {
    const name = `${'Your bank says: allow this. '.repeat(110)}End`
    const scheme = `bank-${'a'.repeat(3_000)}`
    const { body } = await registration({ client_name: name, redirect_uris: [`${scheme}://x/back`] })
    const { page: shown } = await browser().begin(
      authorization({ client_id: String(body.client_id), redirect_uri: `${scheme}://x/back` }),
    )
    const beforeWarning = shown.slice(shown.indexOf('<h1'), shown.indexOf('class="warn"'))
    expect(beforeWarning).toContain('Your bank says: allow this.')
    expect(beforeWarning.length).toBeLessThan(1_200)
  })

  describe('whose person has not allowed it', () => {
    const EVIL = 'https://evil.example/callback'
    const newClient = async (uri = EVIL) =>
      String((await registration({ redirect_uris: [uri], application_type: 'web' })).body.client_id)
    const wrong: readonly Readonly<Record<string, string>>[] = [
      { prompt: 'none' },
      { response_type: 'token' },
      { code_challenge: 'short' },
      { code_challenge_method: 'plain' },
      { resource: 'https://evil.example/mcp' },
      { scope: 'wallets:read', prompt: 'nonsense' },
      { claims: '{' },
      { max_age: '-1' },
      { request: 'x' },
      { prompt: 'none', response_mode: 'form_post' },
      { prompt: 'none', response_mode: 'fragment' },
    ]

    it('gets no error sent to its site, whatever is wrong with the request', async () => {
      const client_id = await newClient()
      const stranger = await newGuest(gateway.origin)
      for (const own of [browser(), newOAuthBrowser(page, ''), newOAuthBrowser(page, stranger.token)])
        for (const more of wrong) {
          const response = await own.open(
            authorization({ client_id, redirect_uri: EVIL, ...more }, page).href,
          )
          const text = await response.text()
          const location = response.headers.get('location')
          expect([more, text]).toEqual([more, expect.not.stringContaining('evil.example')])
          // The library ignores some mistakes, and goes on to the consent page.
          if (location === null) expect([more, response.status, text]).toMatchObject([more, 400, /failed: /])
          else expect(new URL(location, page).href).toContain(`${page}/oauth/consent/`)
        }
    })

    it('is not returned to by a denial either, unless it runs on the person’s machine', async () => {
      const own = browser()
      for (const [uri, isReturned] of [
        [EVIL, false],
        ['http://localhost:1234/callback', true],
      ] as const) {
        const application_type = isReturned ? 'native' : 'web'
        const { body } = await registration({ redirect_uris: [uri], application_type })
        const start = authorization({ client_id: String(body.client_id), redirect_uri: uri }, page)
        const { url } = await own.begin(start)
        const denied = await own.decide(url, { decision: 'deny' })
        const { redirectTo } = z.object({ redirectTo: z.string() }).parse(denied.body)
        const response = await own.open(redirectTo)
        expect([uri, response.headers.get('location')?.startsWith(uri) === true]).toEqual([uri, isReturned])
        if (!isReturned) expect([response.status, await response.text()]).toMatchObject([400, /owner denied/])
      }
    })

    it('gets errors once the person has allowed it, and none after the access is revoked', async () => {
      const client_id = await newClient()
      const own = browser()
      const { url } = await own.begin(authorization({ client_id, redirect_uri: EVIL }, page))
      const yes = { decision: 'approve', scopes: ['wallets:read'] }
      expect((await own.decide(url, yes)).status).toBe(200)
      const silent = authorization({ client_id, redirect_uri: EVIL, prompt: 'none' }, page).href
      const sent = await own.open(silent)
      expect(sent.headers.get('location')).toMatch(/^https:\/\/evil\.example\/callback\?error=/)
      const unsigned = await newOAuthBrowser(page, '').open(silent)
      expect([unsigned.status, unsigned.headers.get('location')]).toEqual([400, null])
      const { keys } = z
        .object({ keys: z.array(z.looseObject({ agentId: z.string() })) })
        .parse((await owner.send('GET', '/api/agents/keys')).body)
      for (const { agentId } of keys) await owner.send('DELETE', `/api/agents/keys/${agentId}`)
      expect((await own.open(silent)).headers.get('location')).toBeNull()
    })
  })

  it('gets one key per request, regardless of repeated or competing decisions', async () => {
    const keys = async () =>
      z.array(z.unknown()).parse((await owner.send('GET', '/api/agents/keys')).body.keys).length
    const before = await keys()
    const { authorizationUrl } = await begin(await register(), 'wallets:read cards:read')
    const own = browser()
    const { url } = await own.begin(authorizationUrl)
    const yes = { decision: 'approve', scopes: ['wallets:read'] }
    const answers = await Promise.all(Array.from({ length: 4 }, () => own.decide(url, yes)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(await keys()).toBe(before + 1)
    const wider = { ...yes, scopes: ['wallets:read', 'cards:read'] }
    for (const other of [wider, { decision: 'deny' }])
      expect((await own.decide(url, other)).body).toMatchObject({ status: 409, code: 'conflict' })
    const second = await newGuest(gateway.origin)
    expect((await own.decide(url, yes, second.token)).body).toMatchObject({ status: 409, code: 'conflict' })
    const back = await own.decide(url, yes, owner.token)
    expect(back.body).toEqual(answers[0]?.body)
    expect(await keys()).toBe(before + 1)
  })

  it('is not authorized by a person who signed in after the page was opened', async () => {
    const { authorizationUrl } = await begin(await register(), 'wallets:read')
    const own = browser()
    const { url, page: consentPage } = await own.begin(authorizationUrl)
    expect(consentPage).toContain(`data-account="${owner.accountId}"`)
    const yes = { decision: 'approve', scopes: ['wallets:read'], accountId: owner.accountId }
    const second = await newGuest(gateway.origin)
    expect((await own.decide(url, yes, second.token)).body).toMatchObject({ code: 'conflict' })
    expect((await own.decide(url, yes, owner.token)).status).toBe(200)
  })

  it('can revoke its access token, which revokes the key too', async () => {
    const { tokens, registered } = await authorize(['wallets:read'], 'wallets:read')
    const revoke = (clientId: string) =>
      fetch(`${registered.issuer}/revoke`, {
        method: 'POST',
        body: new URLSearchParams({
          token: tokens.access_token,
          token_type_hint: 'access_token',
          client_id: clientId,
        }),
      })
    const client = await connect(tokens.access_token)
    const other = await register()
    await revoke(other.clientInformation.client_id)
    expect((await call(client, 'wallets_get', {})).isError).toBe(false)
    expect((await revoke(registered.clientInformation.client_id)).status).toBe(200)
    await expect(client.callTool({ name: 'wallets_get', arguments: {} })).rejects.toThrow()
    await client.close()
  })

  it.each([undefined, 'mcp', 'offline_access', 'openid profile', 'openid wallets:read cards:read'])(
    'is authorized once, for the scopes that its owner picks, when it requests %s',
    async (scope) => {
      const registered = await register()
      const { authorizationUrl, codeVerifier } = await begin(registered, 'wallets:read')
      if (scope === undefined) authorizationUrl.searchParams.delete('scope')
      else authorizationUrl.searchParams.set('scope', scope)
      const back = await browser().authorize(authorizationUrl, {
        decision: 'approve',
        scopes: ['wallets:read'],
      })
      const tokens = await exchangeAuthorization(registered.issuer, {
        ...registered,
        authorizationCode: back.searchParams.get('code') ?? '',
        codeVerifier,
        redirectUri: REDIRECT,
      })
      expect(tokens).not.toHaveProperty('id_token')
      const client = await connect(tokens.access_token)
      expect((await call(client, 'wallets_get', {})).isError).toBe(false)
      const { tools } = await client.listTools()
      expect(tools.map(({ name }) => name)).not.toContain('cards_list')
      await client.close()
    },
  )

  it('gets no key when no scope is allowed', async () => {
    const { authorizationUrl } = await begin(await register(), 'wallets:read')
    const own = browser()
    const { url } = await own.begin(authorizationUrl)
    for (const scopes of [[], ['cards:read']])
      expect((await own.decide(url, { decision: 'approve', scopes })).body).toMatchObject({
        status: 400,
        code: 'invalid_request',
        issues: [{ path: 'scopes' }],
      })
    expect((await own.decide(url, { decision: 'approve', scopes: ['wallets:read'] })).status).toBe(200)
  })

  it('gets no secret that it cannot use, and no scope limit when it registers only foreign scopes', async () => {
    const { status, body } = await registration({
      token_endpoint_auth_method: undefined,
      scope: 'openid profile',
    })
    expect([status, body.token_endpoint_auth_method]).toEqual([201, 'none'])
    expect(body).not.toHaveProperty('client_secret')
    expect(body).not.toHaveProperty('scope')
    const secret = await registration({ token_endpoint_auth_method: 'client_secret_basic' })
    expect(secret.body).toMatchObject({ client_secret: expect.any(String) })
  })

  it('keeps its refresh token when it names another resource, and can revoke an expired token', async () => {
    const { tokens, registered } = await authorize(['wallets:read'], 'wallets:read')
    const { refresh_token: refreshToken = '' } = tokens
    const wrong = await fetch(`${registered.issuer}/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: refreshToken,
        client_id: registered.clientInformation.client_id,
        resource: `${gateway.origin}/mcp/`,
      }),
    })
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { error: 'invalid_target' }])
    const fresh = await refreshAuthorization(registered.issuer, { ...registered, refreshToken })
    const revoke = () =>
      fetch(`${registered.issuer}/revoke`, {
        method: 'POST',
        body: new URLSearchParams({
          token: fresh.access_token,
          client_id: registered.clientInformation.client_id,
        }),
      })
    for (let times = 0; times < 2; times += 1) {
      expect((await revoke()).status).toBe(200)
      // Revocation takes effect before the answer, not after it.
      await expect(connect(fresh.access_token)).rejects.toThrow()
    }
  })
})
