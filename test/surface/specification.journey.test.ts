/**
 * Every row of the specification's tables, over HTTP: each field present, absent and of another type, each route, state,
 * credential, event, error and limit.
 */
import { createPrivateKey, randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { wrapFetchWithPayment } from 'x402-fetch'
import { z } from 'zod'
import { signBankingWebhook } from '../../src/providers/banking/signature.ts'
import type { Chain } from '../../src/providers/chain/port.ts'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import { newAgent } from '../journeys/agent.ts'
import { type Gateway, sharedGateway, startGateway } from '../journeys/gateway.ts'
import {
  enrollMfa,
  lastCodeTo,
  newGuest,
  newMailbox,
  type Person,
  requestJson,
  signInByEmail,
} from '../journeys/people.ts'
import { connectMcp } from '../mcp/client.ts'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import { signAuthorization } from '../tools/transfers/signed-payments.ts'
import {
  errors,
  events,
  type Field,
  limits,
  providerNames,
  type Route,
  requestFields,
  requestRoutes,
  responseFields,
  routes,
  rules,
  schemes,
  states,
} from './specification.ts'

const origin = sharedGateway()
const payee = `0x${'5'.repeat(40)}`
const json = { 'content-type': 'application/json' }
const text = z.string()

type Members = Readonly<Record<string, unknown>>
interface Sent {
  readonly body?: unknown
  readonly query?: string
  readonly headers?: Record<string, string>
}

const credentials = z.object({
  lithicWebhookSecret: text,
  bridgeWebhookPrivateKey: text,
  chain: z.object({ chainId: z.int(), tokens: z.object({ USDC: z.templateLiteral(['0x', text]) }) }),
  payer: z.object({ privateKey: z.templateLiteral(['0x', text]) }),
})
const readCredentials = async () =>
  credentials.parse((await requestJson(origin, 'GET', '/sandbox/credentials')).body)

const listedCards = z.object({ cards: z.tuple([z.looseObject({ id: text, status: text })]) })
const readCard = async (person: Person) =>
  listedCards.parse((await person.send('GET', '/api/cards')).body).cards[0]
const problem = z.looseObject({
  code: text,
  issues: z.array(z.object({ path: text, message: text })).optional(),
})
const readCode = ({ status, body }: { status: number; body: unknown }) =>
  `${status} ${problem.parse(body).code}`

const policy = {
  perTransaction: { max: '5' },
  dailyBudget: { max: '8' },
  categories: { allow: ['transfer'] },
}
async function newApiKey(owner: Person, scopes: readonly string[]): Promise<string> {
  const { body } = await owner.send('POST', '/api/developer/keys', { name: 'Key', scopes, policy })
  return text.parse(body.key)
}

const without = (members: Members, name: string) =>
  Object.fromEntries(Object.entries(members).filter(([member]) => member !== name))

/** A request of each section with all its members, as the specification types them. */
const samples: Readonly<Record<string, (person: Person) => Promise<Members>>> = {
  '2.3': async () => ({ action: 'register', credential: null }),
  '2.4': async (person) => ({
    safeAddress: (await person.send('GET', '/api/wallets')).body.safeAddress,
    destination: payee,
    amount: 1.25,
    token: 'USDC',
    chain: 'base-sepolia',
    signature: 'sandbox',
  }),
  '2.5': async () => ({ currency: 'EUR' }),
  '2.6': async (person) => ({
    cardId: (await readCard(person)).id,
    freeze: true,
    limits: { daily: 100, perPurchase: 20.5 },
    priority: ['EURC', 'USDC'],
  }),
  '2.7': async () => ({ symbol: 'VTI', side: 'buy', notional: 10, type: 'market' }),
  '2.8': async () => ({
    fromToken: 'USDC',
    toToken: 'USDT',
    fromChain: 'base',
    toChain: 'arbitrum',
    amountIn: 100.5,
  }),
}

/** A value that is not of the type. */
const misfits: Readonly<Record<Field['type'], unknown>> = {
  string: 7,
  number: true,
  boolean: 'yes',
  object: 'text',
  'object or null': 'text',
  'array of string': 'text',
  'array of object': 'text',
  'array of Balance': 'text',
}

describe('the request', () => {
  it.each(requestFields)(
    'a request of section $section has $name',
    async ({ section, name, isRequired, ...field }) => {
      const person = await newGuest(origin)
      const full = (await samples[section]?.(person)) ?? {}
      const [method = '', path = ''] = requestRoutes[section]?.split(' ') ?? []
      const send = (body: Members) => person.send(method, path, body)
      const expectRefusal = (at: string) => ({
        status: 400,
        body: {
          code: 'invalid_request',
          issues: expect.arrayContaining([
            expect.objectContaining({ path: expect.stringMatching(`^${at}(\\.|$)`) }),
          ]),
        },
      })
      expect(await send(full)).toMatchObject({ status: 200 })
      expect(await send(without(full, name))).toMatchObject(
        isRequired ? expectRefusal(name) : { status: 200 },
      )
      expect(await send({ ...full, [name]: misfits[field.type] })).toMatchObject(expectRefusal(name))
      for (const value of field.allowed ?? [])
        expect([value, (await send({ ...full, [name]: value })).status]).toEqual([value, 200])
      if (field.allowed !== undefined)
        expect(await send({ ...full, [name]: 'other' })).toMatchObject(expectRefusal(name))
    },
  )

  it.each(Object.keys(requestRoutes))(
    'a request of section %s needs nothing but its required members',
    async (section) => {
      const person = await newGuest(origin)
      const full = (await samples[section]?.(person)) ?? {}
      const required = requestFields.filter((field) => field.section === section && field.isRequired)
      const body = Object.fromEntries(required.map(({ name }) => [name, full[name]]))
      const [method = '', path = ''] = requestRoutes[section]?.split(' ') ?? []
      expect(await person.send(method, path, body)).toMatchObject({ status: 200 })
    },
  )

  it('a request for a card may have either limit alone, as a number', async () => {
    const person = await newGuest(origin)
    const { id: cardId } = await readCard(person)
    const set = (given: Members) => person.send('POST', '/api/cards/settings', { cardId, limits: given })
    expect(await set({ daily: 100 })).toMatchObject({
      body: { card: { limits: { daily: '100', perPurchase: null } } },
    })
    expect(await set({ perPurchase: 20.5 })).toMatchObject({
      body: { card: { limits: { daily: '100', perPurchase: '20.5' } } },
    })
  })

  it('a request for a transfer may name each token', async () => {
    const person = await newGuest(origin)
    for (const token of responseFields.find(({ allowed }) => allowed !== undefined)?.allowed ?? [])
      expect(
        await person.send('POST', '/api/wallets/transfer', {
          destination: payee,
          amount: 1,
          token,
          signature: 'sandbox',
        }),
      ).toMatchObject({ status: 200, body: { token } })
  })
})

describe('the response', () => {
  const is: Readonly<Partial<Record<Field['type'], z.ZodType>>> = {
    string: text,
    'array of object': z.array(z.looseObject({})).min(1),
    'array of Balance': z.array(z.looseObject({})).min(1),
  }

  it.each(responseFields)(
    'a response of section $section has $name',
    async ({ section, name, type, allowed = [] }) => {
      const person = await newGuest(origin)
      const { body } = await person.send('GET', '/api/wallets')
      const found = section === '2.1' ? [body] : z.array(z.looseObject({})).min(1).parse(body.balances)
      for (const members of found) expect(is[type]?.safeParse(members[name]).success).toBe(true)
      if (allowed.length > 0)
        expect([...allowed].sort()).toEqual([...new Set(found.map((members) => members[name]))].sort())
    },
  )
})

/** The path of a route here, where its own says only whose name stands in it. */
const buildPath = (route: string) => {
  const [method = '', path = ''] = route.split(' ')
  return { method, path: path.replace(/\{(\w+)\}/, (_, name: string) => providerNames[name] ?? name) }
}

/** A purchase as the card processor announces it. */
const buildPurchase = (cardId: string) => ({
  event_type: 'card_authorization.approval_request',
  token: randomUUID(),
  status: 'AUTHORIZATION',
  amount: 1250,
  card: { token: cardId },
  merchant: { acceptor_id: 'SHOP', descriptor: 'Corner Shop', mcc: '5411', country: 'USA' },
  pos: { entry_mode: { pan: 'ECOMMERCE' }, terminal: { partial_approval_capable: false, type: 'UNKNOWN' } },
})

async function newDeposit(person: Person, depositId: string) {
  const { body } = await person.send('GET', '/api/banking')
  const [account] = z.array(z.looseObject({ id: text })).parse(body.accounts)
  return {
    api_version: 'v0',
    event_id: randomUUID(),
    event_category: 'virtual_account.activity',
    event_type: 'updated.status_transitioned',
    event_object_id: randomUUID(),
    event_object_status: 'payment_processed',
    event_object: {
      virtual_account_id: account?.id,
      deposit_id: depositId,
      amount: '12.50',
      currency: 'usd',
      type: 'payment_processed',
    },
  }
}

async function sendToProvider(
  provider: 'lithic' | 'bridge',
  message: Members,
  isSigned = true,
  { to = origin, ...headers }: Record<string, string> = {},
) {
  const body = JSON.stringify(message)
  const { lithicWebhookSecret, bridgeWebhookPrivateKey } = credentials.parse(
    (await requestJson(to, 'GET', '/sandbox/credentials')).body,
  )
  const at = new Date()
  const signed =
    provider === 'lithic'
      ? signWebhook({ id: randomUUID(), body, at }, lithicWebhookSecret)
      : {
          'x-webhook-signature': signBankingWebhook(body, {
            key: createPrivateKey(bridgeWebhookPrivateKey),
            at,
          }),
        }
  const response = await fetch(`${to}/api/webhooks/${provider}`, {
    method: 'POST',
    headers: { ...json, ...headers, ...(isSigned ? signed : {}) },
    body,
  })
  return { status: response.status, body: z.looseObject({}).parse(await response.json()) }
}

/** A request that succeeds, where the path alone is not enough. */
const requests: Readonly<Record<string, (person: Person) => Promise<Sent>>> = {
  'POST /api/auth/webauthn': async () => ({ body: { action: 'register', credential: null } }),
  'POST /api/wallets/transfer': async () => ({
    body: { destination: payee, amount: 1, signature: 'sandbox' },
  }),
  'POST /api/banking': async () => ({ body: { currency: 'GBP' } }),
  'PATCH /api/cards': async (person) => ({
    body: { cardId: (await readCard(person)).id, nickname: 'Travel' },
  }),
  'POST /api/cards/settings': async (person) => ({
    body: { cardId: (await readCard(person)).id, freeze: true },
  }),
  'POST /api/investing/order': async () => ({ body: { symbol: 'VTI', side: 'buy', notional: 10 } }),
  'POST /api/swaps': async () => ({
    body: { fromToken: 'USDC', toToken: 'USDT', fromChain: 'base', amountIn: 100 },
  }),
  'POST /api/compliance/kyc': async () => ({
    body: {
      level: 'basic',
      applicant: {
        firstName: 'Ada',
        lastName: 'Lovelace',
        dateOfBirth: '1990-12-10',
        country: 'DE',
        address: 'Unter den Linden 1, 10117 Berlin',
      },
    },
  }),
  'POST /api/compliance/travel-rule': async () => ({
    body: {
      amount: 1500,
      token: 'USDC',
      destination: payee,
      beneficiary: { name: 'Grace Hopper', country: 'US' },
    },
  }),
  'POST /api/auth/otp/start': async () => ({
    body: { channel: 'email', destination: newMailbox('letter') },
  }),
  'POST /api/auth/{identity_provider_a}': async () => ({ body: {} }),
  'POST /api/auth/{identity_provider_b}': async () => ({ body: {} }),
  'POST /api/auth/guest': async () => ({ body: {} }),
  'POST /api/security/mfa': async () => ({ body: { action: 'status' } }),
  'POST /api/agents/keys': async () => ({
    body: { name: 'Bot', publicKey: (await newAgent()).jwk, scopes: ['wallets:transfer'], policy },
  }),
  'POST /api/transfers/gasless': async () => {
    const { chain, payer } = await readCredentials()
    // Signing reads only the chain's id and the token's address.
    const signed = { id: chain.chainId, tokens: chain.tokens } as unknown as Chain
    const to = z.templateLiteral(['0x', text]).parse(payee)
    const authorization = await signAuthorization(signed, privateKeyToAccount(payer.privateKey), {
      to,
      value: 10_000n,
    })
    return { body: { token: 'USDC', authorization } }
  },
  'POST /api/docs/feedback': async () => ({ body: { page: 'docs/quick-start', vote: 'up' } }),
  'GET /api/x402/fx': async () => ({ query: '?from=USD&to=EUR&amount=100' }),
}

/** Routes whose caller must have a verified identity. */
const ofVerified = new Set(['POST /api/compliance/travel-rule'])

async function succeed({ route, who }: Route): Promise<{ status: number; body: Members }> {
  const person = await newGuest(origin)
  if (route === 'POST /api/webhooks/{card_processor}')
    return sendToProvider('lithic', buildPurchase((await readCard(person)).id))
  if (route === 'POST /api/webhooks/{stablecoin_provider}')
    return sendToProvider('bridge', await newDeposit(person, randomUUID()))
  if (ofVerified.has(route)) {
    const identity = await requests['POST /api/compliance/kyc']?.(person)
    await person.send('POST', '/api/compliance/kyc', identity?.body)
  }
  const { method, path } = buildPath(route)
  const { body, query = '' } = (await requests[route]?.(person)) ?? {}
  if (route === 'GET /api/x402/fx') {
    const { payer } = await readCredentials()
    const pay = wrapFetchWithPayment(fetch, privateKeyToAccount(payer.privateKey))
    const response = await pay(`${origin}${path}${query}`)
    return { status: response.status, body: z.looseObject({}).parse(await response.json()) }
  }
  return who === 'public' ? requestJson(origin, method, path, { body }) : person.send(method, path, body)
}

describe('the route', () => {
  it.each(routes)('$route succeeds with 200', async (route) => {
    const { status, body } = await succeed(route)
    expect([status, body]).toMatchObject([
      200,
      Object.fromEntries(route.answer.map((name) => [name, expect.anything()])),
    ])
  })

  const authenticated = routes.filter(({ who }) => who === 'account' || who === 'session')
  it.each(authenticated)('$route is for callers with a credential', async ({ route }) => {
    const person = await newGuest(origin)
    const { method, path } = buildPath(route)
    const { body } = (await requests[route]?.(person)) ?? {}
    expect(readCode(await requestJson(origin, method, path, { body }))).toBe('401 unauthenticated')
  })

  it('POST /api/auth/webauthn makes a session of a passkey, new or known', async () => {
    const device = newAuthenticator(`http://localhost:${new URL(origin).port}`)
    const send = (body: Members) => requestJson(origin, 'POST', '/api/auth/webauthn', { body })
    for (const action of ['register', 'login'] as const) {
      const { body } = await send({ action })
      const credential = action === 'register' ? device.create(body.publicKey) : device.get(body.publicKey)
      expect(await send({ action, credential })).toMatchObject({
        status: 200,
        body: { sessionToken: expect.any(String) },
      })
    }
  })
})

/** Trials by name of the row. */
type Trials<Name extends string> = Readonly<Record<Name, () => Promise<void>>>

const payBy = async (cardId: string) => (await sendToProvider('lithic', buildPurchase(cardId))).body.result

const byState: Trials<(typeof states)[number]> = {
  'account locked': async () => {
    const mailbox = newMailbox('locked')
    const person = await signInByEmail(origin, mailbox)
    const bot = await newApiKey(person, ['wallets:read'])
    expect((await person.send('POST', '/api/security/lock', {})).status).toBe(200)
    for (const { route } of routes.filter(({ who }) => who === 'account' || who === 'session')) {
      const { method, path } = buildPath(route)
      const answer = await person.send(method, path, method === 'GET' ? undefined : {})
      expect([route, readCode(answer)]).toEqual([route, '423 account_locked'])
    }
    const headers = { authorization: `Bearer ${bot}` }
    expect(readCode(await requestJson(origin, 'GET', '/api/wallets', { headers }))).toBe('423 account_locked')

    const start = { channel: 'email', destination: mailbox }
    const { body } = await requestJson(origin, 'POST', '/api/auth/recovery/start', { body: start })
    const code = await lastCodeTo(origin, mailbox)
    const recovered = await requestJson(origin, 'POST', '/api/auth/recovery/complete', {
      body: { challengeId: body.challengeId, code },
    })
    const again = { authorization: `Bearer ${text.parse(recovered.body.sessionToken)}` }
    expect((await requestJson(origin, 'GET', '/api/wallets', { headers: again })).status).toBe(200)
  },
  'card not frozen': async () => {
    const person = await newGuest(origin)
    const { id: cardId } = await readCard(person)
    expect(await payBy(cardId)).toBe('APPROVED')
    await person.send('POST', '/api/cards/settings', { cardId, freeze: true })
    expect((await readCard(person)).status).toBe('frozen')
    expect(await payBy(cardId)).not.toBe('APPROVED')
  },
  'card frozen': async () => {
    const person = await newGuest(origin)
    const { id: cardId } = await readCard(person)
    await person.send('POST', '/api/cards/settings', { cardId, freeze: true })
    await person.send('POST', '/api/cards/settings', { cardId, freeze: false })
    expect((await readCard(person)).status).toBe('active')
    expect(await payBy(cardId)).toBe('APPROVED')
  },
}

describe('the state', () => {
  it.each(states)('“%s” is left as the table says', (name) => byState[name]())
})

const bySchemes: Trials<(typeof schemes)[number]> = {
  Bearer: async () => {
    const key = await newApiKey(await newGuest(origin), ['wallets:read'])
    const headers = { authorization: `Bearer ${key}` }
    expect((await requestJson(origin, 'GET', '/api/wallets', { headers })).status).toBe(200)
    const { body } = await requestJson(origin, 'GET', '/api/openapi.json')
    const [[scheme = ''] = []] = z.array(z.record(text, z.unknown())).parse(body.security).map(Object.keys)
    const { components } = z.object({ components: z.looseObject({}) }).parse(body)
    expect(components.securitySchemes).toMatchObject({
      [scheme]: { type: 'http', scheme: 'bearer', bearerFormat: 'API key' },
    })
  },
  'Session cookie': async () => {
    const { token } = await signInByEmail(origin, newMailbox('cookie'))
    const { iat = 0, exp = 0 } = decodeJwt(token)
    expect((exp - iat) / 60).toBeLessThanOrEqual(15)
    const headers = { cookie: `bursar_session=${token}` }
    expect((await requestJson(origin, 'GET', '/api/wallets', { headers })).status).toBe(200)
  },
  'Signed requests': async () => {
    const agent = await newAgent()
    const owner = await newGuest(origin)
    await owner.send('POST', '/api/agents/keys', {
      name: 'Bot',
      publicKey: agent.jwk,
      scopes: ['wallets:transfer'],
      policy,
    })
    const body = JSON.stringify({ destination: payee, amount: 1 })
    const request = { method: 'POST', url: `${origin}/api/wallets/transfer`, body }
    expect(Object.keys(await agent.sign(request))).toEqual(
      expect.arrayContaining(['signature-input', 'content-digest']),
    )
    expect((await agent.fetch(request)).status).toBe(200)
  },
  'Scoped authorization': async () => {
    const { body } = await requestJson(origin, 'GET', '/.well-known/oauth-protected-resource/mcp')
    expect(body).toMatchObject({
      resource: `${origin}/mcp`,
      scopes_supported: expect.arrayContaining(['wallets:read', 'wallets:transfer']),
    })
    const key = await newApiKey(await newGuest(origin), ['wallets:read'])
    const requestInit = { headers: { authorization: `Bearer ${key}` } }
    const client = await connectMcp(origin, { requestInit })
    const { tools } = await client.listTools()
    await client.close()
    const names = tools.map(({ name }) => name)
    expect([names.includes('wallets_get'), names.includes('wallets_transfer')]).toEqual([true, false])
  },
  'Provider signature': async () => {
    for (const provider of ['lithic', 'bridge'] as const)
      expect(readCode(await sendToProvider(provider, {}, false))).toBe('401 signature_invalid')
    const { id } = await readCard(await newGuest(origin))
    expect((await sendToProvider('lithic', buildPurchase(id))).status).toBe(200)
  },
}

describe('the credential', () => {
  it.each(schemes)('“%s” works as the table says', (name) => bySchemes[name]())
})

const byEvent: Trials<(typeof events)[number]> = {
  'card authorization request': async () => {
    const person = await newGuest(origin)
    const { id } = await readCard(person)
    const message = buildPurchase(id)
    const approved = await sendToProvider('lithic', message)
    expect(approved.body).toMatchObject({ result: 'APPROVED' })
    expect((await sendToProvider('lithic', message)).body).toEqual(approved.body)
    const { status, body } = await sendToProvider('lithic', { ...buildPurchase(id), amount: 99_999_999 })
    expect([status, body.result]).not.toEqual([200, 'APPROVED'])
    expect(status).toBe(200)
  },
  'stablecoin deposit or payout': async () => {
    const person = await newGuest(origin)
    const usdc = async () => {
      const { body } = await person.send('GET', '/api/wallets')
      return z
        .array(z.looseObject({ token: text, amount: text }))
        .parse(body.balances)
        .find(({ token }) => token === 'USDC')?.amount
    }
    const deposit = await newDeposit(person, randomUUID())
    for (let times = 0; times < 2; times += 1)
      expect(await sendToProvider('bridge', deposit)).toMatchObject({ status: 200, body: { received: true } })
    await expect.poll(usdc).toBe('1012.5')
  },
}

describe('the event', () => {
  it.each(events)('“%s” is answered as the table says', (name) => byEvent[name]())
})

describe('the error', () => {
  let limited: Gateway
  let closed: Gateway
  beforeAll(async () => {
    const env = { CHAIN: 'simulated', LOG_LEVEL: 'silent' }
    ;[limited, closed] = await Promise.all([
      startGateway({ ...env, TRUSTED_PROXIES: '127.0.0.0/8' }),
      // Nothing listens there.
      startGateway({ ...env, RAIL_CONTROLS_URL: 'http://127.0.0.1:9/' }),
    ])
  })
  afterAll(() => Promise.all([limited?.stop(), closed?.stop()]))

  const byStatus: Trials<(typeof errors)[number]> = {
    403: async () => {
      const person = await newGuest(origin)
      const sanctioned = `${payee.slice(0, -4)}9999`
      const body = { destination: sanctioned, amount: 1, signature: 'sandbox' }
      const answer = await person.send('POST', '/api/wallets/transfer', body)
      expect(readCode(answer)).toBe('403 aml_blocked')
    },
    423: () => byState['account locked'](),
    429: () => byLimit['POST /api/docs/feedback'](),
    503: async () => {
      const url = `${closed.origin}/api/x402/fx?from=USD&to=EUR&amount=100`
      for (const headers of [{}, { 'x-payment': 'e30=' }]) {
        const response = await fetch(url, { headers })
        expect([response.status, await response.json()]).toMatchObject([
          503,
          { code: 'controls_unavailable', reason: 'plan_limit' },
        ])
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      }
    },
  }
  it.each(errors)('%s is answered as the table says', (name) => byStatus[name]())

  let addresses = 0
  /** Requests of a client that has sent none before. */
  const newClient = () => {
    addresses += 1
    const headers = { 'x-forwarded-for': `203.0.113.${addresses}` }
    return async (method: string, path: string, body?: unknown, extra: Record<string, string> = {}) => {
      const response = await fetch(`${limited.origin}${path}`, {
        method,
        headers: { ...headers, ...(body === undefined ? {} : json), ...extra },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      await response.arrayBuffer()
      return response
    }
  }
  /** Sends as many requests as are allowed in a minute, then one more. */
  async function exceed(count: number, send: (at: number) => Promise<Response>): Promise<void> {
    for (let at = 0; at < count; at += 1) expect([at, (await send(at)).status]).not.toEqual([at, 429])
    const refused = await send(count)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
  }
  const openSession = async (send: ReturnType<typeof newClient>) => {
    const response = await fetch(`${limited.origin}/api/auth/guest`, {
      method: 'POST',
      headers: json,
      body: '{}',
    })
    const { sessionToken } = z.looseObject({ sessionToken: text }).parse(await response.json())
    const authorization = { authorization: `Bearer ${sessionToken}` }
    return (method: string, path: string, body?: unknown) => send(method, path, body, authorization)
  }

  const perMinute = (scope: string) => limits.find((limit) => limit.scope === scope)?.perMinute ?? 0
  const byLimit: Trials<(typeof limits)[number]['scope']> = {
    'every mutating request': async () => {
      const send = newClient()
      const methods = ['POST', 'PUT', 'PATCH', 'DELETE']
      const count = perMinute('every mutating request')
      await exceed(count, (at) => send(methods[at % 4] ?? '', '/api/cards', {}))
      expect((await send('GET', '/api/rails')).status).toBe(200)
      const from = { to: limited.origin, 'x-forwarded-for': `203.0.113.${addresses}` }
      expect((await sendToProvider('lithic', { event_type: 'x', token: 'x' }, true, from)).status).toBe(200)
      // A card's controls count for its session, not its address; they are allowed as often.
      const mine = await openSession(newClient())
      await exceed(count, () => mine('POST', '/api/cards/settings', { cardId: 'card_x', freeze: true }))
    },
    'POST /api/transfers/gasless': async () => {
      const send = await openSession(newClient())
      await exceed(perMinute('POST /api/transfers/gasless'), () => send('POST', '/api/transfers/gasless', {}))
    },
    'GET /api/rails': async () => {
      const send = newClient()
      await exceed(perMinute('GET /api/rails'), () => send('GET', '/api/rails'))
    },
    'POST /api/docs/feedback': async () => {
      const send = newClient()
      const vote = { page: 'docs/quick-start', vote: 'down' }
      await exceed(perMinute('POST /api/docs/feedback'), () => send('POST', '/api/docs/feedback', vote))
    },
    'GET /api/x402/fx': async () => {
      const send = newClient()
      for (let at = 0; at < 400; at += 1)
        expect((await send('GET', '/api/x402/fx?from=USD&to=EUR&amount=100')).status).toBe(402)
    },
    'OTP and e-mail sending routes': async () => {
      const send = newClient()
      const start = (route: string) =>
        send('POST', `/api/auth/${route}/start`, { channel: 'email', destination: newMailbox('many') })
      for (const route of ['otp', 'recovery']) await exceed(5, () => start(route))
    },
  }
  it.each(limits)('429 ends “$scope”', ({ scope }) => byLimit[scope]())
})

const byRule: Trials<keyof typeof rules> = {
  '5.2.1': async () => {
    const signedIn = await fetch(`${origin}/api/auth/guest`, { method: 'POST', headers: json, body: '{}' })
    expect(signedIn.headers.get('set-cookie')).toMatch(/^bursar_session=[\w-]+\.[\w-]+\.[\w-]+;.* HttpOnly/)
  },
  '5.2.2': async () => {
    const { token } = await newGuest(origin)
    const [head, claims] = token.split('.')
    const headers = { cookie: `bursar_session=${head}.${claims}.${'A'.repeat(43)}` }
    expect(readCode(await requestJson(origin, 'GET', '/api/wallets', { headers }))).toBe(
      '401 unauthenticated',
    )
  },
  '5.2.3': async () => {
    const person = await signInByEmail(origin, newMailbox('admin'))
    const reviews = () => person.send('GET', '/api/admin/reviews')
    expect(readCode(await reviews())).toBe('403 insufficient_scope')
    await person.send('POST', '/sandbox/admin', {})
    expect((await reviews()).status).toBe(200)
  },
  '5.2.6': async () => {
    const mailbox = newMailbox('stale')
    await enrollMfa(await signInByEmail(origin, mailbox))
    const stale = await signInByEmail(origin, mailbox)
    const grant = { name: 'Key', scopes: ['wallets:read'] }
    expect(readCode(await stale.send('POST', '/api/developer/keys', grant))).toBe('401 step_up_required')
  },
  '5.2.7': async () => {
    const guest = await newGuest(origin)
    expect(readCode(await guest.send('POST', '/sandbox/admin', {}))).toBe('409 conflict')
    expect((await guest.send('GET', '/api/auth/session')).body).toMatchObject({
      account: { role: 'user', guest: true },
    })
  },
  '5.3.2': async () => {
    const [agent, owner] = [await newAgent(), await newGuest(origin)]
    await owner.send('POST', '/api/agents/keys', {
      name: 'Bot',
      publicKey: agent.jwk,
      scopes: ['wallets:transfer'],
      policy,
    })
    const url = `${origin}/api/wallets/transfer`
    const body = JSON.stringify({ destination: payee, amount: 1 })
    const headers = await agent.sign({ method: 'POST', url, body })
    const changed = await fetch(url, { method: 'POST', headers, body: body.replace(':1', ':2') })
    expect([changed.status, await changed.json()]).toMatchObject([401, { code: 'digest_mismatch' }])
    const bare = await agent.fetch({ method: 'POST', url, body, uncovered: ['content-digest'] })
    expect([bare.status, await bare.json()]).toMatchObject([401, { code: 'signature_invalid' }])
  },
  '5.3.3': async () => {
    const key = await newApiKey(await newGuest(origin), ['wallets:transfer', 'investing:trade'])
    const headers = { authorization: `Bearer ${key}` }
    const send = async (path: string, body: Members) => {
      const answer = await requestJson(origin, 'POST', path, { body, headers })
      const violations = z
        .array(z.looseObject({ rule: text }))
        .catch([])
        .parse(answer.body.violations)
      return [answer.status, ...violations.map(({ rule }) => rule)]
    }
    const pay = (amount: number) => send('/api/wallets/transfer', { destination: payee, amount })
    expect(await pay(5.01)).toEqual([403, 'per_transaction'])
    expect(await pay(5)).toEqual([200])
    expect(await pay(3.01)).toEqual([403, 'daily_budget'])
    expect(await send('/api/investing/order', { symbol: 'VTI', side: 'buy', notional: 1 })).toEqual([
      403,
      'category',
    ])
  },
  '5.4.1': async () => {
    const response = await fetch(`${origin}/api/x402/fx?from=USD&to=EUR&amount=100`)
    expect([response.status, await response.json()]).toMatchObject([402, { accepts: expect.any(Array) }])
  },
  '5.5.2': async () => {
    const headers = { authorization: `Bearer ${await newApiKey(await newGuest(origin), ['wallets:read'])}` }
    for (const { route } of routes.filter(({ who }) => who === 'session')) {
      const { method, path } = buildPath(route)
      const answer = await requestJson(origin, method, path, { body: {}, headers })
      expect([route, readCode(answer)]).toEqual([route, '403 insufficient_scope'])
    }
  },
  '5.5.4': async () => {
    const { token } = await newGuest(origin)
    for (const query of ['token=x', 'api_key=x', 'signature=x', 'x-payment=x', `q=${token}`])
      for (const route of ['/api/wallets', '/api/rails', '/nowhere'])
        expect(readCode(await requestJson(origin, 'GET', `${route}?${query}`))).toBe(
          '400 credential_in_query',
        )
  },
  '9.1': async () => {
    const { body } = await requestJson(origin, 'GET', '/api/openapi.json')
    expect(body.info).toMatchObject({ version: '0.1.0' })
    const paths = Object.keys(z.looseObject({}).parse(body.paths))
    expect(paths.filter((path) => !/^\/(api|sandbox)\//.test(path) || /\/v\d+(\/|$)/.test(path))).toEqual([])
    for (const { route } of routes) expect(paths).toContain(buildPath(route).path)
  },
}

describe('the rule', () => {
  const numbered = Object.entries(rules).map(([number, claim]) => ({ number, claim }))
  it.each(numbered)('$number: $claim', async ({ number }) => {
    const [, trial] = Object.entries(byRule).find(([name]) => name === number) ?? []
    await trial?.()
  })
})
