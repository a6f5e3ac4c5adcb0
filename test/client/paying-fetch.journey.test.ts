/** The client's paying fetch, against a real gateway and sellers that take the money and break off. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Bursar } from '../../src/client/index.ts'
import { forManyTests, type Gateway, startGateway } from '../journeys/gateway.ts'
import { newGuest, requestJson } from '../journeys/people.ts'
import { type FlakySellers, startFlakySellers } from '../rails/buying/flaky-sellers.ts'
import { API_KEY, COOKIE, longBytes, startLongSellers, TOKEN } from '../rails/buying/long-sellers.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'

const MIB = 1024 * 1024
const credentials = z.object({ chain: z.object({ rpcUrl: z.string() }) })

describe.skipIf(!hasAnvil())('bursar.fetch', () => {
  let gateway: Gateway
  let sellers: Awaited<ReturnType<typeof startLongSellers>>
  let flaky: FlakySellers
  let bursar: Bursar
  let apiKey = ''
  /** Requests that reached the gateway. */
  let called: string[] = []

  beforeAll(async () => {
    gateway = await startGateway(forManyTests)
    const { chain } = credentials.parse(
      (await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body,
    )
    sellers = await startLongSellers(chain.rpcUrl)
    flaky = await startFlakySellers(chain.rpcUrl)
    const owner = await newGuest(gateway.origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['purchases:pay'],
      policy: { perTransaction: { max: '0.01' }, dailyBudget: { max: '5' }, categories: { allow: ['x402'] } },
    })
    apiKey = String(body.key)
    bursar = newClient()
  }, 120_000)
  afterAll(async () => {
    await sellers?.close()
    await flaky?.close()
    await gateway?.stop()
  }, 60_000)

  const newClient = (send: typeof fetch = fetch) =>
    new Bursar({
      url: gateway.origin,
      apiKey,
      fetch: (url, init) => {
        if (String(url).startsWith(gateway.origin))
          called.push(`${init?.method} ${new URL(String(url)).pathname}`)
        return send(url, init)
      },
    })
  const read = async (response: Response) => Buffer.from(await response.arrayBuffer())

  it('passes on what asks for no payment, without the gateway', async () => {
    called = []
    const response = await bursar.fetch(`${gateway.origin}/healthz`)
    expect([response.status, response.headers.get('bursar-purchase')]).toEqual([200, null])
    expect(called).toEqual(['GET /healthz'])
  })

  it('believes no seller that says what was bought', async () => {
    const server = createServer((request, response) => {
      const said = {
        'bursar-purchase': 'buy_1',
        'bursar-charged': '9 USDC',
        'bursar-complete': 'true',
        'x-own': '1',
      }
      response.writeHead(Number(request.url?.slice(1)), said).end()
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    for (const status of [200, 204, 402, 404]) {
      const { headers, url } = await bursar.fetch(`${origin}/${status}`)
      const ours = ['purchase', 'charged', 'complete'].map((name) => headers.get(`bursar-${name}`))
      expect([ours, headers.get('x-own'), url]).toEqual([[null, null, null], '1', `${origin}/${status}`])
    }
    server.close()
  })

  it('gives a 402 whose body does not end to its caller', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(402).write('{')
      const drip = setInterval(() => response.write(' '), 200)
      response.once('close', () => clearInterval(drip))
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const response = await bursar.fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    expect([response.status, response.headers.get('bursar-problem')]).toEqual([402, 'terms_not_payable'])
    const { value } = (await response.body?.getReader().read()) ?? {}
    expect(String(new TextDecoder().decode(value))).toContain('{')
    server.closeAllConnections()
    server.close()
  })

  it('pays, and gives the answer as the seller gave it', async () => {
    const [taken, { fetch: pay }] = [sellers.taken(), bursar]
    const body = longBytes(100_000)
    const response = await pay(`${sellers.origin}/echo`, {
      method: 'PUT',
      body,
      headers: { Authorization: `Bearer ${TOKEN}`, Cookie: COOKIE, 'X-Api-Key': API_KEY, 'If-Match': 'x' },
    })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/x-goods')
    expect(response.headers.get('bursar-purchase')).toMatch(/^buy_/)
    expect(response.headers.get('bursar-charged')).toBe('0.001 USDC')
    expect((await read(response)).equals(body)).toBe(true)
    expect(sellers.paid.at(-1)).toMatchObject({
      method: 'PUT',
      headers: { authorization: `Bearer ${TOKEN}`, cookie: COOKIE, 'x-api-key': API_KEY, 'if-match': 'x' },
    })
    expect(sellers.taken() - taken).toBe(1)
  })

  it('streams long answers and bodies that are streams', async () => {
    const body = longBytes(4 * MIB)
    let at = 0
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        if (at >= body.length) return controller.close()
        controller.enqueue(new Uint8Array(body.subarray(at, at + 65_536)))
        at += 65_536
      },
    })
    const init = { method: 'POST', body: stream, duplex: 'half' }
    const response = await bursar.fetch(`${sellers.origin}/echo`, init as RequestInit)
    expect((await read(response)).equals(body)).toBe(true)
  })

  it('passes on a 402 that it cannot or must not pay, with the reason', async () => {
    const reason = async (url: string, init: RequestInit = {}, maxPrice?: string) => {
      const response = await bursar.fetch(url, init, { maxPrice })
      expect([response.status, response.headers.has('payment-required'), response.url]).toEqual([
        402,
        true,
        url,
      ])
      return response.headers.get('bursar-problem')
    }
    const [taken, paid] = [sellers.taken(), sellers.paid.length]
    expect(await reason(`${sellers.origin}/echo`, {}, '0.0001')).toBe('max_price')
    const login = { Authorization: `Bearer ${TOKEN}`, Cookie: COOKIE, 'X-Api-Key': API_KEY }
    expect(await reason(`${sellers.origin}/login`, { headers: login })).toBe('policy_denied')
    expect(await reason(`${sellers.origin}/echo`, { headers: { Authorization: 'Basic eA==' } })).toBe(
      'authorization_not_supported',
    )
    const long = { method: 'POST', body: longBytes(4 * MIB + 1) }
    expect(await reason(`${sellers.origin}/echo`, long)).toBe('body_too_long')
    expect(await reason(`${sellers.origin}/echo`, { method: 'HEAD' })).toBe('method_not_supported')
    expect([sellers.taken(), sellers.paid.length]).toEqual([taken, paid])
    const { origin, close } = await serveOther()
    const other = await bursar.fetch(origin)
    expect([other.status, other.headers.get('bursar-problem'), await other.text()]).toEqual([
      402,
      'terms_not_payable',
      'join our club',
    ])
    await close()
  })

  it('serves a repeat from the same purchase while the first had no answer, and then buys anew', async () => {
    const url = `${flaky.origin}/third/fetch`
    const first = await bursar.fetch(url)
    const purchase = first.headers.get('bursar-purchase')
    expect([first.status, first.headers.get('bursar-problem')]).toEqual([502, 'undelivered'])
    expect(await first.json()).toMatchObject({
      code: 'undelivered',
      purchaseId: purchase,
      hint: expect.any(String),
    })
    const second = await bursar.fetch(url, { headers: { traceparent: '00-1' } })
    expect([second.status, second.headers.get('bursar-purchase')]).toEqual([200, purchase])
    const third = await bursar.fetch(url)
    expect(third.status).toBe(200)
    expect(third.headers.get('bursar-purchase')).not.toBe(purchase)
  })

  it('makes one purchase of equal requests at once, and of calls with one key', async () => {
    const url = `${sellers.origin}/long/20`
    const [taken, all] = [sellers.taken(), [1, 2, 3, 4]]
    const together = await Promise.all(all.map(() => bursar.fetch(url)))
    expect(new Set(together.map(({ headers }) => headers.get('bursar-purchase'))).size).toBe(1)
    for (const response of together) expect((await read(response)).equals(longBytes(20))).toBe(true)
    expect(sellers.taken() - taken).toBe(1)
    const mine = { idempotencyKey: 'mine-1', purpose: 'test' }
    const one = await bursar.fetch(url, {}, mine)
    const other = await newClient().fetch(url, {}, mine)
    expect(other.headers.get('bursar-purchase')).toBe(one.headers.get('bursar-purchase'))
    expect(sellers.taken() - taken).toBe(2)
  })

  it('serves a repeat from the same purchase when the answer broke off on its way, or the gateway’s did', async () => {
    let breaks = 2
    const lossy = newClient(async (url, init) => {
      const response = await fetch(url, init)
      if (!String(url).startsWith(gateway.origin) || breaks === 0) return response
      const isAnswer = String(url).endsWith('/response')
      if (breaks === 2) {
        if (isAnswer) throw new Error('too early')
        breaks -= 1
        throw new TypeError('the line broke')
      }
      if (!isAnswer) return response
      breaks -= 1
      const reader = response.body?.getReader()
      let parts = 0
      const body = new ReadableStream<Uint8Array>({
        pull: async (controller) => {
          const part = await reader?.read()
          parts += 1
          if (parts > 2 || part?.value === undefined) return controller.error(new TypeError('broken'))
          controller.enqueue(part.value)
        },
      })
      return new Response(body, { headers: response.headers })
    })
    const [taken, url] = [sellers.taken(), `${sellers.origin}/long/${2 * MIB}`]
    const first = await lossy.fetch(url)
    await expect(first.arrayBuffer()).rejects.toThrow('broken')
    const second = await lossy.fetch(url)
    expect(second.headers.get('bursar-purchase')).toBe(first.headers.get('bursar-purchase'))
    expect((await read(second)).equals(longBytes(2 * MIB))).toBe(true)
    expect(sellers.taken() - taken).toBe(1)
  })
})

/** A server that asks for another kind of payment. */
async function serveOther() {
  const server = createServer((_, response) => response.writeHead(402).end('join our club'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}
