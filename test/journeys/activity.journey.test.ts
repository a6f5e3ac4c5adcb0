/** The activity of an account over real HTTP: what the bank and the card processor report. */
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { sharedGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const origin = sharedGateway()
let guest: Person
beforeAll(async () => {
  guest = await newGuest(origin)
})

const list = async (query: string) => {
  const { body } = await guest.send('GET', `/api/activity?${query}`)
  return z.array(z.record(z.string(), z.unknown())).parse(body.entries)
}
const firstId = async (path: string, member: string) => {
  const { body } = await guest.send('GET', path)
  return z.array(z.looseObject({ id: z.string() })).parse(body[member])[0]?.id
}
const outside = (path: string, body: object) => requestJson(origin, 'POST', `/sandbox/${path}`, { body })

it('has card purchases with their merchant, approved and declined', async () => {
  const cardId = await firstId('/api/cards', 'cards')
  for (const amount of ['12.5', '999999']) await outside('authorizations', { cardId, amount })
  const [declined, approved] = await list('kind=card')
  expect(approved).toMatchObject({ direction: 'out', status: 'completed', asset: 'USD', usd: '12.5' })
  expect(approved?.counterparty).toEqual(expect.any(String))
  expect(declined).toMatchObject({ status: 'failed', amount: '0', requested: '999999' })
})

it('has a bank deposit once, however it was booked', async () => {
  const before = (await list('kind=deposit')).length
  await outside('deposits', { accountId: await firstId('/api/banking', 'accounts'), amount: '40' })
  await expect
    .poll(async () => (await list('kind=deposit'))[0]?.status, { timeout: 20_000 })
    .toBe('completed')
  const deposits = await list('kind=deposit')
  expect(deposits).toHaveLength(before + 1)
  expect(deposits[0]).toMatchObject({ direction: 'in', amount: '40' })
})

it('has a card purchase and its settlement once, and no other movement of its money', async () => {
  expect(await list('direction=out')).toHaveLength(2)
  const { body } = await guest.send('GET', '/api/wallets/transfers')
  expect(body.transfers).toEqual([])
})

it('values what came in, in euros too', async () => {
  const euros = (await list('kind=deposit')).filter(({ asset }) => asset === 'EURC')
  expect(euros.length).toBeGreaterThan(0)
  for (const { usd, amount } of euros) expect(Number(usd)).toBeGreaterThan(Number(amount) / 2)
  for (const entry of (await list('limit=100')).filter(({ amount }) => amount !== null))
    expect(entry.usd).toEqual(expect.any(String))
})

it('has dividends as dividends', async () => {
  await expect.poll(() => list('kind=dividend'), { timeout: 30_000 }).not.toEqual([])
  for (const entry of await list('kind=dividend'))
    expect(entry).toMatchObject({
      direction: 'in',
      asset: 'USD',
      counterparty: expect.stringMatching(/^[A-Z]+$/),
    })
  expect(
    (await list('kind=deposit&limit=100')).filter(({ object }) =>
      JSON.stringify(object).includes('dividend'),
    ),
  ).toEqual([])
})

it('has denied calls and calls without money, which move nothing', async () => {
  const { body: key } = await guest.send('POST', '/api/developer/keys', {
    name: 'Payer',
    scopes: ['wallets:transfer', 'wallets:read'],
    policy: {
      perTransaction: { max: '5000' },
      dailyBudget: { max: '5000' },
      categories: { allow: ['transfer'] },
    },
  })
  const pay = (amount: string) =>
    requestJson(origin, 'POST', '/api/wallets/transfer', {
      body: { destination: `0x${'1'.repeat(40)}`, amount, token: 'EURC' },
      headers: { authorization: `Bearer ${String(key.key)}` },
    })
  expect((await pay('6000')).status).toBe(403)
  expect(await pay('600')).toMatchObject({
    status: 422,
    body: {
      code: 'insufficient_funds',
      chain: 'base-sepolia',
      asset: 'EURC',
      available: '500',
      elsewhere: expect.arrayContaining([
        { chain: 'base-sepolia', asset: 'PYUSD', available: '250' },
        { chain: null, asset: 'USD', available: expect.any(String) },
      ]),
    },
  })
  const [poor, denied] = await list(`agentId=${String(key.id)}`)
  expect(poor).toMatchObject({ status: 'failed', amount: '0', requested: '600', usd: '0', asset: 'EURC' })
  expect(denied).toMatchObject({
    kind: 'transfer',
    direction: 'out',
    status: 'denied',
    amount: '0',
    requested: '6000',
    object: { kind: 'decision', id: denied?.decisionId },
  })
  // The key sees its own denials; another one does not.
  const { body: own } = await requestJson(origin, 'GET', '/api/activity?direction=out', {
    headers: { authorization: `Bearer ${String(key.key)}` },
  })
  expect(own.entries).toMatchObject([{ status: 'failed' }, { status: 'denied' }])
  const { body: reader } = await guest.send('POST', '/api/developer/keys', {
    name: 'R',
    scopes: ['wallets:read'],
  })
  const { body: seen } = await requestJson(origin, 'GET', '/api/activity?direction=out', {
    headers: { authorization: `Bearer ${String(reader.key)}` },
  })
  expect(seen.entries).toEqual([])
})

it('is served as CSV, with each object in two columns', async () => {
  const answer = await fetch(`${origin}/api/activity?kind=card`, {
    headers: { authorization: `Bearer ${guest.token}`, accept: 'text/csv' },
  })
  const [header, row] = (await answer.text()).split('\r\n')
  expect(header).toBe(
    'id,at,kind,direction,status,amount,requested,asset,usd,counterparty,contact,agentId,decisionId,object.kind,object.id,refundOf.kind,refundOf.id,task,memo,transactionHash',
  )
  expect(row).toContain(',card,out,failed,0,999999,USD,0,')
})
