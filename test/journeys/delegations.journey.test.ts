/** Budgets over sub-agents: what a key gives to keys below it is judged and counted on the whole path, and ends with it. */
import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { sharedGateway } from './gateway.ts'
import { enrollMfa, newGuest, type Person, requestJson } from './people.ts'

const origin = sharedGateway()
const scopes = ['wallets:read', 'wallets:transfer', 'investing:read', 'investing:trade', 'agents:delegate']
const inAnHour = new Date(Date.now() + 3_600_000).toISOString()
const payee = `0x${'1'.repeat(40)}`
let owner: Person
let root: Caller

interface Caller {
  readonly agentId: string
  readonly send: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => ReturnType<typeof requestJson>
}

const buildPolicy = (max: string, members: Record<string, unknown> = {}) => ({
  perTransaction: { max },
  dailyBudget: { max },
  categories: { allow: ['transfer', 'invest'] },
  ...members,
})

function callerOf(agentId: unknown, secret: unknown): Caller {
  const authorization = `Bearer ${String(secret)}`
  return {
    agentId: String(agentId),
    send: (method, path, body, headers = {}) =>
      requestJson(origin, method, path, { headers: { authorization, ...headers }, body }),
  }
}

async function delegate(parent: Caller, given: Record<string, unknown> = {}): Promise<Caller> {
  const { status, body } = await parent.send('POST', '/api/agents/delegations', {
    name: 'Helper',
    scopes,
    policy: buildPolicy('20'),
    expiresAt: inAnHour,
    bearer: true,
    ...given,
  })
  expect([status, body]).toEqual([200, expect.anything()])
  return callerOf(body.agentId, body.key)
}

const pay = (caller: Caller, amount: string, headers?: Record<string, string>) =>
  caller.send('POST', '/api/wallets/transfer', { destination: payee, amount, token: 'USDC' }, headers)

const orders = z.array(z.looseObject({ id: z.string(), status: z.string() }))
async function readOrderStatus(id: unknown): Promise<string | undefined> {
  const { body } = await owner.send('GET', '/api/investing/orders')
  return orders.parse(body.orders).find((order) => order.id === id)?.status
}

const violations = z.array(z.looseObject({ rule: z.string(), agentId: z.string().optional() }))
const readViolations = (body: { violations?: unknown }) =>
  violations.parse(body.violations).map(({ rule, agentId }) => [rule, agentId])

beforeEach(async () => {
  owner = await newGuest(origin)
  await enrollMfa(owner)
  const { body } = await owner.send('POST', '/api/developer/keys', {
    name: 'Orchestrator',
    scopes,
    policy: buildPolicy('20'),
  })
  root = callerOf(body.id, body.key)
})

