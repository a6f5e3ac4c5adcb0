/** Schedules over HTTP: made by an owner or allowed to a key, run at their due times by a calendar that is set ahead. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from './both-engines.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const DAY = 86_400
const payee = `0x${'00'.repeat(18)}beef`
const policy = {
  perTransaction: { max: '50' },
  dailyBudget: { max: '100' },
  categories: { allow: ['transfer', 'x402'] },
}
const schedule = z.looseObject({
  scheduleId: z.string(),
  status: z.string(),
  nextAt: z.string().nullable(),
  left: z.number().nullable(),
  upcoming: z.array(z.string()),
  runs: z.array(
    z.looseObject({
      at: z.string(),
      status: z.string(),
      object: z.looseObject({ kind: z.string(), id: z.string() }).nullable(),
      decisionId: z.string().nullable(),
      reason: z.string().nullable(),
    }),
  ),
})
type Schedule = z.output<typeof schedule>

overBothEngines('schedules', { RATE_GUESTS: '1000/60' }, ({ gateway }) => {
  const origin = () => gateway().origin
  const advance = async (seconds: number) =>
    requestJson(origin(), 'POST', '/sandbox/clock', { body: { advance: seconds } })
  const calendar = async () => Date.parse(String((await advance(0)).body.now))
  const pay = (amount = '1', destination = payee) => ({
    operation: 'wallets.transfer',
    input: { destination, amount, token: 'USDC' },
  })
  const make = async (by: Pick<Person, 'send'>, body: object): Promise<Schedule> => {
    const answer = await by.send('POST', '/api/schedules', { ...pay(), every: { unit: 'day' }, ...body })
    expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 200 })
    return schedule.parse(answer.body)
  }
  const read = async (by: Pick<Person, 'send'>, { scheduleId }: Schedule) =>
    schedule.parse((await by.send('GET', `/api/schedules/${scheduleId}`)).body)
  const until = async (
    by: Pick<Person, 'send'>,
    made: Schedule,
    is: (now: Schedule) => boolean,
  ): Promise<Schedule> => {
    for (let attempt = 0; attempt < 300; attempt += 1) {
      const now = await read(by, made)
      if (is(now)) return now
      await pause(100)
    }
    throw new Error(`it never was so: ${JSON.stringify(await read(by, made))}`)
  }
  const runsOf = (count: number) => (now: Schedule) => now.runs.length >= count
  const newKey = async (owner: Person, changes: object = {}) => {
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Rent',
      scopes: ['wallets:transfer'],
      policy,
      ...changes,
    })
    const headers = { authorization: `Bearer ${String(body.key)}` }
    return {
      id: String(body.id),
      send: (method: string, path: string, sent?: unknown) =>
        requestJson(origin(), method, path, { body: sent, headers }),
    }
  }
  const approve = async (owner: Person, refusal: { body: Record<string, unknown> }) => {
    expect(refusal.body).toMatchObject({ code: 'approval_required' })
    const path = `/api/approvals/${String(refusal.body.approvalId)}`
    return (await owner.send('POST', path, { decision: 'approve' })).body
  }
  const makeByKey = async (owner: Person, key: Pick<Person, 'send'>, body: object = {}) => {
    const asked = await key.send('POST', '/api/schedules', { ...pay(), every: { unit: 'day' }, ...body })
    expect(asked.status).toBe(403)
    return schedule.parse((await approve(owner, asked)).answer)
  }

  it('sets the calendar ahead only, within a bound, and not the clock of sign-in', async () => {
    const owner = await newGuest(origin())
    const before = await calendar()
    expect(Date.parse(String((await advance(DAY)).body.now))).toBeGreaterThanOrEqual(before + DAY * 1_000)
    expect(await advance(-1)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    expect(await advance(366 * DAY + 1)).toMatchObject({ status: 400 })
    expect(await advance(40 * DAY)).toMatchObject({ status: 200 })
    // A guest's session lives for less than that.
    expect(await owner.send('GET', '/api/wallets')).toMatchObject({ status: 200 })
  })

  it('moves budgets, and what an approval waits for', async () => {
    const owner = await newGuest(origin())
    const key = await newKey(owner, {
      policy: { ...policy, dailyBudget: { max: '50' }, approval: { above: '30', ttlSec: 3_600 } },
    })
    const send = (amount: string) =>
      key.send('POST', '/api/wallets/transfer', { destination: payee, amount, token: 'USDC' })
    expect(await send('25')).toMatchObject({ status: 200 })
    expect(await send('26')).toMatchObject({ status: 403, body: { code: 'policy_denied' } })
    await advance(DAY)
    expect(await send('26')).toMatchObject({ status: 200 })
    await advance(DAY)
    const { body } = await send('40')
    expect(body).toMatchObject({ code: 'approval_required' })
    await advance(3_601)
    expect(await owner.send('GET', `/api/approvals/${String(body.approvalId)}`)).toMatchObject({
      body: { status: 'expired' },
    })
  })

  it('pays at its due times, each once, and ends after the last', async () => {
    const owner = await newGuest(origin())
    const made = await make(owner, { count: 2 })
    expect(made).toMatchObject({ status: 'active', left: 2, runs: [] })
    expect(made.upcoming).toHaveLength(2)
    const first = String(made.nextAt)
    await advance(DAY)
    const ran = await until(owner, made, runsOf(1))
    expect(ran.runs).toMatchObject([
      { at: first, status: 'completed', object: { kind: 'transfer' }, reason: null },
    ])
    await advance(DAY)
    const over = await until(owner, made, ({ status }) => status === 'ended')
    expect(over.runs.map(({ status }) => status)).toEqual(['completed', 'completed'])
    expect(over).toMatchObject({ nextAt: null, left: 0 })
    await advance(3 * DAY)
    await pause(1_500)
    expect((await read(owner, made)).runs).toHaveLength(2)
    const { body } = await owner.send('GET', '/api/activity?kind=transfer')
    expect(body.entries).toHaveLength(2)
    const transfer = await owner.send('GET', `/api/wallets/transfers/${String(over.runs[0]?.object?.id)}`)
    expect(transfer.body).toMatchObject({ transferId: over.runs[0]?.object?.id })
  })

  it('runs a late time once within its grace, and calls the others missed', async () => {
    const owner = await newGuest(origin())
    const made = await make(owner, { graceHours: 30 })
    // Due after 1, 2, 3, 4 and 5 days; the last two are at most 30 hours ago.
    await advance(5 * DAY + 3_600)
    const { runs } = await until(owner, made, runsOf(5))
    expect(runs.map(({ status }) => status)).toEqual(['completed', 'completed', 'missed', 'missed', 'missed'])
    await owner.send('DELETE', `/api/schedules/${made.scheduleId}`)
  })

  it('refuses what no run could pass, with the operation’s own words', async () => {
    const [owner, other] = [await newGuest(origin()), await newGuest(origin())]
    const refused = async (body: object) =>
      (await owner.send('POST', '/api/schedules', { ...pay(), every: { unit: 'day' }, ...body })).body
    const own = await owner.send('POST', '/api/wallets/transfer', { ...pay().input, amount: '-1' })
    const scheduled = await refused(pay('-1'))
    expect(scheduled).toMatchObject({ code: 'invalid_request' })
    expect(scheduled.issues).toEqual(own.body.issues)
    expect(await refused({ input: { ...pay().input, chain: 'nowhere' } })).toMatchObject({
      code: 'chain_not_supported',
    })
    expect(await refused({ input: { ...pay().input, signature: 'sandbox' } })).toMatchObject({
      code: 'invalid_request',
      issues: [{ path: 'input.signature' }],
    })
    expect(await refused({ operation: 'cards.issue' })).toMatchObject({ code: 'invalid_request' })
    expect(await refused({ every: { unit: 'week', on: 8 } })).toMatchObject({ code: 'invalid_request' })
    expect(await refused({ tz: 'Mars/Base' })).toMatchObject({ code: 'invalid_request' })
    expect(await refused({ endsAt: '2020-01-01T00:00:00Z' })).toMatchObject({ code: 'invalid_request' })
    expect(await refused({ priceGuard: { max: '1' } })).toMatchObject({ code: 'invalid_request' })
    const bank = { currency: 'USD', name: 'Grace Hopper', country: 'US' }
    const account = { routingNumber: '021000021', accountNumber: '123456789' }
    const { body: theirs } = await other.send('POST', '/api/banking/recipients', { ...bank, account })
    expect(
      await refused({ operation: 'banking.payouts.create', input: { recipientId: theirs.id, amount: '5' } }),
    ).toMatchObject({ code: 'not_found' })
    const { scheduleId } = await make(other, {})
    for (const [method, body] of [['GET'], ['DELETE'], ['PATCH', { status: 'paused' }]] as const)
      expect(await owner.send(method, `/api/schedules/${scheduleId}`, body)).toMatchObject({
        status: 404,
        body: { code: 'not_found' },
      })
  })

  it('is asked of the owner once, and then each run is decided under the key’s policy', async () => {
    const owner = await newGuest(origin())
    const key = await newKey(owner, { policy: { ...policy, approval: { above: '5', ttlSec: 3_600 } } })
    const made = await makeByKey(owner, key, pay('20'))
    expect(made).toMatchObject({ status: 'active', agentId: key.id })
    await advance(DAY)
    const [paid] = (await until(key, made, runsOf(1))).runs
    expect(paid).toMatchObject({ status: 'completed' })
    const decisions = await key.send('GET', `/api/agents/decisions?id=${paid?.decisionId}`)
    const [{ receipt }] = z.tuple([z.looseObject({ receipt: z.string() })]).parse(decisions.body.decisions)
    expect(String(Buffer.from(receipt.split('.')[1] ?? '', 'base64url'))).toContain(
      `"${made.scheduleId} ${paid?.at}"`,
    )
    // The policy is tightened: the next run is denied, and nothing is paid.
    await owner.send('PATCH', `/api/agents/keys/${key.id}`, {
      policy: { ...policy, perTransaction: { max: '10' } },
    })
    await advance(DAY)
    const after = await until(key, made, runsOf(2))
    expect(after.runs[0]).toMatchObject({ status: 'denied', reason: 'policy_denied' })
    expect(after.runs[0]?.decisionId).toMatch(/^dec_/)
    // A paused key's runs are denied, and a revoked key's schedules end.
    await owner.send('PATCH', `/api/agents/keys/${key.id}`, { policy })
    await owner.send('POST', `/api/agents/keys/${key.id}/pause`)
    await advance(DAY)
    expect((await until(owner, made, runsOf(3))).runs[0]).toMatchObject({ status: 'denied' })
    await owner.send('DELETE', `/api/agents/keys/${key.id}`)
    await until(owner, made, ({ status }) => status === 'ended')
  })

  it('lets a key stop its own schedule, and nothing else', async () => {
    const owner = await newGuest(origin())
    const [key, other] = [await newKey(owner), await newKey(owner)]
    const without = await newKey(owner, { scopes: ['wallets:read'], policy: undefined })
    expect(await without.send('POST', '/api/schedules', { ...pay(), every: { unit: 'day' } })).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope' },
    })
    const made = await makeByKey(owner, key)
    const path = `/api/schedules/${made.scheduleId}`
    for (const [method, body] of [['GET'], ['DELETE'], ['PATCH', { status: 'paused' }]] as const)
      expect(await other.send(method, path, body)).toMatchObject({ status: 404 })
    expect((await other.send('GET', '/api/schedules')).body.schedules).toEqual([])
    expect(await key.send('PATCH', path, { input: pay('50').input })).toMatchObject({ status: 400 })
    expect(await key.send('PATCH', path, { status: 'paused' })).toMatchObject({ body: { status: 'paused' } })
    await advance(2 * DAY)
    const resumed = await key.send('PATCH', path, { status: 'active' })
    expect(await read(key, made)).toMatchObject({ status: 'paused', runs: [] })
    await approve(owner, resumed)
    const active = await read(key, made)
    // What passed meanwhile was not to be paid.
    expect(active).toMatchObject({ status: 'active', runs: [] })
    expect(Date.parse(String(active.nextAt))).toBeGreaterThan(await calendar())
    expect(await key.send('DELETE', path)).toMatchObject({ body: { status: 'ended', nextAt: null } })
    expect(await key.send('PATCH', path, { status: 'paused' })).toMatchObject({ status: 409 })
  })

  it('stops after three failures, and goes on when the owner says so', async () => {
    const owner = await newGuest(origin())
    const key = await newKey(owner, {
      policy: { ...policy, perTransaction: { max: '5000' }, dailyBudget: { max: '5000' } },
    })
    // What is left is too little.
    await owner.send('POST', '/api/wallets/transfer', { ...pay('500').input, signature: 'sandbox' })
    const made = await makeByKey(owner, key, pay('900'))
    const fail = async (counts: readonly number[]) => {
      for (const count of counts) {
        await advance(DAY)
        const { runs } = await until(key, made, runsOf(count))
        expect(runs[0]).toMatchObject({ status: 'failed', reason: 'insufficient_funds' })
      }
      expect(await read(key, made)).toMatchObject({ status: 'failing', nextAt: null })
      const { body } = await owner.send('GET', '/api/approvals?status=pending')
      const [asked] = z.array(z.looseObject({ approvalId: z.string() })).parse(body.approvals)
      expect(asked).toMatchObject({ operation: 'schedules.resume', input: { id: made.scheduleId } })
      return `/api/approvals/${asked?.approvalId}`
    }
    await fail([1, 2, 3])
    await advance(2 * DAY)
    await pause(1_500)
    expect((await read(key, made)).runs).toHaveLength(3)
    await owner.send('PATCH', `/api/schedules/${made.scheduleId}`, { status: 'active' })
    await owner.send('POST', await fail([4, 5, 6]), { decision: 'approve' })
    expect(await read(key, made)).toMatchObject({ status: 'active' })
    const { body: listed } = await owner.send('GET', '/api/events?limit=100')
    const types = z
      .array(z.looseObject({ type: z.string() }))
      .parse(listed.events)
      .map(({ type }) => type)
    expect(types).toEqual(
      expect.arrayContaining(['schedule.created', 'schedule.failed', 'schedule.failing', 'schedule.resumed']),
    )
    const { body: journal } = await owner.send('GET', '/api/security/journal?limit=100')
    for (const action of ['schedule.created', 'schedule.failing', 'schedule.resumed'])
      expect(JSON.stringify(journal)).toContain(`"${action}"`)
    await owner.send('DELETE', `/api/schedules/${made.scheduleId}`)
  })

  it('buys what its price guard allows', async () => {
    const owner = await newGuest(origin())
    const { body } = await requestJson(origin(), 'GET', '/sandbox/sellers')
    const seller = z
      .array(
        z.looseObject({
          url: z.string(),
          method: z.string(),
          protocol: z.string(),
          price: z.string(),
          honest: z.boolean(),
        }),
      )
      .parse(body.sellers)
      .find(({ honest, protocol, method }) => honest && method === 'GET' && protocol.startsWith('x402'))
    const input = { url: seller?.url, maxAmount: '1' }
    const buy = { operation: 'purchases.buy', input }
    const [cheap, dear] = [
      await make(owner, { ...buy, priceGuard: { max: '1', risePct: 10 } }),
      await make(owner, { ...buy, priceGuard: { max: '0.000001' } }),
    ]
    await advance(DAY)
    const bought = await until(owner, cheap, runsOf(1))
    expect(bought.runs[0]).toMatchObject({ status: 'completed', object: { kind: 'purchase' } })
    const refused = await until(owner, dear, runsOf(1))
    expect(refused.runs[0]).toMatchObject({ status: 'denied', object: null })
    await advance(DAY)
    expect((await until(owner, cheap, runsOf(2))).runs[0]).toMatchObject({ status: 'completed' })
    for (const { scheduleId } of [cheap, dear]) await owner.send('DELETE', `/api/schedules/${scheduleId}`)
  })
})
