/** Contacts over HTTP: payees by name, by whom they are made, and what waits when one of them becomes another payee. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from './both-engines.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const DAY = 86_400
/** Addresses without letters have no checksum to get wrong. */
const address = (digit: number) => `0x${String(digit).repeat(40)}`
const [first, second, third] = [address(1), address(2), address(3)]
const policy = {
  perTransaction: { max: '50' },
  dailyBudget: { max: '200' },
  categories: { allow: ['transfer', 'payout'] },
}
const american = {
  currency: 'USD',
  name: 'Grace Hopper',
  country: 'US',
  account: { routingNumber: '021000021', accountNumber: '123456789' },
}
const entries = z.object({
  entries: z.array(
    z.looseObject({ status: z.string(), amount: z.string().nullable(), counterparty: z.string().nullable() }),
  ),
})

overBothEngines('contacts', { RATE_GUESTS: '1000/60' }, ({ gateway }) => {
  const origin = () => gateway().origin
  const add = async (owner: Person, name: string, changes: object = { addresses: [{ address: first }] }) =>
    owner.send('POST', '/api/contacts', { name, ...changes })
  const added = async (owner: Person, name: string, changes?: object) => {
    const { status, body } = await add(owner, name, changes)
    expect(status, JSON.stringify(body)).toBe(200)
    return `/api/contacts/${String(body.id)}`
  }
  const newKey = async (owner: Person, changes: object = {}) => {
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Payer',
      scopes: ['wallets:transfer', 'wallets:read', 'banking:pay'],
      policy,
      ...changes,
    })
    const send = (method: string, path: string, sent?: unknown, key?: string) =>
      requestJson(origin(), method, path, {
        body: sent,
        headers: {
          authorization: `Bearer ${String(body.key)}`,
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
      })
    const pay = (destination: string, amount = '1', key?: string) =>
      send('POST', '/api/wallets/transfer', { destination, amount, token: 'USDC' }, key)
    return { id: String(body.id), send, pay }
  }
  const move = async (owner: Person, path: string, to: string | undefined) => {
    const { status, body } = await owner.send('PATCH', path, { addresses: [{ address: to }] })
    expect(status, JSON.stringify(body)).toBe(200)
  }
  const paidTo = async (owner: Person) => {
    const { body } = await owner.send('GET', '/api/activity?kind=transfer&limit=100')
    return entries
      .parse(body)
      .entries.filter(({ amount }) => amount !== '0')
      .map(({ counterparty }) => counterparty)
  }

  it('contacts are paid by their name, by the owner and by agents, and named wherever they are shown', async () => {
    const owner = await newGuest(origin())
    const path = await added(owner, 'Alice', { addresses: [{ address: first }], email: 'alice@example.com' })
    const key = await newKey(owner)
    expect(await key.pay('contact:alice')).toMatchObject({
      status: 200,
      body: { destination: first, contact: 'Alice' },
    })
    const { body: sent } = await owner.send('POST', '/api/wallets/transfer', {
      destination: 'contact: ALICE',
      amount: '2',
      token: 'USDC',
      signature: 'sandbox',
    })
    expect(sent).toMatchObject({ destination: first, contact: 'Alice' })
    const { body: activity } = await owner.send('GET', '/api/activity?kind=transfer')
    expect(activity.entries).toMatchObject([
      { counterparty: first, contact: 'Alice' },
      { counterparty: first, contact: 'Alice' },
    ])
    const { body: transfer } = await key.send('GET', `/api/wallets/transfers/${String(sent.transferId)}`)
    expect(transfer).toMatchObject({ contact: 'Alice' })
    const { body: transfers } = await owner.send('GET', '/api/wallets/transfers?destination=contact:Alice')
    expect(transfers.transfers).toMatchObject([{ contact: 'Alice' }, { contact: 'Alice' }])
    const month = new Date().toISOString().slice(0, 7)
    const { body: statement } = await owner.send('GET', `/api/statements/${month}`)
    expect(JSON.stringify(statement)).toContain('"contact":"Alice"')
    const { body: own } = await owner.send('GET', '/api/contacts')
    expect(own.contacts).toMatchObject([
      { name: 'Alice', email: 'alice@example.com', addressChangedAt: null, paidBefore: { count: 2 } },
    ])
    // Agents see whom they can pay, and nothing of the owner's own.
    const { body: theirs } = await key.send('GET', '/api/contacts?name=contact:ALICE')
    expect(theirs.contacts).toMatchObject([{ name: 'Alice', email: null }])
    expect(await owner.send('DELETE', path)).toMatchObject({ status: 200 })
    expect(await key.pay('contact:Alice')).toMatchObject({ status: 404, body: { code: 'not_found' } })
    expect(await paidTo(owner)).toEqual([first, first])
  })

  it('stand for a bank account where a recipient is named', async () => {
    const owner = await newGuest(origin())
    const { body: recipient } = await owner.send('POST', '/api/banking/recipients', american)
    await added(owner, 'Grace', { recipientId: recipient.id })
    const key = await newKey(owner)
    const payout = (name: string) => ({ recipientId: name, amount: '20' })
    const { body: quote } = await key.send('POST', '/api/banking/payouts/quote', payout('contact:Grace'))
    expect(quote).toMatchObject({ amount: '20' })
    expect(await key.send('POST', '/api/banking/payouts', payout('contact:Grace'))).toMatchObject({
      status: 200,
      body: { recipientId: recipient.id },
    })
    // She has no address, and nobody else has a bank account.
    expect(await key.pay('contact:Grace')).toMatchObject({ status: 404 })
    await added(owner, 'Alice')
    expect(await key.send('POST', '/api/banking/payouts', payout('contact:Alice'))).toMatchObject({
      status: 404,
    })
  })

  it('contacts are the owner’s alone to add and change, and of one account alone', async () => {
    const [owner, other] = [await newGuest(origin()), await newGuest(origin())]
    const path = await added(owner, 'Alice')
    const key = await newKey(owner)
    for (const [method, at, body] of [
      ['POST', '/api/contacts', { name: 'Mallory', addresses: [{ address: second }] }],
      ['PATCH', path, { addresses: [{ address: second }] }],
      ['DELETE', path, undefined],
    ] as const)
      expect(await key.send(method, at, body)).toMatchObject({ status: 403 })
    expect(await other.send('PATCH', path, { name: 'Mine' })).toMatchObject({ status: 404 })
    expect(await other.send('DELETE', path)).toMatchObject({ status: 404 })
    expect((await other.send('GET', '/api/contacts')).body).toEqual({ contacts: [] })
    const theirs = await newKey(other)
    expect(await theirs.pay('contact:Alice')).toMatchObject({ status: 404, body: { code: 'not_found' } })
    const { body: recipient } = await other.send('POST', '/api/banking/recipients', american)
    expect(await add(owner, 'Stolen', { recipientId: recipient.id })).toMatchObject({ status: 404 })
    expect((await owner.send('GET', '/api/contacts')).body.contacts).toMatchObject([
      { addresses: [{ chain: null, address: first }] },
    ])
  })

  it('contacts are not known to a key that may neither pay nor read them', async () => {
    const owner = await newGuest(origin())
    await added(owner, 'Alice')
    const strict = { ...policy, counterparties: { newPayeeCooldownSec: 3_600 } }
    const key = await newKey(owner, { scopes: ['purchases:pay', 'compliance:write'], policy: strict })
    const simulate = (counterparty: string) =>
      key.send('POST', '/api/agents/policies/simulate', {
        spend: { category: 'transfer', amount: '1', counterparty },
      })
    const beneficiary = { name: 'Alice' }
    const record = (destination: string) =>
      key.send('POST', '/api/compliance/travel-rule', {
        ...{ amount: '1000', token: 'USDC', destination, beneficiary },
      })
    for (const name of ['contact:Alice', 'contact:Bob'])
      for (const { status, body } of [await simulate(name), await record(name)])
        expect([status, body.code, JSON.stringify(body).includes(address(1))]).toEqual([
          403,
          'insufficient_scope',
          false,
        ])
    expect(await simulate(address(1))).toMatchObject({ status: 200 })
  })

  it('refuse names that look like another one, an address or a command', async () => {
    const owner = await newGuest(origin())
    await added(owner, 'Alice Cooper')
    for (const name of ['alice cooper', 'ALICE  COOPER', 'Ａlice Cooper', 'Alice-Cooper', 'A1ice Co0per'])
      expect(await add(owner, name), name).toMatchObject({ status: 409, body: { reason: 'name_taken' } })
    // Cyrillic letters: one among Latin ones, and a word of nothing else.
    expect(await add(owner, 'Аlice Cooper')).toMatchObject({ status: 400 })
    await added(owner, 'coco')
    expect(await add(owner, 'сосо')).toMatchObject({ status: 409 })
    for (const name of [
      'contact:Alice',
      'Contact : Bob',
      first,
      '0xDEADBEEF00',
      'rcp_01h455vb4pex5vsknk084sn02q',
    ])
      expect(await add(owner, String(name)), name).toMatchObject({ status: 400 })
    for (const name of ['', ' ', 'Al\u202eice', 'Al\u200bice', 'Al\nice', '\u2800', '…', 'x'.repeat(81)])
      expect(await add(owner, name), JSON.stringify(name)).toMatchObject({ status: 400 })
    for (const name of ['Ελένη', 'Иван', '山田太郎', 'राम', 'O’Brien & Sons'])
      expect(await add(owner, name), name).toMatchObject({ status: 200 })
    const key = await newKey(owner)
    expect(await key.pay('contact:сосо')).toMatchObject({ status: 404 })
    expect(await key.pay('contact:')).toMatchObject({ status: 404 })
    expect(await add(owner, 'Two', { addresses: [{ address: first }, { address: second }] })).toMatchObject({
      status: 400,
    })
  })

  it('policies allow and deny a contact at the address that it has when a spend is decided', async () => {
    const owner = await newGuest(origin())
    const path = await added(owner, 'Alice')
    const only = await newKey(owner, { policy: { ...policy, counterparties: { allow: ['contact:ALICE'] } } })
    const never = await newKey(owner, { policy: { ...policy, counterparties: { deny: ['contact:Alice'] } } })
    expect(await only.pay(String(first))).toMatchObject({ status: 200 })
    expect(await only.pay(String(second))).toMatchObject({ status: 403, body: { code: 'policy_denied' } })
    expect(await never.pay('contact:Alice')).toMatchObject({ status: 403 })
    expect(await never.pay(String(second))).toMatchObject({ status: 200 })
    const ask = async (counterparty: string) =>
      (
        await only.send('POST', '/api/agents/policies/simulate', {
          spend: { category: 'transfer', amount: '1', counterparty },
        })
      ).body
    expect(await ask('contact:Alice')).toMatchObject({ decision: 'allow' })
    await move(owner, path, second)
    expect(await ask('contact:Alice')).toMatchObject({ decision: 'allow' })
    expect(await ask(String(first))).toMatchObject({ decision: 'deny' })
    expect(await only.pay(String(first))).toMatchObject({ status: 403 })
    expect(await only.pay('contact:Alice')).toMatchObject({ status: 200, body: { destination: second } })
    expect(await never.pay(String(first))).toMatchObject({ status: 200 })
    expect(await never.pay(String(second))).toMatchObject({ status: 403 })
    // A name that nobody has is nobody's.
    await owner.send('DELETE', path)
    expect(await only.pay(String(second))).toMatchObject({ status: 403 })
  })

  it('keep their rules in policies when they are renamed, and leave none to who takes the name', async () => {
    const owner = await newGuest(origin())
    const alice = await added(owner, 'Alice')
    const bob = await added(owner, 'Bob', { addresses: [{ address: second }] })
    const limited = {
      ...policy,
      counterparties: { allow: ['contact:ALICE', address(4)], deny: ['contact:bob'] },
    }
    const key = await newKey(owner, { policy: limited })
    const shown = async () => {
      const { body } = await owner.send('GET', `/api/agents/keys?include=api_keys`)
      const { keys } = z
        .object({ keys: z.array(z.looseObject({ agentId: z.string(), policy: z.looseObject({}) })) })
        .parse(body)
      return keys.find(({ agentId }) => agentId === key.id)?.policy
    }
    const names = (...[first, denied]: readonly string[]) => ({
      counterparties: { allow: [first, address(4)], deny: [denied] },
    })
    expect(await shown()).toMatchObject(names('contact:Alice', 'contact:Bob'))
    expect((await key.send('GET', '/api/agents/self')).body).toMatchObject({
      policy: names('contact:Alice', 'contact:Bob'),
    })
    expect(await owner.send('PATCH', alice, { name: 'Alicia' })).toMatchObject({ status: 200 })
    expect(await owner.send('PATCH', bob, { name: 'Robert' })).toMatchObject({ status: 200 })
    expect(await shown()).toMatchObject(names('contact:Alicia', 'contact:Robert'))
    expect(await key.pay(String(first))).toMatchObject({ status: 200 })
    expect(await key.pay(String(second))).toMatchObject({ status: 403 })
    // Others take the names: nobody may pay the one, and nobody is kept from the other.
    await added(owner, 'Alice', { addresses: [{ address: third }] })
    await added(owner, 'Bob', { addresses: [{ address: address(4) }] })
    expect(await key.pay('contact:Alice')).toMatchObject({ status: 403, body: { code: 'policy_denied' } })
    expect(await key.pay('contact:Bob')).toMatchObject({ status: 200, body: { destination: address(4) } })
    expect(await key.pay('contact:Alicia')).toMatchObject({ status: 200, body: { destination: first } })
    // One that was removed is nobody, shown by its id, and may be written back so.
    expect(await owner.send('DELETE', alice)).toMatchObject({ status: 200 })
    const id = alice.split('/').at(-1) ?? ''
    expect(await shown()).toMatchObject(names(id, 'contact:Robert'))
    expect(await key.pay(String(first))).toMatchObject({ status: 403 })
    const written = await owner.send('PATCH', `/api/agents/keys/${key.id}`, { policy: await shown() })
    expect(written).toMatchObject({ status: 200, body: { policy: names(id, 'contact:Robert') } })
    await added(owner, 'Alicia', { addresses: [{ address: first }] })
    expect(await shown()).toMatchObject(names(id, 'contact:Robert'))
    expect(await key.pay(String(first))).toMatchObject({ status: 403 })
    const { body: entries } = await owner.send('GET', '/api/security/journal?limit=100')
    expect(JSON.stringify(entries)).toContain(id)
    expect(JSON.stringify(entries)).not.toMatch(/alice|alicia|robert/i)
  })

  it('are named by a policy only while the account has them', async () => {
    const [owner, other] = [await newGuest(origin()), await newGuest(origin())]
    const alice = await added(owner, 'Alice')
    const named = (...allow: readonly string[]) => ({ policy: { ...policy, counterparties: { allow } } })
    const keys = '/api/developer/keys'
    const grant = { name: 'Payer', scopes: ['wallets:transfer'] }
    expect(await owner.send('POST', keys, { ...grant, ...named('contact:Nobody') })).toMatchObject({
      status: 404,
      body: { code: 'not_found', hint: expect.any(String) },
    })
    // An id of somebody else's contact is nobody.
    const theirs = await newKey(other, named(alice.split('/').at(-1) ?? ''))
    expect(await theirs.pay(String(first))).toMatchObject({ status: 403, body: { code: 'policy_denied' } })
    // What an agent asks for is the contact that it named then.
    const key = await newKey(owner, { scopes: ['wallets:transfer', 'wallets:read', 'agents:delegate'] })
    const { status, body: asked } = await key.send('POST', '/api/approvals', {
      operation: 'agents.policy',
      input: named('contact:Alice'),
      reason: 'Rent',
    })
    expect(status, JSON.stringify(asked)).toBeLessThan(300)
    const approval = `/api/approvals/${String(asked.approvalId)}`
    expect((await key.send('GET', approval)).body).toMatchObject({ input: named('contact:Alice') })
    expect(await owner.send('PATCH', alice, { name: 'Alicia' })).toMatchObject({ status: 200 })
    await added(owner, 'Alice', { addresses: [{ address: second }] })
    expect((await owner.send('GET', approval)).body).toMatchObject({ input: named('contact:Alicia') })
    expect((await owner.send('POST', approval, { decision: 'approve' })).body).toMatchObject({
      problem: null,
      answer: named('contact:Alicia'),
    })
    expect(await key.pay(String(first))).toMatchObject({ status: 200 })
    expect(await key.pay(String(second))).toMatchObject({ status: 403 })
    // A repeat of a change is answered as the first, whatever its contact is called since.
    const idempotent = { 'idempotency-key': 'named-once' }
    const send = () =>
      requestJson(origin(), 'POST', keys, {
        body: { ...grant, ...named('contact:Alicia') },
        headers: { authorization: `Bearer ${owner.token}`, ...idempotent },
      })
    const { body: made } = await send()
    expect(made).toMatchObject(named('contact:Alicia'))
    expect(await owner.send('PATCH', alice, { name: 'Ada' })).toMatchObject({ status: 200 })
    expect(await send()).toMatchObject({ status: 200, body: { id: made.id, ...named('contact:Ada') } })
    // A key gives what it has, by whatever name.
    const child = await key.send('POST', '/api/agents/delegations', {
      name: 'Child',
      scopes: ['wallets:transfer'],
      bearer: true,
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      ...named('contact:ada'),
    })
    expect(child, JSON.stringify(child.body)).toMatchObject({ status: 200, body: named('contact:Ada') })
  })

  it('start the cool-down of new payees when they get another address', async () => {
    const owner = await newGuest(origin())
    const path = await added(owner, 'Alice')
    const key = await newKey(owner, { policy: { ...policy, counterparties: { newPayeeCooldownSec: 3_600 } } })
    const advance = (seconds: number) =>
      requestJson(origin(), 'POST', '/sandbox/clock', { body: { advance: seconds } })
    const denied = { status: 403, body: { violations: [{ rule: 'new_payee_cooldown' }] } }
    for (const payee of [first, second]) {
      expect(await key.pay(String(payee))).toMatchObject(denied)
      await advance(3_601)
      expect(await key.pay(String(payee))).toMatchObject({ status: 200 })
    }
    // Paid before, and new all the same.
    await move(owner, path, second)
    expect(await key.pay('contact:Alice')).toMatchObject(denied)
    await move(owner, path, third)
    await advance(3_601)
    // It started with the change, not with the first request.
    expect(await key.pay('contact:Alice')).toMatchObject({ status: 200, body: { destination: third } })
    const { body } = await owner.send('GET', '/api/contacts')
    expect(body.contacts).toMatchObject([{ addressChangedAt: expect.any(String), paidBefore: { count: 1 } }])
  })

  it('pay the address that a waiting approval shows, or nobody', async () => {
    const owner = await newGuest(origin())
    const path = await added(owner, 'Alice')
    const key = await newKey(owner, { policy: { ...policy, approval: { above: '5', ttlSec: 3_600 } } })
    const wait = async (named: string, id: string) => {
      const asked = await key.pay(named, '20', id)
      expect(asked).toMatchObject({ status: 403, body: { code: 'approval_required' } })
      return `/api/approvals/${String(asked.body.approvalId)}`
    }
    const [kept, swapped, gone] = [
      await wait('contact:Alice', 'kept'),
      await wait('contact:Alice', 'swapped'),
      await wait('contact:Alice', 'gone'),
    ]
    expect((await owner.send('GET', kept)).body).toMatchObject({
      input: { destination: first },
      contact: { name: 'Alice', isChanged: false },
    })
    expect((await owner.send('POST', kept, { decision: 'approve' })).body).toMatchObject({
      answer: { destination: first },
      problem: null,
    })
    await move(owner, path, second)
    expect((await owner.send('GET', swapped)).body).toMatchObject({
      input: { destination: first },
      contact: { name: 'Alice', isChanged: true },
    })
    // The agent repeats it: it is the call that waits, never one to the new address.
    expect(await key.pay('contact:Alice', '20', 'swapped')).toMatchObject({
      status: 409,
      body: { code: 'conflict', reason: 'payee_changed' },
    })
    expect((await owner.send('POST', swapped, { decision: 'approve' })).body).toMatchObject({
      answer: null,
      problem: { code: 'conflict', reason: 'payee_changed' },
    })
    // An allowed call that is repeated answers what it paid, whatever the contact is now.
    expect(await key.pay('contact:Alice', '20', 'kept')).toMatchObject({
      status: 200,
      body: { destination: first },
    })
    await owner.send('DELETE', path)
    expect((await owner.send('POST', gone, { decision: 'approve' })).body).toMatchObject({
      problem: { reason: 'payee_changed' },
    })
    expect(await key.pay('contact:Alice', '20', 'kept')).toMatchObject({ status: 200 })
    expect(await paidTo(owner)).toEqual([first])
  })

  it('pay the address that an exception was asked for, or nobody', async () => {
    const owner = await newGuest(origin())
    const path = await added(owner, 'Alice')
    const key = await newKey(owner)
    const input = { destination: 'contact:Alice', amount: '80', token: 'USDC' }
    const { body: asked } = await key.send('POST', '/api/approvals', {
      operation: 'wallets.transfer',
      input,
      reason: 'An invoice',
    })
    const approval = `/api/approvals/${String(asked.approvalId)}`
    expect((await key.send('GET', approval)).body).toMatchObject({
      input: { destination: first },
      contact: { name: 'Alice' },
    })
    await move(owner, path, second)
    expect((await owner.send('POST', approval, { decision: 'approve' })).body).toMatchObject({
      problem: { code: 'conflict', reason: 'payee_changed' },
    })
    expect(await paidTo(owner)).toEqual([])
  })

  it('are signed for by their address', async () => {
    const owner = await newGuest(origin())
    const path = await added(owner, 'Alice')
    const call = { destination: 'contact:Alice', amount: '3', token: 'USDC' }
    const { status, body } = await owner.send('POST', '/api/wallets/transfer/intent', call)
    expect([status, JSON.stringify(body).toLowerCase()]).toEqual([
      200,
      expect.stringContaining(String(first)),
    ])
    await move(owner, path, second)
    const sent = await owner.send('POST', '/api/wallets/transfer', {
      ...call,
      intentId: body.intentId,
      signature: 'sandbox',
    })
    expect(sent.status).not.toBe(200)
    expect(await paidTo(owner)).toEqual([])
  })

  it('stop a schedule when they become another payee, and its owner learns of it', async () => {
    const owner = await newGuest(origin())
    const [alice, bob] = [
      await added(owner, 'Alice'),
      await added(owner, 'Bob', { addresses: [{ address: second }] }),
    ]
    const key = await newKey(owner)
    const schedule = (name: string) => ({
      operation: 'wallets.transfer',
      input: { destination: name, amount: '1', token: 'USDC' },
      every: { unit: 'day' },
    })
    const { body: owned } = await owner.send('POST', '/api/schedules', schedule('contact:Alice'))
    expect(owned).toMatchObject({ input: { destination: first }, contact: 'Alice' })
    const [late, asked] = [
      await key.send('POST', '/api/schedules', schedule('contact:bob')),
      await key.send('POST', '/api/schedules', schedule('contact:alice')),
    ]
    const approve = async ({ body }: typeof late) =>
      (await owner.send('POST', `/api/approvals/${String(body.approvalId)}`, { decision: 'approve' })).body
    const { answer } = z
      .looseObject({ answer: z.looseObject({ scheduleId: z.string() }) })
      .parse(await approve(asked))
    await move(owner, bob, third)
    expect(await approve(late)).toMatchObject({ problem: { reason: 'payee_changed' } })
    const runsOf = async (id: unknown) => {
      const { body } = await owner.send('GET', `/api/schedules/${String(id)}`)
      return z
        .looseObject({ status: z.string(), runs: z.array(z.looseObject({ status: z.string() })) })
        .parse(body)
    }
    const until = async (id: unknown, count: number) => {
      for (let attempt = 0; attempt < 300; attempt += 1) {
        const now = await runsOf(id)
        if (now.runs.length >= count && (count === 1 || now.status !== 'active')) return now
        await pause(100)
      }
      throw new Error(`it never was so: ${JSON.stringify(await runsOf(id))}`)
    }
    const advance = () => requestJson(origin(), 'POST', '/sandbox/clock', { body: { advance: DAY } })
    await advance()
    for (const id of [owned.scheduleId, answer.scheduleId])
      expect(await until(id, 1)).toMatchObject({ status: 'active', runs: [{ status: 'completed' }] })
    await move(owner, alice, third)
    await advance()
    for (const id of [owned.scheduleId, answer.scheduleId])
      expect(await until(id, 2)).toMatchObject({
        status: 'failing',
        runs: [{ status: 'failed', reason: 'payee_changed' }, { status: 'completed' }],
      })
    expect(await paidTo(owner)).toEqual([first, first])
    const { body: events } = await owner.send('GET', '/api/events?limit=100')
    for (const type of ['contact.created', 'contact.updated', 'schedule.failed', 'schedule.failing'])
      expect(JSON.stringify(events)).toContain(`"${type}"`)
    const { body: journal } = await owner.send('GET', '/api/security/journal?limit=100')
    expect(JSON.stringify(journal)).toContain('"contact.updated"')
    expect(JSON.stringify([events, journal])).not.toContain('Alice')
  })

  it('answer a repeated call as the first, whatever became of them since', async () => {
    const owner = await newGuest(origin())
    const path = await added(owner, 'Alice')
    const key = await newKey(owner)
    const { body: paid } = await key.pay('contact:Alice', '1', 'paid-once')
    expect(paid).toMatchObject({ destination: first })
    const schedule = {
      operation: 'wallets.transfer',
      input: { destination: 'contact:Alice', amount: '1', token: 'USDC' },
      every: { unit: 'month' },
    }
    const ask = () => key.send('POST', '/api/schedules', schedule, 'scheduled-once')
    const { body: asked } = await ask()
    expect(await ask()).toMatchObject({ body: { code: 'approval_required', approvalId: asked.approvalId } })
    const { body: approved } = await owner.send('POST', `/api/approvals/${String(asked.approvalId)}`, {
      decision: 'approve',
    })
    const { answer } = z.looseObject({ answer: z.looseObject({ scheduleId: z.string() }) }).parse(approved)
    const isRepeated = async () => {
      expect(await ask()).toMatchObject({ status: 200, body: { scheduleId: answer.scheduleId } })
      expect(await key.pay('contact:Alice', '1', 'paid-once')).toMatchObject({
        status: 200,
        body: { transferId: paid.transferId, destination: first },
      })
    }
    await isRepeated()
    await move(owner, path, second)
    await isRepeated()
    expect(await owner.send('PATCH', path, { name: 'Alicia' })).toMatchObject({ status: 200 })
    await isRepeated()
    // Another one has the name by now, and is never paid by a repeat.
    await added(owner, 'Alice', { addresses: [{ address: third }] })
    expect(await key.pay('contact:Alice', '1', 'paid-once')).toMatchObject({
      status: 422,
      body: { code: 'idempotency_key_reused' },
    })
    expect(await paidTo(owner)).toEqual([first])
  })

  it('are erased with the personal data of their owner', async () => {
    const owner = await newGuest(origin())
    const path = await added(owner, 'Alice')
    expect(await owner.send('DELETE', '/api/compliance/personal-data')).toMatchObject({ status: 200 })
    expect((await owner.send('GET', '/api/contacts')).body).toEqual({ contacts: [] })
    expect(await owner.send('DELETE', path)).toMatchObject({ status: 404 })
  })
})
