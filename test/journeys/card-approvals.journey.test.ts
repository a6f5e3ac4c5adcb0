/** Declined card purchases that their owner approves, over HTTP: each passes once when it is tried again. */
import { decodeJwt } from 'jose'
import pg from 'pg'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from './both-engines.ts'
import { enrollMfa, type Person, requestJson, signInByEmail } from './people.ts'

const shop = 'Corner Shop'
const MINUTE = 60
const approvals = z.object({
  approvals: z.array(
    z.looseObject({
      approvalId: z.string(),
      status: z.string(),
      operation: z.string(),
      input: z.record(z.string(), z.unknown()),
      answer: z.record(z.string(), z.unknown()).nullable(),
      problem: z.record(z.string(), z.unknown()).nullable(),
    }),
  ),
})
const portfolio = z.object({ cash: z.string(), buyingPower: z.string() })
const transactions = z.object({
  transactions: z.array(z.looseObject({ reason: z.string(), status: z.string(), approved: z.string() })),
})
const decisions = z.object({ decisions: z.array(z.looseObject({ receipt: z.string() })) })
const events = z.object({
  events: z.array(z.looseObject({ type: z.string(), data: z.record(z.string(), z.unknown()) })),
})

overBothEngines('an approved card purchase', {}, ({ gateway, pass, databaseUrl }) => {
  let people = 0
  let address = ''
  let owner: Person
  let keyId = ''
  let cardId = ''

  const newCard = async () =>
    String((await owner.send('POST', '/api/cards', { agentId: keyId, limits: { daily: '600' } })).body.id)
  beforeEach(async () => {
    people += 1
    address = `cardholder-${people}@example.com`
    owner = await signInByEmail(gateway().origin, address)
    await enrollMfa(owner)
    const { body: account } = await owner.send('POST', '/api/banking', { currency: 'USD', destination: null })
    await requestJson(gateway().origin, 'POST', '/sandbox/deposits', {
      body: { accountId: account.id, amount: '1000' },
    })
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Shopper',
      scopes: ['cards:read'],
      policy: {
        perTransaction: { max: '200' },
        dailyBudget: { max: '500' },
        categories: { allow: ['card'] },
        approval: { above: '25', ttlSec: 3600 },
      },
    })
    keyId = String(body.id)
    cardId = await newCard()
  })

  const buy = async (amount: string, { card = cardId, merchant = shop } = {}) => {
    const purchase = { cardId: card, amount, merchant, mcc: '5411', clear: false }
    const { body } = await requestJson(gateway().origin, 'POST', '/sandbox/authorizations', {
      body: purchase,
    })
    return String(body.result)
  }
  const list = async () => approvals.parse((await owner.send('GET', '/api/approvals')).body).approvals
  const ask = async (amount = '30') => {
    expect(await buy(amount)).not.toBe('APPROVED')
    const [first] = await list()
    return first?.approvalId ?? ''
  }
  const read = async (id: string) => (await owner.send('GET', `/api/approvals/${id}`)).body
  const answer = (id: string, decision: 'approve' | 'reject') =>
    owner.send('POST', `/api/approvals/${id}`, { decision })
  const approve = async (amount = '30') => {
    const id = await ask(amount)
    expect((await answer(id, 'approve')).status).toBe(200)
    return id
  }
  const money = async () => {
    const { body } = await owner.send('GET', '/api/investing/portfolio')
    const { cash, buyingPower } = portfolio.parse(body)
    return `${buyingPower} of ${cash}`
  }
  const reasons = async (card = cardId) =>
    transactions
      .parse((await owner.send('GET', `/api/cards/${card}/transactions`)).body)
      .transactions.map(({ reason }) => reason)

  const query = async (text: string, values: readonly unknown[] = []) => {
    const client = new pg.Client({ connectionString: databaseUrl() ?? '' })
    await client.connect()
    const { rows } = await client.query(text, [...values])
    await client.end()
    return rows
  }
  afterAll(async () => {
    if (databaseUrl() === null) return
    const wrong = await query(`
      select b.account, b.asset, b.units from balance b
      where b.units <> coalesce((select sum(p.units) from posting p where p.destination = b.account and p.asset = b.asset), 0)
        - coalesce((select sum(p.units) from posting p where p.source = b.account and p.asset = b.asset), 0)`)
    const twice = await query(`select facts->>'approvalId' from decision
      where verdict = 'allow' and facts->>'approvalId' is not null group by 1 having count(*) > 1`)
    expect([wrong, twice]).toEqual([[], []])
  })

  it('is asked for once, approved with a second factor, and passes once', async () => {
    const id = await ask()
    expect(await buy('30')).not.toBe('APPROVED')
    const asked = await list()
    expect(asked).toMatchObject([
      {
        approvalId: id,
        status: 'pending',
        agentId: keyId,
        operation: 'cards.authorize',
        input: { cardId, merchant: shop, mcc: '5411', amount: '30', currency: 'USD', channel: 'ecommerce' },
        violations: [],
        answer: null,
      },
    ])
    const { createdAt, expiresAt } = z
      .object({ createdAt: z.iso.datetime(), expiresAt: z.iso.datetime() })
      .parse(await read(id))
    expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(3_600_000)
    await expect
      .poll(async () => events.parse((await owner.send('GET', '/api/events')).body).events, {
        timeout: 20_000,
      })
      .toContainEqual(
        expect.objectContaining({
          type: 'approval.requested',
          data: expect.objectContaining({ operation: 'cards.authorize' }),
        }),
      )

    const stale = await signInByEmail(gateway().origin, address)
    const refused = await stale.send('POST', `/api/approvals/${id}`, { decision: 'approve' })
    expect([refused.status, refused.body.code]).toEqual([401, 'step_up_required'])
    expect((await answer(id, 'approve')).body).toMatchObject({
      status: 'approved',
      answer: null,
      problem: null,
    })
    expect((await answer(id, 'approve')).body).toMatchObject({
      status: 'approved',
      answer: null,
      problem: null,
    })
    expect(await money()).toBe('1000 of 1000')

    expect(await buy('30')).toBe('APPROVED')
    expect(await buy('30')).not.toBe('APPROVED')
    expect(await money()).toBe('970 of 1000')
    expect(await reasons()).toEqual([
      'approval_required',
      'approved',
      'approval_required',
      'approval_required',
    ])
    const used = await read(id)
    expect(used).toMatchObject({
      status: 'approved',
      problem: null,
      answer: {
        transactionId: expect.stringMatching(/^tx_/),
        decisionId: expect.stringMatching(/^dec_/),
        amount: '30',
        currency: 'USD',
        usedAt: expect.stringMatching(/Z$/),
      },
    })
    const { decisionId } = z.looseObject({ decisionId: z.string() }).parse(used.answer)
    const { body: decided } = await owner.send('GET', `/api/agents/decisions?decisionId=${decisionId}`)
    const [decision] = decisions.parse(decided).decisions
    expect(decision).toMatchObject({ verdict: 'allow', usd: '30' })
    // The decision and its receipt name the approval.
    expect(JSON.stringify(decodeJwt(decision?.receipt ?? ''))).toContain(id)
    // The declined retry asks anew.
    expect((await list()).map(({ status }) => status)).toEqual(['pending', 'approved'])
  })

  it('passes for less, and for nothing else', async () => {
    const other = await newCard()
    const id = await approve('40')
    expect(await buy('40.01')).not.toBe('APPROVED')
    expect(await buy('40', { merchant: 'Other Shop' })).not.toBe('APPROVED')
    expect(await buy('40', { card: other })).not.toBe('APPROVED')
    expect(await money()).toBe('1000 of 1000')
    expect(await buy('24')).toBe('APPROVED')
    expect(await read(id)).toMatchObject({ answer: null })
    expect(await buy('39.99')).toBe('APPROVED')
    expect(await read(id)).toMatchObject({ answer: { amount: '39.99' } })
    expect(await money()).toBe('936.01 of 1000')
  })

  it('keeps every other rule, and is not used up by a decline', async () => {
    const id = await approve('60')
    const settings = (daily: string) =>
      owner.send('POST', '/api/cards/settings', { cardId, limits: { daily } })
    expect((await settings('50')).status).toBe(200)
    expect(await buy('60')).not.toBe('APPROVED')
    expect((await settings('600')).status).toBe(200)
    expect(await buy('20')).toBe('APPROVED')
    const patch = (dailyBudget: string) =>
      owner.send('PATCH', `/api/agents/keys/${keyId}`, {
        policy: {
          perTransaction: { max: '60' },
          dailyBudget: { max: dailyBudget },
          categories: { allow: ['card'] },
          approval: { above: '25', ttlSec: 3600 },
        },
      })
    expect((await patch('79.99')).status).toBe(200)
    expect(await buy('60')).not.toBe('APPROVED')
    expect((await reasons()).slice(0, 3)).toEqual(['budget_exceeded', 'approved', 'daily_limit'])
    expect(await read(id)).toMatchObject({ status: 'approved', answer: null, problem: null })
    expect((await patch('80')).status).toBe(200)
    expect(await buy('60')).toBe('APPROVED')
    expect(await money()).toBe('920 of 1000')
  })

  it('gives nothing when it is rejected or withdrawn', async () => {
    const id = await ask()
    expect((await answer(id, 'reject')).body).toMatchObject({ status: 'rejected' })
    expect(await buy('30')).not.toBe('APPROVED')
    const second = (await list())[0]?.approvalId ?? ''
    expect(second).not.toBe(id)
    expect((await owner.send('DELETE', `/api/approvals/${second}`)).body).toMatchObject({
      status: 'withdrawn',
    })
    expect(await buy('30')).not.toBe('APPROVED')
    expect(await money()).toBe('1000 of 1000')
  })

  it('ends when the card is frozen or the agent paused', async () => {
    const freeze = (value: boolean) => owner.send('POST', '/api/cards/settings', { cardId, freeze: value })
    const frozen = await approve()
    const open = await ask('31')
    expect((await freeze(true)).status).toBe(200)
    expect(await buy('30')).not.toBe('APPROVED')
    expect((await freeze(false)).status).toBe(200)
    expect(await read(open)).toMatchObject({ status: 'rejected' })
    expect(await buy('30')).not.toBe('APPROVED')

    const paused = await approve('32')
    expect((await owner.send('POST', `/api/agents/keys/${keyId}/pause`)).status).toBe(200)
    expect(await buy('32')).not.toBe('APPROVED')
    expect((await owner.send('PATCH', `/api/agents/keys/${keyId}`, { status: 'active' })).status).toBe(200)
    expect(await buy('32')).not.toBe('APPROVED')
    await Promise.all(
      [frozen, paused].map((id) =>
        expect
          .poll(() => read(id), { timeout: 20_000 })
          .toMatchObject({
            status: 'approved',
            answer: null,
            problem: { code: 'conflict', reason: 'stopped' },
          }),
      ),
    )
    expect(await money()).toBe('1000 of 1000')
  })

  it('lets one of two racing retries pass, in every round', async () => {
    const rounds = 12
    for (let round = 0; round < rounds; round += 1) {
      await approve('26')
      const results = await Promise.all([buy('26'), buy('26'), buy('26')])
      expect(results.filter((result) => result === 'APPROVED')).toHaveLength(1)
      const [open] = await list()
      expect(open?.status).toBe('pending')
      await answer(open?.approvalId ?? '', 'reject')
    }
    expect(await money()).toBe(`${1000 - rounds * 26} of 1000`)
  })

  it('asks at most ten times while none is answered', async () => {
    for (let cents = 10; cents < 22; cents += 1) expect(await buy(`30.${cents}`)).not.toBe('APPROVED')
    expect(await list()).toHaveLength(10)
    expect((await reasons()).filter((reason) => reason === 'approval_required')).toHaveLength(12)
  })

  // Last: it moves the clock.
  it('expires 15 minutes after its approval', async () => {
    const id = await approve()
    // Moving the clock ends the session, too.
    const wait = async (minutes: number) => {
      if (databaseUrl() === null) pass(minutes * MINUTE)
      else
        await query(
          `update approval set decided_at = decided_at - interval '${minutes} minutes' where id = $1`,
          [id],
        )
      owner = await signInByEmail(gateway().origin, address)
    }
    await wait(14)
    expect(await read(id)).toMatchObject({ answer: null, problem: null })
    await wait(1)
    expect(await buy('30')).not.toBe('APPROVED')
    await expect
      .poll(() => read(id), { timeout: 20_000 })
      .toMatchObject({ answer: null, problem: { code: 'conflict', reason: 'expired' } })
    expect(await money()).toBe('1000 of 1000')
  })
})
