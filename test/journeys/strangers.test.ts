/** What anybody can have a gateway write is bounded: in rate, in size and in life. */
import pg from 'pg'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from './both-engines.ts'
import { askJson } from './people.ts'

const few = { RATE_GUESTS: '2/60', RATE_AUTHORIZATIONS: '3/60', RATE_REGISTRATIONS: '4/60' }
const metadata = { client_name: 'Somebody', redirect_uris: ['http://127.0.0.1:39999/callback'] }

overBothEngines('a stranger', few, ({ gateway, databaseUrl }) => {
  const register = (more: object = {}) =>
    askJson(gateway().origin, 'POST', '/oauth/register', { body: { ...metadata, ...more } })

  it('registers small clients, a few of them, which are forgotten with their tokens', async () => {
    const large = await register({ client_name: 'x'.repeat(10_000) })
    expect([large.status, large.body.error]).toEqual([400, 'invalid_client_metadata'])
    expect((await register()).status).toBe(201)
    const url = databaseUrl()
    if (url !== null) {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      const { rows } = await client.query(
        `select model, extract(epoch from expires_at - now()) / 3600 as hours from openid_record`,
      )
      await client.end()
      const records = z.array(z.object({ model: z.string(), hours: z.coerce.number() })).parse(rows)
      expect(records.map(({ model }) => model).sort()).toEqual([
        'oauth Client',
        'oauth RegistrationAccessToken',
      ])
      for (const { hours } of records) expect(Math.round(hours)).toBe(24)
    }
    expect([(await register()).status, (await register()).status]).toEqual([201, 201])
    const { status, body } = await register()
    expect([status, body.code]).toEqual([429, 'rate_limited'])
  })

  it('begins a few authorizations a minute', async () => {
    const statuses: number[] = []
    for (let times = 0; times < 5; times += 1) {
      const response = await fetch(`${gateway().origin}/oauth/authorize?client_id=x`, { redirect: 'manual' })
      statuses.push(response.status)
    }
    expect(statuses.slice(0, 3)).not.toContain(429)
    expect(statuses.slice(3)).toEqual([429, 429])
  })

  it('becomes a guest a few times', async () => {
    const statuses: number[] = []
    for (let times = 0; times < 3; times += 1)
      statuses.push((await askJson(gateway().origin, 'POST', '/api/auth/guest')).status)
    expect(statuses).toEqual([200, 200, 429])
  })
})
