/** Limits of a new installation per client address, each in a class of its own. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest } from './people.ts'

describe('a client address', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated' })
  })
  afterAll(() => gateway?.stop())

  it('may request one code a minute for a destination and five an hour in all; recovery has its own', async () => {
    const start = (kind: string, destination: string) =>
      fetch(`${gateway.origin}/api/auth/${kind}/start`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ channel: 'email', destination }),
      })
    const mailbox = 'Ada.Lovelace@example.com'
    expect((await start('otp', mailbox)).status).toBe(200)
    const soon = await start('otp', mailbox)
    expect([soon.status, soon.headers.get('retry-after')]).toEqual([429, '60'])
    // What was refused counts nowhere.
    for (const other of ['b', 'c', 'd', 'e'])
      expect((await start('otp', `${other}@example.com`)).status).toBe(200)
    const sixth = await start('otp', 'f@example.com')
    expect([sixth.status, sixth.headers.get('retry-after')]).toEqual([429, '3600'])
    expect((await start('recovery', mailbox)).status).toBe(200)
    expect((await start('recovery', mailbox)).status).toBe(429)
  })

  it('may relay twelve payments a minute', async () => {
    const person = await newGuest(gateway.origin)
    const statuses = []
    for (let count = 0; count < 13; count += 1)
      statuses.push((await person.send('POST', '/api/transfers/gasless', {})).status)
    expect(statuses).toEqual([...Array.from({ length: 12 }, () => 400), 429])
  })

  it('may show ten card numbers a minute', async () => {
    const guest = await newGuest(gateway.origin)
    const { body } = await guest.send('POST', '/api/cards', { limits: { daily: '50' } })
    const path = `/api/cards/${z.string().parse(body.id)}/reveal`
    const answers = await Promise.all(Array.from({ length: 11 }, () => guest.send('POST', path, {})))
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429])
  })
})
