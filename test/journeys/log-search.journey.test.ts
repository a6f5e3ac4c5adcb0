/**
 * Searches the log at its most verbose level, the problems and the redirects for secrets and personal data, after a
 * journey through every operation that handles them: each request and answer is watched, and each secret in it is
 * remembered.
 */
import { createPrivateKey } from 'node:crypto'
import {
  discoverAuthorizationServerMetadata,
  exchangeAuthorization,
  refreshAuthorization,
  registerClient,
  startAuthorization,
} from '@modelcontextprotocol/sdk/client/auth.js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createSigner, wrapFetchWithPayment } from 'x402-fetch'
import { z } from 'zod'
import { signBankingWebhook } from '../../src/providers/banking/signature.ts'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import { newAgent } from './agent.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newOAuthBrowser } from './oauth-browser.ts'
import { enrollMfa, newGuest, type Person, requestJson, signInByEmail } from './people.ts'

const REDIRECT = 'http://127.0.0.1:39999/callback'
const email = 'ottilie.quux@personal.example'
const phone = '+4915112345678'
const applicant = {
  firstName: 'Ottoline',
  lastName: 'Quuxworthy',
  dateOfBirth: '1987-03-29',
  country: 'DE',
  address: 'Zirkelgasse 77, Würzburg',
  email: 'ottoline@quuxworthy.example',
  phone: '+4915187654321',
}
const document = { type: 'passport', country: 'DE', reference: 'C01X00T47QZ' }
const beneficiary = { name: 'Balthasar Zyx', country: 'FR' }

/** Labels of watched texts, for failure messages. */
const secrets = new Map<string, string>()
const problems: string[] = []
const keep = (name: string, value: unknown) => {
  if (typeof value === 'string' && value.length >= 6) secrets.set(value, name)
}

/** Members that are secret in any object. */
const secretMembers = new Set([
  ...['sessionToken', 'key', 'privateKey', 'otpauthUri', 'recoveryCode', 'code', 'signature', 'demoApiKey'],
  ...['lithicWebhookSecret', 'bridgeWebhookPrivateKey', 'access_token', 'refresh_token', 'code_verifier'],
  ...[
    'client_secret',
    'clientDataJSON',
    'attestationObject',
    'authenticatorData',
    'challenge',
    'registration_access_token',
  ],
])
const secretHeaders = [
  'authorization',
  'cookie',
  'signature',
  'x-payment',
  'webhook-signature',
  'x-webhook-signature',
]

function learn(value: unknown, name = ''): void {
  if (typeof value === 'object' && value !== null)
    for (const [member, inner] of Object.entries(value)) learn(inner, Array.isArray(value) ? name : member)
  else if (name === 'recoveryCodes' || (secretMembers.has(name) && value !== 'sandbox')) keep(name, value)
}

function learnText(text: string): void {
  try {
    const value: unknown = JSON.parse(text)
    // A problem's `code` is public.
    if (!z.looseObject({ type: z.string(), requestId: z.string() }).safeParse(value).success) learn(value)
  } catch {
    learn(Object.fromEntries(new URLSearchParams(text)))
  }
}

const bare = globalThis.fetch
/** A `fetch` that records the secrets of every request and answer. */
const watching: typeof fetch = async (input, init) => {
  const request = new Request(input, init)
  for (const name of secretHeaders) {
    const text = request.headers.get(name) ?? ''
    keep(name, text.replace(/^(Bearer |bursar_session=)/, ''))
    for (const [, inner] of text.matchAll(/:([\w+/=]{40,}):/g)) keep(name, inner)
    if (name === 'x-payment' && text !== '') learnText(Buffer.from(text, 'base64').toString())
  }
  if (request.body !== null) learnText(await request.clone().text())
  const response = await bare(request)
  const text = await response.clone().text()
  learnText(text)
  for (const line of response.headers.getSetCookie()) keep('cookie', /^[^=]+=([^;]*)/.exec(line)?.[1])
  if (response.status >= 400 && response.status !== 402) problems.push(text)
  return response
}

let gateway: Gateway
let page = ''
beforeAll(async () => {
  globalThis.fetch = watching
  gateway = await startGateway({
    CHAIN: 'simulated',
    LOG_LEVEL: 'debug',
    RATE_MUTATIONS: '100000/60',
    RATE_OTP_RESEND: '100/60',
    RATE_OTP_IP: '100/60',
  })
  page = gateway.origin.replace('127.0.0.1', 'localhost')
})
afterAll(async () => {
  globalThis.fetch = bare
  await gateway?.stop()
})

const callApi = (method: string, path: string, how: Parameters<typeof requestJson>[3] = {}) =>
  requestJson(gateway.origin, method, path, how)
const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  callApi('POST', path, { body, headers })

