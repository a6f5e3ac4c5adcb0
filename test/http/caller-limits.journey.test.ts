/** Rate limits of a key and of an account, regardless of the client address. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { newGuest, type Person, requestJson } from '../journeys/people.ts'

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({
    CHAIN: 'simulated',
    TRUSTED_PROXIES: '127.0.0.0/8',
    RATE_KEY: '3/60',
    RATE_ACCOUNT: '8/60',
  })
})
afterAll(() => gateway?.stop())

let calls = 0
const from = (token: string) => {
  calls += 1
  const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': `203.0.113.${calls}` }
  return requestJson(gateway.origin, 'POST', '/api/swaps', { body: {}, headers })
}
const newKey = async (owner: Person) => {
  const { body } = await owner.send('POST', '/api/developer/keys', { name: 'K', scopes: ['swaps:quote'] })
  return z.string().parse(body.key)
}

it('apply to a key and to all keys of its account together, and not to other accounts', async () => {
  const owner = await newGuest(gateway.origin)
  const [one, other] = [await newKey(owner), await newKey(owner)]
  const statuses = async (token: string, times: number) => {
    const allowance: number[] = []
    for (let at = 0; at < times; at += 1) allowance.push((await from(token)).status)
    return allowance
  }
  expect(await statuses(one, 4)).toEqual([400, 400, 400, 429])
  // Two requests made the keys, four went to the first key: the account has two left.
  expect(await statuses(other, 3)).toEqual([400, 400, 429])
  const otherAccount = await newGuest(gateway.origin)
  expect((await from(await newKey(otherAccount))).status).toBe(400)
})
