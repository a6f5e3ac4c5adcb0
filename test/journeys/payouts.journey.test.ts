/** Payouts over real HTTP: an owner, its agents under policies, the sandbox's bank, and a bank rail that is off. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from './both-engines.ts'
import { newGuest, type Person, requestJson, signInByEmail } from './people.ts'

const american = {
  currency: 'USD',
  name: 'Grace Hopper',
  country: 'US',
  account: { routingNumber: '021000021', accountNumber: '123456789' },
}
/** Payouts to it wait for POST /sandbox/payouts. */
const waiting = { ...american, account: { ...american.account, accountNumber: '123450000' } }

const policy = {
  perTransaction: { max: '100' },
  dailyBudget: { max: '150' },
  categories: { allow: ['payout'] },
}

overBothEngines('payouts', {}, (world) => {
  let owner: Person
  let recipientId: string
  beforeAll(async () => {
    owner = await newGuest(world.gateway().origin)
    recipientId = await save(american)
  })
  afterAll(async () => {
    // Every journey leaves nothing held.
    const { body } = await owner.send('GET', '/api/investing/portfolio')
    expect(body.cash).toBe(body.buyingPower)
  })

  const save = async (account: object, who = owner) =>
    String((await who.send('POST', '/api/banking/recipients', account)).body.id)
  const dividends = async () => {
    const { body } = await owner.send('GET', '/api/activity?kind=dividend&limit=100')
    return z
      .array(z.object({ amount: z.string() }))
      .parse(body.entries)
      .reduce((sum, { amount }) => sum + Number(amount), 0)
  }
  /** Cash without dividends: those of a guest's shares arrive whenever their job runs, also between two readings. */
  const cash = async (): Promise<number> => {
    const before = await dividends()
    const { body } = await owner.send('GET', '/api/investing/portfolio')
    if ((await dividends()) !== before) return cash()
    return Math.round((Number(body.buyingPower) - before) * 1e6) / 1e6
  }
  const keyWith = async (changes: object = {}, scopes = ['banking:pay']) => {
    const asked = { name: 'Payer', scopes, policy: { ...policy, ...changes } }
    const { body } = await owner.send('POST', '/api/developer/keys', asked)
    const headers = { authorization: `Bearer ${String(body.key)}` }
    return {
      id: String(body.id),
      send: (method: string, path: string, body?: unknown, key?: string) =>
        requestJson(world.gateway().origin, method, path, {
          ...(body === undefined ? {} : { body }),
          headers: { ...headers, ...(key === undefined ? {} : { 'idempotency-key': key }) },
        }),
    }
  }
  const readEntry = async (id: unknown) => {
    const { body } = await owner.send('GET', '/api/activity?kind=payout&limit=100')
    const entries = z.array(z.looseObject({ id: z.string() })).parse(body.entries)
    return entries.find((entry) => entry.id === id)
  }
  const readStatus = async (id: unknown) =>
    (await owner.send('GET', `/api/banking/payouts/${String(id)}`)).body.status
  const decide = (payoutId: unknown, outcome: string) =>
    requestJson(world.gateway().origin, 'POST', '/sandbox/payouts', { body: { payoutId, outcome } })
  const awaitDecision = async (payoutId: unknown, outcome: string) =>
    expect.poll(async () => (await decide(payoutId, outcome)).status, { timeout: 20_000 }).toBe(200)

  it('are paid by the sandbox’s bank by themselves, and may still come back', async () => {
    const before = await cash()
    const { status, body } = await owner.send('POST', '/api/banking/payouts', { recipientId, amount: 100 })
    expect([status, body]).toMatchObject([
      200,
      { amount: '100', recipientAmount: '99.75', status: 'pending' },
    ])
    expect(await cash()).toBe(before - 100)
    expect(await readEntry(body.id)).toMatchObject({ status: expect.stringMatching(/on_its_way|completed/) })
    await expect.poll(() => readStatus(body.id), { timeout: 30_000 }).toBe('paid')
    expect(await readEntry(body.id)).toMatchObject({ status: 'completed', amount: '100', requested: null })
    expect((await decide(body.id, 'failed')).status).toBe(409)
    expect((await decide(body.id, 'returned')).status).toBe(200)
    expect(await readStatus(body.id)).toBe('returned')
    expect(await readEntry(body.id)).toMatchObject({ status: 'reversed', amount: '0', requested: '100' })
    expect(await cash()).toBe(before)
    const { body: listed } = await owner.send('GET', '/api/banking/payouts')
    expect(listed).toMatchObject({ payouts: [{ id: body.id, status: 'returned' }], nextCursor: null })
  })

  it('are in the activity on their way, with the recipient’s name and the reference, and found by both', async () => {
    const to = await save({ ...waiting, name: 'Marie Curie' })
    const asked = { recipientId: to, amount: '20', reference: 'Rent May' }
    const { body } = await owner.send('POST', '/api/banking/payouts', asked)
    const entry = { counterparty: 'Marie Curie', memo: 'Rent May', status: 'on_its_way', amount: '20' }
    expect(await readEntry(body.id)).toMatchObject(entry)
    for (const search of ['marie%20cu', 'RENT%20MAY'])
      expect((await owner.send('GET', `/api/activity?search=${search}`)).body.entries).toMatchObject([entry])
    expect((await owner.send('GET', '/api/activity?search=pierre')).body.entries).toEqual([])
    const denied = await (await keyWith({ perTransaction: { max: '1' } })).send(
      'POST',
      '/api/banking/payouts',
      asked,
    )
    expect(denied.status).toBe(403)
    expect((await owner.send('GET', '/api/activity?search=marie')).body.entries).toMatchObject([
      {
        counterparty: 'Marie Curie',
        kind: 'payout',
        status: 'denied',
        amount: '0',
        requested: '20',
        usd: '0',
      },
      entry,
    ])
    await awaitDecision(body.id, 'paid')
    expect(await readEntry(body.id)).toMatchObject({ ...entry, status: 'completed' })
    await requestJson(world.gateway().origin, 'POST', '/sandbox/payouts', {
      body: { payoutId: body.id, outcome: 'returned' },
    })
  })

  it('payouts to an account that waits have the outcome that is decided, once', async () => {
    const before = await cash()
    const to = await save(waiting)
    const { body } = await owner.send('POST', '/api/banking/payouts', { recipientId: to, amount: '20' })
    await awaitDecision(body.id, 'failed')
    expect(await readStatus(body.id)).toBe('failed')
    expect((await decide(body.id, 'paid')).status).toBe(409)
    expect(await cash()).toBe(before)
  })

  it('payouts by a key need its scope, its category and a recipient on its list', async () => {
    const ask = { recipientId, amount: '10' }
    const reader = await keyWith({}, ['banking:read', 'banking:write'])
    expect(await reader.send('POST', '/api/banking/payouts', ask)).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope', scopes: ['banking:pay'] },
    })
    const other = await keyWith({ categories: { allow: ['transfer', 'x402'] } })
    expect(await other.send('POST', '/api/banking/payouts', ask)).toMatchObject({
      status: 403,
      body: { code: 'policy_denied', violations: [{ rule: 'category', requested: 'payout' }] },
    })
    const listed = await keyWith({ counterparties: { allow: [await save(american)] } })
    expect(await listed.send('POST', '/api/banking/payouts', ask)).toMatchObject({
      status: 403,
      body: { code: 'policy_denied', violations: [{ rule: 'counterparty', requested: recipientId }] },
    })
    const addresses = await keyWith({ counterparties: { allow: [`0x${'1'.repeat(40)}`] } })
    expect((await addresses.send('POST', '/api/banking/payouts', ask)).status).toBe(403)
    const chains = await keyWith({ chains: ['base-sepolia'] })
    expect(await chains.send('POST', '/api/banking/payouts', ask)).toMatchObject({
      body: { violations: [{ rule: 'chain' }] },
    })
    const noScope = await owner.send('POST', '/api/developer/keys', { name: 'X', scopes: ['banking:pay'] })
    expect(noScope.status).toBe(400)
    expect((await reader.send('POST', '/api/banking/recipients', american)).status).toBe(403)
  })

  it('payouts by a key happen once, within its budget, and are seen by it and its owner only', async () => {
    const key = await keyWith()
    const ask = { recipientId, amount: '40' }
    const first = await key.send('POST', '/api/banking/payouts', ask, 'rent')
    const second = await key.send('POST', '/api/banking/payouts', ask, 'rent')
    expect(second.body.id).toBe(first.body.id)
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, at) => key.send('POST', '/api/banking/payouts', ask, `rent-${at}`)),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(2)
    for (const { status, body } of answers.filter(({ status }) => status !== 200))
      expect([status, body]).toMatchObject([
        403,
        { code: 'policy_denied', violations: [{ rule: 'daily_budget' }] },
      ])
    const { body: own } = await key.send('GET', '/api/banking/payouts')
    expect(z.array(z.unknown()).parse(own.payouts)).toHaveLength(3)
    const { body: recipients } = await key.send('GET', '/api/banking/recipients')
    expect(JSON.stringify(recipients)).not.toContain('123456789')
    const path = `/api/banking/payouts/${String(first.body.id)}`
    expect((await key.send('GET', path)).status).toBe(200)
    expect((await (await keyWith()).send('GET', path)).status).toBe(404)
    expect((await (await newGuest(world.gateway().origin)).send('GET', path)).status).toBe(404)
    await expect.poll(() => readStatus(first.body.id), { timeout: 30_000 }).toBe('paid')
    for (const { body } of answers.filter(({ status }) => status === 200))
      await expect.poll(() => readStatus(body.id), { timeout: 30_000 }).toBe('paid')
  })

  it('above the limit wait for the owner, and are sent once when approved', async () => {
    const key = await keyWith({ approval: { above: '30' } })
    const ask = { recipientId, amount: '50', reference: 'Deposit' }
    const simulated = await key.send('POST', '/api/agents/policies/simulate', {
      spend: { category: 'payout', amount: '50', asset: 'USD', recipientId },
    })
    expect(simulated.body).toMatchObject({ decision: 'approval_required', usd: '50' })
    const asked = await key.send('POST', '/api/banking/payouts', ask, 'deposit')
    expect(asked).toMatchObject({ status: 403, body: { code: 'approval_required' } })
    const approved = await owner.send('POST', `/api/approvals/${String(asked.body.approvalId)}`, {
      decision: 'approve',
    })
    expect(approved.body).toMatchObject({ status: 'approved', answer: { amount: '50' } })
    const { id } = z.looseObject({ id: z.string() }).parse(approved.body.answer)
    expect((await key.send('POST', '/api/banking/payouts', ask, 'deposit')).body.id).toBe(id)
    await expect.poll(() => readStatus(id), { timeout: 30_000 }).toBe('paid')
  })

  it('payouts of more than there is, of less than the bank pays, or to a stranger’s recipient are not sent', async () => {
    const ask = (changes: object) =>
      owner.send('POST', '/api/banking/payouts', { recipientId, amount: '10', ...changes })
    expect(await ask({ amount: '5000' })).toMatchObject({ status: 422, body: { code: 'insufficient_funds' } })
    expect(await ask({ amount: '0.5' })).toMatchObject({
      status: 422,
      body: { code: 'payout_rejected', reason: 'amount_too_small' },
    })
    expect(await ask({ amount: '1.001' })).toMatchObject({ status: 400 })
    const stranger = await newGuest(world.gateway().origin)
    expect(await ask({ recipientId: await save(american, stranger) })).toMatchObject({ status: 404 })
  })

  it('are recorded with the changes of the owner, which never hold the account number', async () => {
    const { body } = await owner.send('GET', '/api/security/journal')
    const text = JSON.stringify(body)
    expect(text).toContain('recipient.added')
    expect(text).not.toMatch(/123456789|Hopper/)
  })

  it('stop while the bank rail is off', async () => {
    const admin = await signInByEmail(world.gateway().origin, `admin-${Date.now()}@bursar.example`)
    await admin.send('POST', '/sandbox/admin', {})
    const rail = (enabled: boolean) => admin.send('PUT', '/api/rails/bank-payout/controls', { enabled })
    expect((await rail(false)).status).toBe(200)
    const off = await owner.send('POST', '/api/banking/payouts', { recipientId, amount: '10' })
    expect(off).toMatchObject({ status: 403, body: { code: 'rail_disabled' } })
    expect((await rail(true)).status).toBe(200)
  })
})
