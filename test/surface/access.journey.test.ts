/**
 * Access control: every route of the OpenAPI document with every kind of credential, over real HTTP. Rows come from the
 * document, expectations from the registry; the whole table is kept as a readable snapshot next to this file.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { scopes } from '../../policies/scopes.ts'
import type { Tool } from '../../src/kernel/tool.ts'
import { tools } from '../../tools/index.ts'
import { generousLimits } from '../generous-limits.ts'
import { type Agent, newAgent } from '../journeys/agent.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import {
  enrollMfa,
  newGuest,
  newMailbox,
  type Person,
  requestJson,
  signInByEmail,
} from '../journeys/people.ts'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import { exampleRequest } from './example-request.ts'

const SECRET = 'a session secret shared with this test'

/** Kinds of caller, in the order of the columns. */
const kinds = [
  'none',
  'guest',
  'person',
  'stale person',
  'admin',
  'locked person',
  'expired session',
  'ended session',
  'forged session',
  'key without scopes',
  'key with all scopes',
  'locked key',
  'expired key',
  'agent without scopes',
  'agent with all scopes',
  'locked agent',
  'expired agent',
  'expired signature',
] as const
type Kind = (typeof kinds)[number]

type Send = (request: { method: string; target: string; body?: string }) => Promise<Response>

const policy = {
  perTransaction: { max: '1000' },
  dailyBudget: { max: '100000' },
  categories: { allow: ['transfer', 'x402'] },
}
const allScopes = Object.keys(scopes)

let gateway: Gateway
let people = 0
const newPerson = () => {
  people += 1
  return signInByEmail(gateway.origin, `person-${people}@example.com`)
}

beforeAll(async () => {
  gateway = await startGateway({
    CHAIN: 'simulated',
    SESSION_SECRET: SECRET,
    ...generousLimits,
  })
})
afterAll(() => gateway?.stop())

const document = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.object({ operationId: z.string() }))),
})

/** Every served route, with its tool. */
async function listServed(): Promise<{ route: string; tool: Tool }[]> {
  const { paths } = document.parse((await requestJson(gateway.origin, 'GET', '/api/openapi.json')).body)
  // Providers authenticate by their signatures, whatever else they send: webhooks have tests of their own.
  const forCallers = Object.entries(paths).filter(([path]) => !path.startsWith('/api/webhooks/'))
  return forCallers.flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => {
      const tool = tools.find(({ name }) => operationId === name || operationId.startsWith(`${name}.`))
      if (tool === undefined) throw new Error(`${operationId} is in no tool`)
      return { route: `${method.toUpperCase()} ${path}`, tool }
    }),
  )
}