describe('a key below another one', () => {
  it('spends from the budget of every key above it, and each denial names the key', async () => {
    const child = await delegate(root, { policy: buildPolicy('15'), task: 'run-1' })
    const grandchild = await delegate(child, { policy: buildPolicy('10') })
    expect((await pay(grandchild, '8')).status).toBe(200)
    const denied = await pay(grandchild, '5')
    expect([denied.status, denied.body.code]).toEqual([403, 'policy_denied'])
    expect(readViolations(denied.body)).toEqual([['daily_budget', grandchild.agentId]])
    expect((await pay(root, '9')).status).toBe(200)
    const above = await pay(child, '4')
    expect(readViolations(above.body)).toEqual([['daily_budget', root.agentId]])
    const { body: simulated } = await grandchild.send('POST', '/api/agents/policies/simulate', {
      spend: { category: 'transfer', amount: '4' },
    })
    expect(readViolations(simulated)).toEqual([
      ['daily_budget', grandchild.agentId],
      ['daily_budget', root.agentId],
    ])
    const { body: self } = await grandchild.send('GET', '/api/agents/self')
    expect(self.path).toEqual([root.agentId, child.agentId, grandchild.agentId])
    expect(self.limits).toEqual([{ rule: 'daily_budget', remaining: '2', agentId: grandchild.agentId }])
    const { body: tree } = await owner.send('GET', `/api/agents/keys/${root.agentId}/tree`)
    expect(tree).toMatchObject({
      usage: { used: '17', count: 2 },
      children: [{ agentId: child.agentId, task: 'run-1', children: [{ usage: { used: '8' } }] }],
    })
  })

  it('declares nothing beyond its parent', async () => {
    const ask = (given: Record<string, unknown>) =>
      root.send('POST', '/api/agents/delegations', {
        name: 'Wide',
        scopes: [],
        expiresAt: inAnHour,
        bearer: true,
        ...given,
      })
    const wider = await ask({ policy: buildPolicy('21') })
    expect([wider.status, wider.body.code]).toEqual([400, 'invalid_request'])
    expect(wider.body.issues).toMatchObject([
      { path: 'policy.perTransaction' },
      { path: 'policy.dailyBudget' },
    ])
    const scoped = await ask({ scopes: ['banking:pay'], policy: buildPolicy('1') })
    expect([scoped.status, scoped.body.code]).toEqual([403, 'insufficient_scope'])
    const unearmarked = await ask({ policy: buildPolicy('1'), earmark: true })
    expect(unearmarked.body.issues).toMatchObject([{ path: 'policy.totalBudget' }])
    expect((await ask({ bearer: undefined })).body.issues).toMatchObject([{ path: 'publicKey' }])
    expect((await owner.send('GET', `/api/agents/delegations?parentId=${root.agentId}`)).body).toMatchObject({
      delegations: [],
    })
  })

  it('cannot be delegated to a fifth generation', async () => {
    let parent = root
    for (let depth = 1; depth <= 4; depth += 1) parent = await delegate(parent)
    const fifth = { name: 'x', scopes: [], expiresAt: inAnHour, bearer: true }
    const refused = await parent.send('POST', '/api/agents/delegations', fifth)
    expect([refused.status, refused.body.code]).toEqual([409, 'conflict'])
  })

  it('keeps its earmark from all other keys until it ends', async () => {
    const earmarked = { policy: buildPolicy('12', { totalBudget: { max: '12' } }), earmark: true }
    const child = await delegate(root, earmarked)
    const { body: self } = await root.send('GET', '/api/agents/self')
    expect(self).toMatchObject({
      path: [root.agentId],
      limits: [{ rule: 'daily_budget', remaining: '8', agentId: root.agentId }],
    })
    const more = await root.send('POST', '/api/agents/delegations', {
      name: 'Second',
      scopes,
      expiresAt: inAnHour,
      bearer: true,
      ...earmarked,
    })
    expect([more.status, more.body.code]).toEqual([403, 'policy_denied'])
    expect(readViolations(more.body)).toEqual([['total_budget', root.agentId]])
    expect(readViolations((await pay(root, '9')).body)).toEqual([['daily_budget', undefined]])
    expect((await pay(root, '8')).status).toBe(200)
    expect((await pay(child, '11')).status).toBe(200)
    expect((await pay(root, '1')).status).toBe(403)
    expect((await root.send('DELETE', `/api/agents/delegations/${child.agentId}`)).status).toBe(200)
    expect((await pay(root, '1')).status).toBe(200)
  })

  it('stops and ends with every key above it', async () => {
    const child = await delegate(root)
    const grandchild = await delegate(child)
    const order = { symbol: 'AAPL', side: 'buy', type: 'limit', limitPrice: '1', notional: '5' }
    const { body: placed } = await grandchild.send('POST', '/api/investing/order', order)
    await owner.send('POST', `/api/agents/keys/${root.agentId}/pause`)
    const paused = await pay(grandchild, '1')
    expect([paused.status, paused.body.code]).toEqual([403, 'policy_denied'])
    expect(readViolations(paused.body)).toContainEqual(['paused', root.agentId])
    await expect.poll(() => readOrderStatus(placed.id)).toBe('canceled')
    const resumed = await owner.send('PATCH', `/api/agents/keys/${root.agentId}`, { status: 'active' })
    expect(resumed.status).toBe(200)
    expect((await pay(grandchild, '1')).status).toBe(200)
    const longer = { expiresAt: '2099-01-01T00:00:00.000Z' }
    const extended = await owner.send('PATCH', `/api/agents/keys/${grandchild.agentId}`, longer)
    expect(extended.body.expiresAt).toBe(inAnHour)
    const stranger = await delegate(root)
    expect((await stranger.send('DELETE', `/api/agents/delegations/${grandchild.agentId}`)).status).toBe(404)
    await owner.send('DELETE', `/api/agents/keys/${child.agentId}`)
    expect((await pay(grandchild, '1')).status).toBe(401)
    expect((await pay(stranger, '1')).status).toBe(200)
    await owner.send('POST', `/api/agents/keys/${root.agentId}/pause`)
    expect((await root.send('DELETE', `/api/agents/delegations/${stranger.agentId}`)).body).toEqual({
      revoked: true,
    })
    expect(
      (
        await root.send('POST', '/api/agents/delegations', {
          name: 'x',
          scopes: [],
          expiresAt: inAnHour,
          bearer: true,
        })
      ).status,
    ).toBe(403)
    const { body: tree } = await owner.send('GET', `/api/agents/keys/${root.agentId}/tree`)
    expect(tree).toMatchObject({ status: 'paused', children: [{ status: 'revoked' }, { status: 'revoked' }] })
  })
})