async function passkeys() {
  const device = newAuthenticator(page)
  for (const action of ['register', 'login'] as const) {
    const { body } = await post('/api/auth/webauthn', { action, credential: null, displayName: 'Ottoline' })
    const credential = action === 'register' ? device.create(body.publicKey) : device.get(body.publicKey)
    const { status } = await post('/api/auth/webauthn', { action, challengeId: body.challengeId, credential })
    expect(status).toBe(200)
    // Rejected the second time.
    await post('/api/auth/webauthn', { action, challengeId: body.challengeId, credential })
  }
}

async function codes(): Promise<Person> {
  const person = await signInByEmail(gateway.origin, email)
  await post('/api/auth/otp/start', { channel: 'sms', destination: phone })
  await callApi('GET', '/sandbox/outbox')
  await post('/api/auth/otp/verify', { challengeId: 'no', code: '918273' })
  await post('/api/auth/recovery/start', { channel: 'email', destination: email })
  keep('second factor', await enrollMfa(person))
  await person.send('POST', '/api/security/mfa', { action: 'verify', code: '564738' })
  return person
}

async function keysAndTransfers(owner: Person) {
  const grant = {
    name: 'Key',
    scopes: ['wallets:read', 'wallets:transfer', 'cards:read'],
    policy: { perTransaction: { max: '5' }, dailyBudget: { max: '20' }, categories: { allow: ['transfer'] } },
  }
  const { body } = await owner.send('POST', '/api/developer/keys', grant)
  const key = z.string().parse(body.key)
  const transfer = {
    destination: `0x${'1'.repeat(40)}`,
    amount: '1',
    signature: 'an authorization',
  }
  const bearer = { authorization: `Bearer ${key}` }
  await post('/api/wallets/transfer', transfer, bearer)
  await post('/api/wallets/transfer', { ...transfer, amount: '50' }, bearer)
  const agent = await newAgent()
  await owner.send('POST', '/api/agents/keys', { ...grant, publicKey: agent.jwk })
  const request = {
    method: 'POST',
    url: `${gateway.origin}/api/wallets/transfer`,
    body: JSON.stringify(transfer),
  }
  await agent.fetch(request)
  await agent.fetch({ ...request, uncovered: ['content-digest'] })
  await agent.fetch({ ...request, parameters: { tag: 'other' } })
  return key
}