const bearer =
  (token: string): Send =>
  ({ method, target, body }) =>
    fetch(`${gateway.origin}${target}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body }),
    })

const signAs =
  (agent: Agent, parameters: Record<string, Date> = {}): Send =>
  ({ method, target, body }) =>
    agent.fetch({
      method,
      url: `${gateway.origin}${target}`,
      parameters,
      ...(body === undefined ? {} : { body }),
    })

const createKey = async (owner: Person, more: Record<string, unknown>) => {
  const { body } = await owner.send('POST', '/api/developer/keys', { name: 'Key', policy, ...more })
  return bearer(z.string().parse(body.key))
}

const registerAgent = async (owner: Person, more: Record<string, unknown>) => {
  const agent = await newAgent()
  const grant = { name: 'Agent', policy, publicKey: agent.jwk, ...more }
  const { body } = await owner.send('POST', '/api/agents/keys', grant)
  z.string().parse(body.agentId)
  return agent
}

async function expiredToken({ token }: Person): Promise<string> {
  const claims = z
    .record(z.string(), z.unknown())
    .parse(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()))
  const past = Math.floor(Date.now() / 1000) - 60
  return new SignJWT({ ...claims, iat: past - 900, exp: past })
    .setProtectedHeader({ alg: 'HS256', typ: 'bursar-session+jwt' })
    .sign(Buffer.from(SECRET))
}

/**
 * A key and an agent that expire in a moment. On a busy machine, creating them may take longer: then they are created
 * again with a longer life.
 */
async function soonExpired(owner: Person) {
  for (let lifeMs = 400; ; lifeMs *= 2) {
    const endsAt = Date.now() + lifeMs
    const grant = { scopes: allScopes, expiresAt: new Date(endsAt).toISOString() }
    try {
      const [expiredKey, expiredAgent] = [await createKey(owner, grant), await registerAgent(owner, grant)]
      return { expiredKey, expiredAgent, endsAt }
    } catch (error) {
      if (lifeMs > 5_000) throw error
    }
  }
}

/** A cast of callers, new for each route that changes anything, so that its effect on a caller does not affect the next row. */
async function newCast(): Promise<Record<Kind, Send>> {
  const [guest, owner, person, admin, locked] = await Promise.all([
    newGuest(gateway.origin),
    newGuest(gateway.origin),
    newPerson(),
    newPerson(),
    newPerson(),
  ])
  await admin.send('POST', '/sandbox/admin', {})
  const address = `stale-${people}@example.com`
  await enrollMfa(await signInByEmail(gateway.origin, address))
  const stale = await signInByEmail(gateway.origin, address)
  const ended = await newGuest(gateway.origin)
  await ended.send('POST', '/api/auth/logout', {})
  const { expiredKey, expiredAgent, endsAt } = await soonExpired(owner)
  const [lockedKey, lockedAgent, bareKey, fullKey, bareAgent, fullAgent] = [
    await createKey(locked, { scopes: allScopes }),
    await registerAgent(locked, { scopes: allScopes }),
    await createKey(owner, { scopes: [] }),
    await createKey(owner, { scopes: allScopes }),
    await registerAgent(owner, { scopes: [] }),
    await registerAgent(owner, { scopes: allScopes }),
  ]
  await locked.send('POST', '/api/security/lock', {})
  await sleep(Math.max(0, endsAt - Date.now()))
  const hourAgo = { created: new Date(Date.now() - 3_600_000), expires: new Date(Date.now() - 3_500_000) }
  const [header, , signature] = person.token.split('.')
  const claims = Buffer.from(JSON.stringify({ sub: admin.accountId, sid: 'sess_x', exp: 9e9 })).toString(
    'base64url',
  )
  return {
    none: ({ method, target, body }) =>
      fetch(`${gateway.origin}${target}`, {
        method,
        ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
      }),
    guest: bearer(guest.token),
    person: bearer(person.token),
    'stale person': bearer(stale.token),
    admin: bearer(admin.token),
    'locked person': bearer(locked.token),
    'expired session': bearer(await expiredToken(person)),
    'ended session': bearer(ended.token),
    'forged session': bearer(`${header}.${claims}.${signature}`),
    'key without scopes': bareKey,
    'key with all scopes': fullKey,
    'locked key': lockedKey,
    'expired key': expiredKey,
    'agent without scopes': signAs(bareAgent),
    'agent with all scopes': signAs(fullAgent),
    'locked agent': signAs(lockedAgent),
    'expired agent': signAs(expiredAgent),
    'expired signature': signAs(fullAgent, hourAgo),
  }
}

/** True if every person proves the call. The callers' wallets have no signer, so a signature is not asked for. */
const isProven = ({ proof }: Tool) => proof === 'step-up' || proof === 'recent' || proof === 'signature'

/** The expected status and code; undefined if the tool itself decides. */
function findExpected(tool: Tool, kind: Kind): string | undefined {
  if (tool.who === 'public') return undefined
  if (kind === 'none' || /session$/.test(kind)) return '401 unauthenticated'
  if (kind === 'expired signature') return '401 signature_expired'
  if (kind.startsWith('expired')) return '401 unknown_key'
  if (kind.startsWith('locked')) return '423 account_locked'
  const isKey = /^(key|agent)/.test(kind)
  if (isKey && tool.who !== 'account') return '403 insufficient_scope'
  if (/without scopes$/.test(kind) && tool.scopes.length > 0) return '403 insufficient_scope'
  if (tool.who === 'admin' && kind !== 'admin') return '403 insufficient_scope'
  // Identity data comes from the person only; a key can only read the status.
  if (isKey && tool.name === 'compliance.kyc') return '403 insufficient_scope'
  // The examples ask for fewer mails, for a new browser, and for a review of one's identity, which need a proof.
  const ownProof = ['notifications.settings.update', 'notifications.subscriptions.create', 'compliance.kyc']
  const needsProof = isProven(tool) || ownProof.includes(tool.name)
  if (needsProof && kind === 'stale person') return '401 step_up_required'
  return undefined
}

/** The authorization failures. A tool that decides itself never answers with one of these. */
const refusals =
  /^(401 |423 |403 (insufficient_scope|mfa_enrollment_required|cross_site_request)|400 (ambiguous|credential))/
/** Sign-in tools that answer 401 because of their input, not of the caller, and tools whose input names the scope. */
const judgesItsInput = ({ opensSession, name }: Tool) =>
  opensSession === true || /^(approvals\.request|recourse\.open|schedules\.create)$/.test(name)

async function readCell(response: Response): Promise<string> {
  const body = z.looseObject({ code: z.string().optional() }).parse(await response.json())
  return response.status < 300 || body.code === undefined
    ? String(response.status)
    : `${response.status} ${body.code}`
}

describe('access control', () => {
  it('matches the registry, for every route and every credential', { timeout: 900_000 }, async () => {
    const routes = await listServed()
    const lines: string[] = []
    const wrong: string[] = []
    const readers = await newCast()
    for (const { route, tool } of routes.sort((one, other) => (one.route < other.route ? -1 : 1))) {
      const cast = tool.effect === 'read' ? readers : await newCast()
      const cells = new Map<string, Kind[]>()
      for (const kind of kinds) {
        const cell = await readCell(await cast[kind](exampleRequest(tool, route)))
        cells.set(cell, [...(cells.get(cell) ?? []), kind])
        const expected = findExpected(tool, kind)
        const isWrong =
          expected === undefined ? refusals.test(cell) && !judgesItsInput(tool) : cell !== expected
        if (isWrong)
          wrong.push(`${route} as ${kind}: ${cell}, expected ${expected ?? 'the tool’s own decision'}`)
      }
      lines.push(
        `${route}  (${tool.who}${isProven(tool) ? `, ${tool.proof}` : ''})`,
        ...[...cells].map(([cell, who]) => `  ${cell}: ${who.join(', ')}`),
      )
    }
    expect(wrong).toEqual([])
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('__snapshots__/access.snap')
  })

  it('is equal at /mcp, which accepts keys only', async () => {
    const cast = await newCast()
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    const statuses = new Map<Kind, string>()
    for (const kind of kinds)
      statuses.set(kind, await readCell(await cast[kind]({ method: 'POST', target: '/mcp', body })))
    const [locked, expired] = [/^locked/, /^expired (key|agent)$/].map((pattern) =>
      kinds.filter((name) => pattern.test(name)),
    )
    expect([locked?.length, expired?.length]).toEqual([3, 2])
    for (const kind of locked ?? []) expect([kind, statuses.get(kind)]).toEqual([kind, '423 account_locked'])
    for (const kind of expired ?? []) expect([kind, statuses.get(kind)]).toEqual([kind, '401 unknown_key'])
    for (const kind of ['none', 'guest', 'person', 'admin', 'forged session'] as const)
      expect([kind, statuses.get(kind)]).toEqual([kind, '401 unauthenticated'])
    // The protocol requires an Accept header; this tests only that the key is accepted.
    for (const kind of ['key with all scopes', 'agent without scopes'] as const)
      expect([kind, statuses.get(kind)]).toEqual([kind, '406'])
  })

  it('covers every tool that the sandbox serves', async () => {
    const covered = new Set((await listServed()).map(({ tool }) => tool.name))
    expect(tools.filter(({ name }) => !covered.has(name)).map(({ name }) => name)).toEqual([])
  })
})

async function createAgent(owner: Person) {
  const { jwk } = await newAgent()
  const { body } = await owner.send('POST', '/api/agents/keys', { name: 'Bot', publicKey: jwk, scopes: [] })
  const path = `/api/agents/keys/${String(body.agentId)}`
  return {
    id: String(body.agentId),
    isThere: async () => (await owner.send('GET', path)).body.status === 'active',
  }
}

async function createApproval(owner: Person) {
  const agent = await newAgent()
  await owner.send('POST', '/api/agents/keys', {
    name: 'Bot',
    publicKey: agent.jwk,
    scopes: ['wallets:transfer'],
    policy: { ...policy, approval: { above: '1' } },
  })
  const transfer = { destination: `0x${'1'.repeat(40)}`, amount: '2', signature: 'x' }
  const response = await signAs(agent)({
    method: 'POST',
    target: '/api/wallets/transfer',
    body: JSON.stringify(transfer),
  })
  const { approvalId: id } = z.object({ approvalId: z.string() }).parse(await response.json())
  const isThere = async () => (await owner.send('GET', `/api/approvals/${id}`)).body.status === 'pending'
  return { id, isThere }
}

async function createApiKey(owner: Person) {
  const { body } = await owner.send('POST', '/api/developer/keys', { name: 'Key', scopes: [] })
  const isThere = async () =>
    JSON.stringify((await owner.send('GET', '/api/developer/keys')).body).includes(
      `"${String(body.id)}","name":"Key","status":"active"`,
    )
  return { id: String(body.id), isThere }
}

async function createPurchase(owner: Person) {
  const url = `${gateway.origin}/sandbox/sellers/weather`
  const { body } = await owner.send('POST', '/api/purchases', { url, maxAmount: '0.1' })
  const path = `/api/purchases/${String(body.purchaseId)}`
  return {
    id: String(body.purchaseId),
    isThere: async () => (await owner.send('GET', path)).body.status === 'delivered',
  }
}

async function createRecourse(owner: Person) {
  const { id } = await createPurchase(owner)
  const object = { kind: 'purchase', id }
  const { body } = await owner.send('POST', '/api/recourse', { object, reason: 'duplicate' })
  const path = `/api/recourse/${String(body.recourseId)}`
  return {
    id: String(body.recourseId),
    isThere: async () => (await owner.send('GET', path)).body.status === 'impossible',
  }
}

async function createSchedule(owner: Person) {
  const input = { destination: `0x${'00'.repeat(18)}beef`, amount: '1', token: 'USDC' }
  const { body } = await owner.send('POST', '/api/schedules', {
    operation: 'wallets.transfer',
    input,
    every: { unit: 'month' },
  })
  const path = `/api/schedules/${String(body.scheduleId)}`
  return {
    id: String(body.scheduleId),
    isThere: async () => (await owner.send('GET', path)).body.status === 'active',
  }
}

async function findOwner(owner: Person) {
  const isThere = async () =>
    JSON.stringify((await owner.send('GET', '/api/people')).body).includes('"role":"owner"')
  return { id: owner.accountId, isThere }
}

async function createInvitation(owner: Person) {
  const email = newMailbox('invited')
  const { body } = await owner.send('POST', '/api/people/invitations', { email, role: 'viewer' })
  const isThere = async () => JSON.stringify((await owner.send('GET', '/api/people')).body).includes(email)
  return { id: String(body.id), isThere }
}

async function createContact(owner: Person) {
  const { body } = await owner.send('POST', '/api/contacts', { name: 'Alice' })
  const isThere = async () =>
    JSON.stringify((await owner.send('GET', '/api/contacts')).body).includes('"name":"Alice"')
  return { id: String(body.id), isThere }
}

async function createRequest(owner: Person) {
  const { body } = await owner.send('POST', '/api/requests', { amount: '5' })
  const path = `/api/requests/${String(body.requestId)}`
  return {
    id: String(body.requestId),
    isThere: async () => (await owner.send('GET', path)).body.status === 'open',
  }
}

async function createSwap(owner: Person) {
  const { body } = await owner.send('POST', '/api/swaps/orders', {
    sell: { token: 'USDC', amount: '1' },
    buy: { token: 'EURC' },
  })
  const id = String(body.swapId)
  const read = async () => (await owner.send('GET', `/api/swaps/orders/${id}`)).body.swapId === id
  return { id, isThere: read }
}

async function createEndpoint(owner: Person) {
  const url = 'http://127.0.0.1:9/events'
  const { body } = await owner.send('POST', '/api/webhook-endpoints', { url, types: ['ping'] })
  const path = `/api/webhook-endpoints/${String(body.id)}`
  return {
    id: String(body.id),
    isThere: async () => (await owner.send('GET', path)).body.status === 'active',
  }
}

/** For each route that names an object: creates one, with its id and a check that it still exists. */
const objects: Readonly<
  Record<string, (owner: Person) => Promise<{ id: string; isThere: () => Promise<boolean> }>>
> = {
  'DELETE /api/auth/sessions/{id}': async (owner) => {
    const { body } = await owner.send('GET', '/api/auth/sessions')
    const [first] = z.array(z.object({ id: z.string() })).parse(body.sessions)
    return {
      id: first?.id ?? '',
      isThere: async () => (await owner.send('GET', '/api/auth/session')).status === 200,
    }
  },
  ...Object.fromEntries(
    [
      'GET /api/agents/keys/{id}',
      'PATCH /api/agents/keys/{id}',
      'DELETE /api/agents/keys/{id}',
      'POST /api/agents/keys/{id}/pause',
      'GET /api/agents/keys/{id}/usage',
      'GET /api/agents/keys/{id}/tree',
    ].map((route) => [route, createAgent] as const),
  ),
  'DELETE /api/agents/delegations/{id}': async (owner) => {
    const { id: parentId } = await createAgent(owner)
    const { body } = await owner.send('POST', '/api/agents/delegations', {
      parentId,
      name: 'Helper',
      scopes: [],
      bearer: true,
      expiresAt: '2099-01-01T00:00:00Z',
    })
    const isThere = async () => {
      const list = await owner.send('GET', `/api/agents/delegations?parentId=${parentId}`)
      return JSON.stringify(list.body).includes(String(body.agentId))
    }
    return { id: String(body.agentId), isThere }
  },
  'GET /api/agents/decisions/{id}/rules': async (owner) => {
    const transfer = { destination: `0x${'1'.repeat(40)}`, amount: '1', signature: 'x' }
    await owner.send('POST', '/api/wallets/transfer', transfer)
    const { body } = await owner.send('GET', '/api/agents/decisions')
    const [decision] = z.array(z.object({ decisionId: z.string() })).parse(body.decisions)
    const id = decision?.decisionId ?? ''
    const path = `/api/agents/decisions/${id}/rules`
    return { id, isThere: async () => (await owner.send('GET', path)).status === 200 }
  },
  'GET /api/wallets/transfers/{id}': async (owner) => {
    const transfer = { destination: `0x${'1'.repeat(40)}`, amount: '1', signature: 'x' }
    const { body } = await owner.send('POST', '/api/wallets/transfer', transfer)
    const path = `/api/wallets/transfers/${String(body.transferId)}`
    return {
      id: String(body.transferId),
      isThere: async () => (await owner.send('GET', path)).body.state === 'confirmed',
    }
  },
  'DELETE /api/investing/orders/{id}': async (owner) => {
    const waiting = { symbol: 'VTI', side: 'buy', notional: '1', type: 'limit', limitPrice: '1' }
    const { body } = await owner.send('POST', '/api/investing/order', waiting)
    return {
      id: String(body.id),
      isThere: async () =>
        JSON.stringify((await owner.send('GET', '/api/investing/orders?status=open')).body).includes(
          String(body.id),
        ),
    }
  },
  'DELETE /api/cards/{id}': async (owner) => {
    const { body } = await owner.send('GET', '/api/cards')
    const [first] = z.array(z.looseObject({ id: z.string() })).parse(body.cards)
    const isThere = async () =>
      z
        .array(z.looseObject({ status: z.string() }))
        .parse((await owner.send('GET', '/api/cards')).body.cards)[0]?.status === 'active'
    return { id: first?.id ?? '', isThere }
  },
  'POST /api/cards/{id}/reveal': async (owner) => {
    const { body } = await owner.send('GET', '/api/cards')
    const [card] = z.array(z.looseObject({ id: z.string() })).parse(body.cards)
    return { id: card?.id ?? '', isThere: async () => card !== undefined }
  },
  'DELETE /api/notifications/channels/{id}': async (owner) => {
    const path = '/api/notifications/channels'
    const { body } = await owner.send('POST', path, {
      type: 'slack',
      webhookUrl: 'https://hooks.slack.com/services/T0000/B0000/XXXX',
    })
    return {
      id: String(body.id),
      isThere: async () => JSON.stringify((await owner.send('GET', path)).body).includes(String(body.id)),
    }
  },
  'DELETE /api/notifications/subscriptions/{id}': async (owner) => {
    const keys = {
      p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
      auth: 'BTBZMqHH6r4Tts7J_aSIgg',
    }
    const subscription = { endpoint: 'https://push.example.com/send/abc', keys }
    const path = '/api/notifications/subscriptions'
    const { body } = await owner.send('POST', path, subscription)
    return {
      id: String(body.id),
      isThere: async () => JSON.stringify((await owner.send('GET', path)).body).includes(String(body.id)),
    }
  },
  'GET /api/cards/{id}/transactions': async (owner) => {
    const { body } = await owner.send('GET', '/api/cards')
    const [first] = z.array(z.object({ id: z.string() })).parse(body.cards)
    return {
      id: first?.id ?? '',
      isThere: async () => (await owner.send('GET', '/api/cards')).body.cards !== undefined,
    }
  },
  'GET /api/compliance/travel-rule/{id}': async (owner) => {
    const { body } = await owner.send('POST', '/api/compliance/travel-rule', {
      amount: '5',
      destination: `0x${'1'.repeat(40)}`,
      beneficiary: { name: 'Grace Hopper' },
    })
    const path = `/api/compliance/travel-rule/${String(body.id)}`
    return {
      id: String(body.id),
      isThere: async () => (await owner.send('GET', path)).body.status === 'not_required',
    }
  },
  'GET /api/banking/payouts/{id}': async (owner) => {
    const { body } = await owner.send('POST', '/api/banking/payouts', {
      recipientId: (await createRecipient(owner)).id,
      amount: '10',
    })
    const path = `/api/banking/payouts/${String(body.id)}`
    return {
      id: String(body.id),
      isThere: async () => (await owner.send('GET', path)).body.amount === '10',
    }
  },
  'GET /api/banking/recipients/{id}': createRecipient,
  'DELETE /api/banking/recipients/{id}': createRecipient,
  'GET /api/purchases/{id}': createPurchase,
  'GET /api/purchases/{id}/evidence': createPurchase,
  'GET /api/purchases/{id}/response': createPurchase,
  'GET /api/recourse/{id}': createRecourse,
  'GET /api/schedules/{id}': createSchedule,
  'PATCH /api/schedules/{id}': createSchedule,
  'DELETE /api/schedules/{id}': createSchedule,
  'GET /api/swaps/orders/{id}': createSwap,
  'GET /api/requests/{id}': createRequest,
  'DELETE /api/requests/{id}': createRequest,
  'POST /api/requests/{id}/payments': createRequest,
  'GET /api/people/{id}': findOwner,
  'PATCH /api/people/{id}': findOwner,
  'DELETE /api/people/{id}': findOwner,
  'DELETE /api/people/invitations/{id}': createInvitation,
  'PATCH /api/contacts/{id}': createContact,
  'DELETE /api/contacts/{id}': createContact,
  'GET /api/approvals/{id}': createApproval,
  'POST /api/approvals/{id}': createApproval,
  'DELETE /api/approvals/{id}': createApproval,
  'DELETE /api/security/passkeys/{id}': async (owner) => {
    const device = newAuthenticator(`http://localhost:${new URL(gateway.origin).port}`)
    const { body: registration } = await owner.send('POST', '/api/auth/webauthn', { action: 'register' })
    const credential = device.create(registration.publicKey)
    await owner.send('POST', '/api/auth/webauthn', { action: 'register', credential })
    const readPasskeys = async () => {
      const { body } = await owner.send('GET', '/api/security/passkeys')
      return z.array(z.looseObject({ id: z.string() })).parse(body.passkeys)
    }
    return {
      id: (await readPasskeys())[0]?.id ?? '',
      isThere: async () => (await readPasskeys()).length === 1,
    }
  },
  ...Object.fromEntries(
    ['DELETE /api/developer/keys/{id}', 'PATCH /api/developer/keys/{id}'].map(
      (route) => [route, createApiKey] as const,
    ),
  ),
  ...Object.fromEntries(
    [
      'GET /api/webhook-endpoints/{id}',
      'PATCH /api/webhook-endpoints/{id}',
      'DELETE /api/webhook-endpoints/{id}',
      'POST /api/webhook-endpoints/{id}/rotate',
      'POST /api/webhook-endpoints/{id}/test',
      'GET /api/webhook-endpoints/{id}/deliveries',
      'POST /api/webhook-endpoints/{id}/deliveries/{deliveryId}/retry',
    ].map((route) => [route, createEndpoint] as const),
  ),
}

