/** Unauthenticated writes are bounded in rate, size and lifetime. */
import pg from 'pg'
import { privateKeyToAccount } from 'viem/accounts'
import { expect, it } from 'vitest'
import { wrapFetchWithPayment } from 'x402-fetch'
import { z } from 'zod'
import { overBothEngines } from './both-engines.ts'
import { requestJson } from './people.ts'

const refusedAfter = {
  RATE_FX: '3/60',
  RATE_GUESTS: '2/60',
  RATE_AUTHORIZATIONS: '3/60',
  RATE_REGISTRATIONS: '4/60',
}
const credentials = z.object({ payer: z.object({ privateKey: z.templateLiteral(['0x', z.string()]) }) })

/** A well-formed payment with a forged signature. */
function withoutSignature(payment: string): string {
  const text = Buffer.from(payment, 'base64').toString('utf8')
  const forged = text.replace(/"signature":"0x[0-9a-f]+"/i, `"signature":"0x${'11'.repeat(65)}"`)
  return Buffer.from(forged).toString('base64')
}

const metadata = { client_name: 'Somebody', redirect_uris: ['http://127.0.0.1:39999/callback'] }

overBothEngines('a stranger', refusedAfter, ({ gateway, databaseUrl }) => {
  const register = (more: object = {}) =>
    requestJson(gateway().origin, 'POST', '/oauth/register', { body: { ...metadata, ...more } })

  it('registers small clients at a limited rate, which expire with their tokens', async () => {
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

  it('cannot evade either limit by another spelling of the path', async () => {
    for (const path of ['/oauth/Register', '/oauth/register/', '/oauth/REGISTER?x=1', '/oauth/%72egister']) {
      const { status } = await requestJson(gateway().origin, 'POST', path, {
        body: { ...metadata, client_name: 'x'.repeat(10_000) },
      })
      expect([path, [404, 429].includes(status)]).toEqual([path, true])
    }
    for (const path of ['/oauth/Authorize', '/oauth/authorize/', '/oauth/AUTHORIZE/']) {
      const { status, body } = await requestJson(gateway().origin, 'GET', `${path}?client_id=x`)
      expect([path, status, body.code]).toEqual([path, 404, 'not_found'])
    }
  })

  it('allows unlimited paid requests, and a few with an invalid payment', async () => {
    const { origin } = gateway()
    const { payer } = credentials.parse((await requestJson(origin, 'GET', '/sandbox/credentials')).body)
    const url = `${origin}/api/x402/fx?from=USD&to=EUR&amount=100`
    const terms = await (await fetch(url)).text()
    const sending =
      (change: (payment: string) => string) => async (input: string | URL | Request, init?: RequestInit) => {
        const request = new Request(input, init)
        const payment = request.headers.get('X-PAYMENT')
        if (payment === null) return new Response(terms, { status: 402 })
        request.headers.set('X-PAYMENT', change(payment))
        return fetch(request)
      }
    const statuses = async (change: (payment: string) => string) => {
      const pay = wrapFetchWithPayment(sending(change), privateKeyToAccount(payer.privateKey))
      const all: number[] = []
      for (let times = 0; times < 5; times += 1) all.push((await pay(url)).status)
      return all
    }
    expect(await statuses((payment) => payment)).toEqual([200, 200, 200, 200, 200])
    expect(await statuses(withoutSignature)).toEqual([402, 402, 402, 429, 429])
  })

  it('creates a few guests', async () => {
    const statuses: number[] = []
    for (let times = 0; times < 3; times += 1)
      statuses.push((await requestJson(gateway().origin, 'POST', '/api/auth/guest')).status)
    expect(statuses).toEqual([200, 200, 429])
  })
})
