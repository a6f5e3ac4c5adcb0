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

const listed = async (query: string) => {
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
  const [declined, approved] = await listed('kind=card')
  expect(approved).toMatchObject({ direction: 'out', status: 'completed', asset: 'USD', usd: '12.5' })
  expect(approved?.counterparty).toEqual(expect.any(String))
  expect(declined).toMatchObject({ status: 'failed', amount: '999999' })
})

it('has a bank deposit once, however it was booked', async () => {
  const before = (await listed('kind=deposit')).length
  await outside('deposits', { accountId: await firstId('/api/banking', 'accounts'), amount: '40' })
  await expect
    .poll(async () => (await listed('kind=deposit'))[0]?.status, { timeout: 20_000 })
    .toBe('completed')
  const deposits = await listed('kind=deposit')
  expect(deposits).toHaveLength(before + 1)
  expect(deposits[0]).toMatchObject({ direction: 'in', amount: '40' })
})

it('is served as CSV, with the object in two columns', async () => {
  const answer = await fetch(`${origin}/api/activity?kind=card`, {
    headers: { authorization: `Bearer ${guest.token}`, accept: 'text/csv' },
  })
  const [header, row] = (await answer.text()).split('\r\n')
  expect(header).toBe(
    'id,at,kind,direction,status,amount,asset,usd,counterparty,agentId,decisionId,object.kind,object.id,memo,transactionHash',
  )
  expect(row).toContain(',card,out,failed,999999,USD,999999,')
})
