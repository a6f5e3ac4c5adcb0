/**
 * What a payout costs and what arrives, asked before it is sent: over REST and both eras of MCP. A rent of 5 EUR arrives as
 * 5 EUR, whichever way it is paid, and a quote pays exactly what it said or nothing.
 */
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from '../journeys/both-engines.ts'
import { newGuest, type Person, requestJson } from '../journeys/people.ts'
import { openTransports, type Transports } from './ways.ts'

const german = {
  currency: 'EUR',
  name: 'Emmy Noether',
  country: 'DE',
  account: { iban: 'DE89 3704 0044 0532 0130 00', bic: 'COBADEFFXXX' },
}
const quoted = z.object({
  quoteId: z.string().regex(/^quote_/),
  amount: z.string(),
  asset: z.string(),
  fee: z.string(),
  rate: z.string(),
  recipientAmount: z.string(),
  currency: z.string(),
  eta: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
})
const text = z.string()

overBothEngines('the terms of a payout', {}, (world) => {
  let owner: Person
  let rcp: string
  let other: string
  let key: { id: string; apiKey: string }
  let ways: Transports
  beforeAll(async () => {
    const { origin } = world.gateway()
    owner = await newGuest(origin)
    rcp = await save(german)
    other = await save({ ...german, name: 'Lise Meitner' })
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Rent',
      scopes: ['banking:pay'],
      policy: {
        perTransaction: { max: '46' },
        dailyBudget: { max: '90' },
        categories: { allow: ['payout'] },
      },
    })
    key = { id: text.parse(body.id), apiKey: text.parse(body.key) }
    ways = await openTransports({ gateway: world.gateway(), apiKey: key.apiKey })
    return () => ways.close()
  })

  const readUsed = async () => {
    const { body } = await owner.send('GET', `/api/agents/keys/${key.id}`)
    return Number(z.object({ used: z.string() }).parse(body.usage).used)
  }
  const save = async (recipient: object) =>
    text.parse((await owner.send('POST', '/api/banking/recipients', recipient)).body.id)
  const ask = (tool: string, input: Record<string, unknown>) =>
    ways.everywhere(
      tool,
      () => input,
      () => crypto.randomUUID(),
    )
  const quote = async (input: Record<string, unknown> = { recipientAmount: '5' }, who = owner) => {
    const { status, body } = await who.send('POST', '/api/banking/payouts/quote', {
      recipientId: rcp,
      ...input,
    })
    expect(status).toBe(200)
    return quoted.parse(body)
  }
  const pay = (input: Record<string, unknown>, idempotencyKey?: string, who = owner) =>
    who.send(
      'POST',
      '/api/banking/payouts',
      { recipientId: rcp, ...input },
      idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
    )

  it('are told over every transport, with the fee and the rate, and cost nothing', async () => {
    for (const { isError, body } of await ask('banking_payouts_quote', {
      recipientId: rcp,
      recipientAmount: '5',
    })) {
      expect(isError).toBe(false)
      const { amount, fee, rate, recipientAmount, currency, asset } = quoted.parse(body)
      expect({ fee, recipientAmount, currency, asset }).toEqual({
        fee: '0.5',
        recipientAmount: '5',
        currency: 'EUR',
        asset: 'USD',
      })
      // The smallest amount whose conversion, rounded down, is what was asked.
      const arrives = (cents: number) => Math.floor((cents - 50) * Number(rate) + 1e-9)
      const cents = Math.round(Number(amount) * 100)
      expect([arrives(cents), arrives(cents - 1)]).toEqual([500, 499])
    }
    expect(await readUsed()).toBe(0)
  })

  it.each(['USD', 'USDC'])('let 5 EUR of %s arrive as 5 EUR, and count what leaves', async (asset) => {
    const before = await readUsed()
    const results = await ask('banking_payouts_create', { recipientId: rcp, recipientAmount: '5', asset })
    for (const { isError, body } of results) {
      expect(isError, JSON.stringify(body)).toBe(false)
      expect(body).toMatchObject({ recipientAmount: '5', currency: 'EUR', fee: '0.5', asset })
      expect(Number(body.amount)).toBeGreaterThan(5)
    }
    const left = results.reduce((sum, { body }) => sum + Number(body.amount), 0)
    expect((await readUsed()) - before).toBeCloseTo(left, 6)
  })

  it('are those of the quote that is paid, once, and for a repeat as well', async () => {
    const terms = await quote({ amount: '20' })
    const { quoteId, amount, recipientAmount, fee, rate } = terms
    const paid = await pay({ quoteId }, 'by-quote')
    expect(paid).toMatchObject({ status: 200, body: { amount, recipientAmount, fee, rate } })
    expect((await pay({ quoteId }, 'by-quote')).body.id).toBe(paid.body.id)
    expect(await pay({ quoteId }, 'again')).toMatchObject({
      status: 422,
      body: { code: 'payout_rejected', reason: 'quote_used' },
    })
    const both = await quote()
    const raced = await Promise.all(['a', 'b', 'c'].map((name) => pay({ quoteId: both.quoteId }, name)))
    expect(raced.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  it('bind a quote to its account, recipient, asset and time', async () => {
    const { quoteId } = await quote()
    const refusals = [
      [{ quoteId, recipientId: other }, 'quote_mismatch'],
      [{ quoteId, asset: 'USDC' }, 'quote_mismatch'],
      [{ quoteId: 'quote_01h455vb4pex5vsknk084sn02q' }, 'quote_unknown'],
    ] as const
    for (const [input, reason] of refusals)
      expect(await pay(input)).toMatchObject({ status: 422, body: { code: 'payout_rejected', reason } })
    const stranger = await newGuest(world.gateway().origin)
    const theirs = text.parse((await stranger.send('POST', '/api/banking/recipients', german)).body.id)
    expect(await pay({ quoteId, recipientId: theirs }, undefined, stranger)).toMatchObject({
      body: { reason: 'quote_unknown' },
    })
  })

  it('say the amount in exactly one way', async () => {
    const { quoteId } = await quote()
    for (const input of [
      {},
      { amount: '5', recipientAmount: '5' },
      { amount: '5', quoteId },
      { recipientAmount: '5', quoteId },
    ])
      for (const { isError, body } of await ask('banking_payouts_create', { recipientId: rcp, ...input })) {
        expect(isError).toBe(true)
        expect(body).toMatchObject({ code: 'invalid_request' })
        expect(body.detail).toMatch(/exactly one of amount, recipientAmount or quoteId/)
      }
    expect(await pay({ recipientAmount: '5.001' })).toMatchObject({
      status: 400,
      body: { issues: [{ path: 'recipientAmount', message: 'must have at most 2 fraction digits' }] },
    })
  })

  it('are counted by the policy with the fee, and simulated so', async () => {
    const simulate = (spend: Record<string, unknown>) =>
      ways.everywhere('policy_simulate', () => ({ spend: { category: 'payout', ...spend } }))
    const terms = await quote({ recipientAmount: '45' })
    expect(Number(terms.amount)).toBeGreaterThan(46)
    for (const { body } of await simulate({ asset: 'USD', recipientId: rcp, recipientAmount: '45' }))
      expect(body).toMatchObject({
        decision: 'deny',
        violations: [{ rule: 'per_transaction', requested: terms.amount }],
        usd: terms.amount,
        fee: '0.5',
      })
    const denied = await requestJson(world.gateway().origin, 'POST', '/api/banking/payouts', {
      body: { recipientId: rcp, recipientAmount: '45' },
      headers: { authorization: `Bearer ${key.apiKey}` },
    })
    expect(denied).toMatchObject({ status: 403, body: { violations: [{ requested: terms.amount }] } })
    for (const { isError, body } of await simulate({ amount: '5', asset: 'EUR' })) {
      expect(isError).toBe(true)
      expect(body.detail).toMatch(/leaves in USD or USDC, not EUR; .*recipientId and recipientAmount/)
    }
  })

  it('are in the schema of the simulation, which requires a spend, and in the fees of the rail', async () => {
    for (const { tools } of [await ways.old.listTools(), await ways.modern.listTools()]) {
      const simulation = tools.find(({ name }) => name === 'policy_simulate')
      expect(simulation?.inputSchema.required).toEqual(['spend'])
    }
    const { body } = await requestJson(world.gateway().origin, 'GET', '/api/rails')
    const rails = z.array(z.looseObject({ id: z.string(), fees: z.array(z.unknown()) })).parse(body.rails)
    expect(rails.find(({ id }) => id === 'bank-payout')?.fees).toEqual([
      { name: 'payout', amount: '0.25', asset: 'USD', currency: 'USD', spreadBps: 0 },
      { name: 'payout', amount: '0.5', asset: 'USD', currency: 'EUR', spreadBps: 50 },
      { name: 'payout', amount: '0.5', asset: 'USD', currency: 'GBP', spreadBps: 50 },
    ])
  })

  it('end with the quote’s time', async () => {
    const { quoteId, expiresAt } = await quote()
    world.pass(Math.ceil((Date.parse(expiresAt) - world.now().getTime()) / 1000) + 1)
    const { body } = await pay({ quoteId })
    // PostgreSQL's clock undoes the change with its next reading.
    if (world.now().toISOString() >= expiresAt)
      expect(body).toMatchObject({ code: 'payout_rejected', reason: 'quote_expired' })
  })
})