it('cancels the open orders of a key that reaches its end', async () => {
  const child = await delegate(root)
  const order = { symbol: 'AAPL', side: 'buy', type: 'limit', limitPrice: '1', notional: '5' }
  const { body: placed } = await child.send('POST', '/api/investing/order', order)
  expect(await readOrderStatus(placed.id)).toBe('accepted')
  const soon = { expiresAt: new Date(Date.now() + 5_000).toISOString() }
  expect((await owner.send('PATCH', `/api/agents/keys/${child.agentId}`, soon)).status).toBe(200)
  await expect.poll(() => readOrderStatus(placed.id), { timeout: 30_000 }).toBe('canceled')
  const listed = async (status?: string) => {
    const { body } = await owner.send(
      'GET',
      `/api/agents/delegations?parentId=${root.agentId}${status === undefined ? '' : `&status=${status}`}`,
    )
    return body.delegations
  }
  expect(await listed()).toMatchObject([{ agentId: child.agentId, status: 'expired' }])
  expect(await listed('active')).toEqual([])
  const { body: tree } = await owner.send('GET', `/api/agents/keys/${root.agentId}/tree`)
  expect(tree).toMatchObject({ status: 'active', children: [{ agentId: child.agentId, status: 'expired' }] })
})

describe('a task', () => {
  it('labels what is spent for it, over every key below', async () => {
    const child = await delegate(root, { task: 'run-7' })
    const headers = { 'bursar-task': 'run-8' }
    expect((await pay(child, '2', headers)).status).toBe(200)
    expect((await pay(root, '3', headers)).status).toBe(200)
    expect((await pay(root, '4')).status).toBe(200)
    const read = async (path: string) => (await owner.send('GET', path)).body
    const listTasks = async (query: string) =>
      z
        .array(z.looseObject({ amount: z.string(), task: z.string().nullable() }))
        .parse((await read(`/api/activity?kind=transfer${query}`)).entries)
        .map(({ amount, task }) => [amount, task])
    expect(await listTasks('&task=run-7')).toEqual([['2', 'run-7']])
    expect(await listTasks('')).toEqual([
      ['4', null],
      ['3', 'run-8'],
      ['2', 'run-7'],
    ])
    expect(await read(`/api/agents/keys/${root.agentId}/usage?by=task`)).toMatchObject({
      tasks: [
        { task: 'run-8', used: '3', count: 1 },
        { task: 'run-7', used: '2', count: 1 },
      ],
    })
    expect(await read(`/api/agents/keys/${root.agentId}/usage?by=child`)).toMatchObject({
      children: [{ agentId: child.agentId, used: '2', count: 1 }],
    })
    const listEvents = async () =>
      z
        .array(z.looseObject({ type: z.string(), task: z.string().nullable() }))
        .parse((await read('/api/events?type=key.created,transfer.confirmed&after=0')).events)
        .map(({ type, task }) => `${type} ${task}`)
    await expect
      .poll(listEvents, { timeout: 30_000 })
      .toEqual([
        'key.created null',
        'key.created run-7',
        'transfer.confirmed run-7',
        'transfer.confirmed run-8',
        'transfer.confirmed null',
      ])
    const wrong = await pay(root, '1', { 'bursar-task': 'x'.repeat(65) })
    expect([wrong.status, wrong.body.code]).toEqual([400, 'invalid_request'])
  })
  it('keeps the label of a call that runs once its owner has approved it', async () => {
    const child = await delegate(root, { policy: buildPolicy('20', { approval: { above: '1' } }) })
    const asked = await pay(child, '2', { 'bursar-task': 'run-9', 'idempotency-key': 'asked' })
    expect([asked.status, asked.body.code]).toEqual([403, 'approval_required'])
    const { body } = await owner.send('POST', `/api/approvals/${String(asked.body.approvalId)}`, {
      decision: 'approve',
    })
    expect(body).toMatchObject({ status: 'approved', problem: null })
    expect((await owner.send('GET', '/api/activity?task=run-9')).body.entries).toMatchObject([
      { amount: '2', task: 'run-9' },
    ])
  })
})
