/** What pages show of the gateway's records, over real HTTP: the rules of a decision, a status filter, an operator's figures. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from './gateway.ts'
import { enrollMfa, newGuest, newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

const payee = `0x${'1'.repeat(40)}`
const entries = z.array(z.looseObject({ status: z.string(), decisionId: z.string().nullable() }))
const rules = z.array(z.looseObject({ rule: z.string(), used: z.string().nullable(), result: z.string() }))
const moved = z.object({ usd: z.string(), count: z.number() })
const figures = z.object({
  volume: z.array(z.object({ rail: z.string(), day: moved, week: moved })),
  refusals: z.array(z.object({ rule: z.string(), day: z.number(), week: z.number() })),
  cardFloat: z.object({ usd: z.string(), largest: z.string(), limit: z.string(), accounts: z.number() }),
  queues: z.array(
    z.object({ queue: z.string(), waiting: z.number(), oldestAt: z.iso.datetime().nullable() }),
  ),
})

describe('records over HTTP', () => {
  let gateway: Gateway
  let owner: Person
  let operator: Person
  let key: Record<string, unknown>
  const pay = (amount: string) =>
    requestJson(gateway.origin, 'POST', '/api/wallets/transfer', {
      body: { destination: payee, amount },
      headers: { authorization: `Bearer ${String(key.key)}`, 'idempotency-key': crypto.randomUUID() },
    })
  const list = async (query = '') =>
    entries.parse((await owner.send('GET', `/api/activity?kind=transfer&${query}`)).body.entries)
  const read = async () => figures.parse((await operator.send('GET', '/api/admin/figures')).body)
  const findVolume = ({ volume }: z.output<typeof figures>, rail: string) =>
    volume.find((one) => one.rail === rail)

  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated' })
    owner = await newGuest(gateway.origin)
    operator = await signInByEmail(gateway.origin, newMailbox('operator'))
    expect((await operator.send('POST', '/sandbox/admin', {})).status).toBe(200)
    await enrollMfa(operator)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Payer',
      scopes: ['wallets:transfer', 'wallets:read'],
      policy: {
        perTransaction: { max: '10' },
        dailyBudget: { max: '20' },
        weeklyBudget: { max: '80' },
        categories: { allow: ['transfer'] },
      },
    })
    key = body
  }, 60_000)
  afterAll(() => gateway?.stop())

  it('explain an allowed and a denied spend to the owner, and to nobody else', async () => {
    expect((await pay('4')).status).toBe(200)
    expect((await pay('2.5')).status).toBe(200)
    expect((await pay('64')).status).toBe(403)
    const [denied, allowed] = await list()
    const readRules = async (id: string | null | undefined, person = owner) =>
      person.send('GET', `/api/agents/decisions/${id}/rules`)
    const { body: kept } = await readRules(allowed?.decisionId)
    expect(kept).toMatchObject({ complete: true, policyVersion: 1 })
    expect(rules.parse(kept.rules)).toEqual([
      { rule: 'per_transaction', limit: '10', used: null, requested: '2.5', result: 'kept' },
      { rule: 'category', limit: 'transfer', used: null, requested: 'transfer', result: 'kept' },
      { rule: 'daily_budget', limit: '20', used: '4', requested: '2.5', result: 'kept' },
      { rule: 'weekly_budget', limit: '80', used: '4', requested: '2.5', result: 'kept' },
    ])
    const { body: broken } = await readRules(denied?.decisionId)
    const results = rules.parse(broken.rules).map(({ rule, used, result }) => [rule, used, result])
    expect(results).toEqual([
      ['per_transaction', null, 'broken'],
      ['category', null, 'kept'],
      ['daily_budget', '6.5', 'broken'],
      ['weekly_budget', '6.5', 'kept'],
    ])
    const stranger = await newGuest(gateway.origin)
    expect((await readRules(allowed?.decisionId, stranger)).status).toBe(404)
  })

  it('are listed by status', async () => {
    expect((await list('status=denied')).map(({ status }) => status)).toEqual(['denied'])
    await expect.poll(async () => (await list('status=completed')).length, { timeout: 20_000 }).toBe(2)
    expect(await list('status=reversed')).toEqual([])
    expect((await owner.send('GET', '/api/activity?status=lost')).status).toBe(400)
  })

  it('give an operator volume, refusals, the float and the queues', async () => {
    const before = await read()
    expect(findVolume(before, 'wallet-transfer')?.day).toEqual({ usd: '6.5', count: 2 })
    expect(before.refusals).toContainEqual({ rule: 'per_transaction', day: 1, week: 1 })
    expect(before.refusals).toContainEqual({ rule: 'daily_budget', day: 1, week: 1 })

    const { body: list } = await owner.send('GET', '/api/cards')
    const [card] = z.array(z.object({ id: z.string() })).parse(list.cards)
    const { status } = await requestJson(gateway.origin, 'POST', '/sandbox/authorizations', {
      body: { cardId: card?.id, amount: '12.5' },
    })
    expect(status).toBe(200)
    const after = await read()
    const [was, is] = [findVolume(before, 'card-payments'), findVolume(after, 'card-payments')]
    expect(Number(is?.day.usd) - Number(was?.day.usd)).toBe(12.5)
    expect((is?.week.count ?? 0) - (was?.week.count ?? 0)).toBe(1)
    expect(Number(after.cardFloat.limit)).toBeGreaterThan(0)
  })

  it('tell how long the oldest item of a queue waits', async () => {
    const waitingIn = async (queue: string) => (await read()).queues.find((one) => one.queue === queue)
    expect(await waitingIn('approvals')).toEqual({ queue: 'approvals', waiting: 0, oldestAt: null })
    const { body } = await requestJson(gateway.origin, 'POST', '/api/approvals', {
      body: {
        operation: 'wallets.transfer',
        input: { destination: payee, amount: '1' },
        reason: 'Please look at this first.',
      },
      headers: { authorization: `Bearer ${String(key.key)}` },
    })
    expect(body.approvalId).toEqual(expect.any(String))
    const { waiting, oldestAt } = (await waitingIn('approvals')) ?? {}
    expect(waiting).toBe(1)
    expect(Math.abs(Date.parse(oldestAt ?? '') - Date.now())).toBeLessThan(60_000)
  })

  it('refuse figures to a person who runs nothing here', async () => {
    expect((await owner.send('GET', '/api/admin/figures')).status).toBe(403)
  })
})