async function createRecipient(owner: Person) {
  const { body } = await owner.send('POST', '/api/banking/recipients', {
    currency: 'USD',
    name: 'Grace Hopper',
    country: 'US',
    account: { routingNumber: '021000021', accountNumber: '123456789' },
  })
  const path = `/api/banking/recipients/${String(body.id)}`
  return {
    id: String(body.id),
    isThere: async () => (await owner.send('GET', path)).body.last4 === '6789',
  }
}

/** A valid body, if the route needs one. */
const bodies: Readonly<Record<string, object>> = {
  'PATCH /api/agents/keys/{id}': { name: 'Mine' },
  'PATCH /api/developer/keys/{id}': { status: 'paused' },
  'POST /api/approvals/{id}': { decision: 'reject' },
  'PATCH /api/webhook-endpoints/{id}': { status: 'disabled' },
  'PATCH /api/schedules/{id}': { status: 'paused' },
  'PATCH /api/contacts/{id}': { name: 'Mine' },
  'POST /api/requests/{id}/payments': { entryId: 'tx_01h455vb4pex5vsknk084sn02q' },
  'PATCH /api/people/{id}': { role: 'viewer' },
}

describe('another account’s object', () => {
  it('is not found, and stays unchanged', async () => {
    const withObject = tools.filter(
      ({ route, who, pathValues }) =>
        route.includes('{') &&
        // A registration or a program's sign-in belongs to nobody yet: the first person with its code decides it.
        !route.includes('/registrations/') &&
        !route.includes('/devices/') &&
        // It takes a seller on a chain: test/rails/buying/channels.journey.test.ts.
        !route.includes('/api/channels/') &&
        // It names a period, not an object.
        !route.includes('/statements/') &&
        (who === 'person' || who === 'account') &&
        pathValues === undefined,
    )
    expect(withObject.map(({ route }) => route).sort()).toEqual(Object.keys(objects).sort())
    for (const [route, make] of Object.entries(objects)) {
      const [owner, stranger] = [await newGuest(gateway.origin), await newPerson()]
      const { id, isThere } = await make(owner)
      const [method = '', path = ''] = route.split(' ')
      const answer = await stranger.send(method, path.replace(/\{\w+\}/, id), bodies[route])
      expect([route, answer.status, answer.body.code]).toEqual([route, 404, 'not_found'])
      expect([route, await isThere()]).toEqual([route, true])
    }
  })
})