/** Sends credentials in places where they do not belong. */
async function misplace(key: string, { token }: Person) {
  for (const secret of [key, token])
    for (const target of [
      `/api/wallets?token=${secret}`,
      `/api/wallets?x=${secret}`,
      `/api/x/${secret}`,
      `/${secret}?${secret}`,
    ])
      await fetch(`${gateway.origin}${target}`)
  for (const headers of [
    { authorization: `Basic ${Buffer.from(`ottoline:${key}`).toString('base64')}` },
    { authorization: `Bearer ${key}x` },
    { authorization: `Bearer ${token}x` },
    { cookie: `bursar_session=${token}`, authorization: `Bearer ${key}` },
    { cookie: `bursar_session=${token}; bursar_session=${token}` },
    { 'x-request-id': key.slice(0, 100), cookie: `bursar_session=${token}` },
  ])
    await callApi('GET', '/api/wallets', { headers })
  await callApi('DELETE', `/api/developer/keys/${key}`, { headers: { authorization: `Bearer ${token}` } })
  await post('/api/auth/otp/verify', { challengeId: token, code: key })
  for (const body of [`{"key":"${key}"`, `{"${key}":1}`, `{"vote":"${key}","page":"${token}"}`])
    await fetch(`${gateway.origin}/api/docs/feedback`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
}

async function compliance(person: Person) {
  await person.send('POST', '/api/compliance/kyc', { level: 'full', applicant, documents: [document] })
  await person.send('POST', '/api/compliance/kyc', { applicant: { ...applicant, dateOfBirth: '1987-3-29' } })
  await person.send('POST', '/api/compliance/travel-rule', {
    amount: '5000',
    token: 'USDC',
    destination: `0x${'1'.repeat(40)}`,
    chain: 'base-sepolia',
    beneficiary,
    originator: { name: `${applicant.firstName} ${applicant.lastName}` },
  })
}

async function webhooks(owner: Person) {
  const { body: answerText } = await callApi('GET', '/sandbox/credentials')
  const secret = z.string().parse(answerText.lithicWebhookSecret)
  const key = createPrivateKey(z.string().parse(answerText.bridgeWebhookPrivateKey))
  const { body: listed } = await owner.send('GET', '/api/cards')
  const [card] = z.array(z.looseObject({ id: z.string() })).parse(listed.cards)
  const body = JSON.stringify({
    event_type: 'card_authorization.approval_request',
    token: 'buy-1',
    status: 'AUTHORIZATION',
    amount: 100,
    card: { token: card?.id },
    merchant: { acceptor_id: 'SHOP', descriptor: 'Shop', mcc: '5411', country: 'USA' },
    pos: { entry_mode: { pan: 'ECOMMERCE' } },
  })
  const at = new Date()
  const signed: Record<string, string> = { ...signWebhook({ id: 'buy-1', body, at }, secret) }
  const banking = { 'x-webhook-signature': signBankingWebhook('{}', { key, at }) }
  const send = (provider: string, headers: Record<string, string>, text: string) =>
    fetch(`${gateway.origin}/api/webhooks/${provider}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: text,
    })
  expect((await send('lithic', signed, body)).status).toBe(200)
  await send('lithic', signed, `${body} `)
  await send('bridge', banking, '{}')
  await send('bridge', banking, '{ }')
}

async function payments() {
  const { body } = await callApi('GET', '/sandbox/credentials')
  const { payer } = z
    .object({ payer: z.object({ privateKey: z.templateLiteral(['0x', z.string()]) }) })
    .parse(body)
  const paying = wrapFetchWithPayment(fetch, await createSigner('base-sepolia', payer.privateKey))
  const url = `${gateway.origin}/api/x402/fx?from=USD&to=EUR&amount=100`
  expect((await paying(url)).status).toBe(200)
  await fetch(url, { headers: { 'x-payment': 'bm90IGEgcGF5bWVudCBhdCBhbGw=' } })
}

async function oauth(owner: Person) {
  const issuer = `${gateway.origin}/oauth`
  const metadata = await discoverAuthorizationServerMetadata(issuer)
  if (metadata === undefined) throw new Error('the authorization server has no metadata')
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
  const known = { metadata, clientInformation, resource: new URL(`${gateway.origin}/mcp`) }
  const { authorizationUrl, codeVerifier } = await startAuthorization(issuer, {
    ...known,
    redirectUrl: REDIRECT,
    scope: 'wallets:read',
    state: 'xyz',
  })
  const browser = newOAuthBrowser(page, owner.token)
  const back = await browser.authorize(authorizationUrl, { decision: 'approve', scopes: ['wallets:read'] })
  const authorizationCode = back.searchParams.get('code') ?? ''
  keep('authorization code', authorizationCode)
  const exchange = { ...known, authorizationCode, codeVerifier, redirectUri: REDIRECT }
  const tokens = await exchangeAuthorization(issuer, exchange)
  const refreshed = await refreshAuthorization(issuer, { ...known, refreshToken: tokens.refresh_token ?? '' })
  // A replayed code and a replayed token: each ends the grant.
  await exchangeAuthorization(issuer, exchange).catch(() => undefined)
  await fetch(`${gateway.origin}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${refreshed.access_token}` },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  })
  expect(tokens.access_token.length).toBeGreaterThan(20)
}

/** The encodings in which a text may appear in another. */
function listForms(secret: string): string[] {
  const bytes = Buffer.from(secret)
  // Base64 of a longer text contains it at one of three offsets, except for the characters that its neighbours affect.
  const encoded = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .slice(offset === 0 ? 0 : offset + 2, -4),
  )
  const forms = [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    bytes.toString('hex'),
  ]
  const url = encoded.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'))
  return [
    ...new Set([
      ...forms,
      ...encoded.filter((text) => text.length > 7),
      ...url.filter((text) => text.length > 7),
    ]),
  ]
}

const found = (text: string) => {
  const lower = text.toLowerCase()
  return [...secrets].flatMap(([secret, name]) =>
    listForms(secret)
      .filter((form) =>
        /^\d{6}$/.test(form) ? new RegExp(`\\b${form}\\b`).test(text) : lower.includes(form.toLowerCase()),
      )
      .map((form) => `${name}: ${form.slice(0, 60)}`),
  )
}

it('contains no secret or personal data in the log, in problems or in redirects', {
  timeout: 120_000,
}, async () => {
  for (const [name, value] of Object.entries({ ...applicant, ...document, ...beneficiary })) keep(name, value)
  keep('email', email)
  keep('phone', phone)
  // Public by design.
  for (const word of ['passport', 'DE']) secrets.delete(word)
  const owner = await newGuest(gateway.origin)
  await passkeys()
  const person = await codes()
  const key = await keysAndTransfers(owner)
  await misplace(key, owner)
  await compliance(person)
  await webhooks(owner)
  await payments()
  await oauth(owner)
  await person.send('POST', '/api/security/lock', {})
  await callApi('GET', '/api/wallets', { headers: { authorization: `Bearer ${person.token}` } })
  expect(secrets.size).toBeGreaterThan(60)
  expect(problems.length).toBeGreaterThan(25)

  const log = gateway
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
  expect(log.length).toBeGreaterThan(60)
  expect(found(log.join('\n'))).toEqual([])
  expect(found(problems.join('\n'))).toEqual([])
})
