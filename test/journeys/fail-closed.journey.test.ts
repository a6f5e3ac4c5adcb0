/**
 * Unavailable or denying rail controls, and outdated rates: no request gets a challenge and none is charged, regardless
 * of its credential.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { railIds } from '../../src/providers/rail-controls/port.ts'
import { ecbDocument, type Feed, startFeed } from '../contracts/ecb-feed.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { requestJson } from './people.ts'

const query = '/api/x402/fx?from=USD&to=EUR&amount=100'
/** Longer than controls are cached. */
const CACHE_MS = 1_700

/** Answer of the control plane. */
let controlAnswer: { status: number; enabled?: boolean; retryAfter?: string } | 'nothing' = {
  status: 200,
  enabled: true,
}
const controlPlane = createServer((_request, response) => {
  if (controlAnswer === 'nothing') return
  const rails = railIds.map((id) => ({
    id,
    enabled: controlAnswer !== 'nothing' && controlAnswer.enabled,
  }))
  response
    .writeHead(controlAnswer.status, {
      'content-type': 'application/json',
      ...(controlAnswer.retryAfter === undefined ? {} : { 'retry-after': controlAnswer.retryAfter }),
    })
    .end(JSON.stringify({ rails }))
})
let gateway: Gateway
let feed: Feed
let key: string
/** Payment header. Its validity is irrelevant: a closed rail does not verify payments. */
const payment = Buffer.from(
  JSON.stringify({
    x402Version: 1,
    scheme: 'exact',
    network: 'base-sepolia',
    payload: {
      signature: `0x${'ab'.repeat(65)}`,
      authorization: {
        from: `0x${'1'.repeat(40)}`,
        to: `0x${'2'.repeat(40)}`,
        value: '10000',
        validAfter: '0',
        validBefore: '9999999999',
        nonce: `0x${'3'.repeat(64)}`,
      },
    },
  }),
).toString('base64')

beforeAll(async () => {
  await once(controlPlane.listen(0, '127.0.0.1'), 'listening')
  // A listening server has an address object with a port.
  const { port } = controlPlane.address() as AddressInfo
  feed = await startFeed(ecbDocument(new Date().toISOString().slice(0, 10)))
  gateway = await startGateway({
    CHAIN: 'simulated',
    RAIL_CONTROLS_URL: `http://127.0.0.1:${port}/`,
    FX_RATES_URL: feed.url,
    LOG_LEVEL: 'silent',
  })
  const { body } = await requestJson(gateway.origin, 'GET', '/sandbox/credentials')
  key = z.string().parse(body.demoApiKey)
}, 60_000)
beforeEach(async () => {
  controlAnswer = { status: 200, enabled: true }
  await vi.waitFor(async () => expect((await requestQuote({})).status).toBe(402), {
    timeout: 30_000,
    interval: 50,
  })
})
afterAll(async () => {
  await gateway?.stop()
  controlPlane.closeAllConnections()
  controlPlane.close()
  await feed?.close()
})

/** Every kind of caller, with its headers. */
const callers: readonly (readonly [string, () => Record<string, string>])[] = [
  ['an anonymous caller', () => ({})],
  ['an anonymous payer', () => ({ 'X-PAYMENT': payment })],
  ['a key', () => ({ authorization: `Bearer ${key}` })],
  ['a key that pays', () => ({ authorization: `Bearer ${key}`, 'X-PAYMENT': payment })],
]
const requestQuote = (headers: Record<string, string>) => fetch(`${gateway.origin}${query}`, { headers })
const transfer = () =>
  requestJson(gateway.origin, 'POST', '/api/wallets/transfer', {
    headers: { authorization: `Bearer ${key}` },
    body: { destination: '0x000000000000000000000000000000000000dEaD', amount: '1', signature: 'sandbox' },
  })
const statuses = async () => {
  const { status, body } = await requestJson(gateway.origin, 'GET', '/api/rails')
  const { rails } = z.object({ rails: z.array(z.object({ id: z.string(), status: z.string() })) }).parse(body)
  return { status, rails: [...new Set(rails.map((rail) => rail.status))] }
}

describe('while the control plane', () => {
  it.each([
    ['exceeds its plan', { status: 402 }, '5'],
    ['answers 429', { status: 429, retryAfter: '17' }, '17'],
    ['is broken', { status: 500 }, '5'],
    ['does not answer', 'nothing', '5'],
  ] as const)('%s, no caller is challenged and no money moves', async (_what, answer, retryAfter) => {
    controlAnswer = answer
    await pause(CACHE_MS)
    for (const [caller, headers] of callers) {
      const start = performance.now()
      const response = await requestQuote(headers())
      expect(performance.now() - start).toBeLessThan(2_000)
      expect([caller, response.status, response.headers.get('retry-after')]).toEqual([
        caller,
        503,
        retryAfter,
      ])
      expect(response.headers.get('payment-required')).toBeNull()
      expect(await response.json()).toMatchObject({ code: 'controls_unavailable', reason: 'plan_limit' })
    }
    expect(await transfer()).toMatchObject({
      status: 503,
      body: { code: 'controls_unavailable', reason: 'plan_limit' },
    })
    expect(await statuses()).toEqual({ status: 200, rails: ['unknown'] })
  })
})

it('keeps a disabled rail disabled for every credential', async () => {
  controlAnswer = { status: 200, enabled: false }
  await pause(CACHE_MS)
  for (const [caller, headers] of callers) {
    const response = await requestQuote(headers())
    expect([caller, response.status]).toEqual([caller, 403])
    expect(await response.json()).toMatchObject({ code: 'rail_disabled' })
  }
  expect(await transfer()).toMatchObject({ status: 403, body: { code: 'rail_disabled' } })
  expect(await statuses()).toEqual({ status: 200, rails: ['disabled'] })
})

it('sells at live rates while they are fresh, with their source and day', async () => {
  expect((await requestQuote({})).status).toBe(402)
})

describe('with live rates that are too old', () => {
  let stale: Gateway
  let old: Feed
  beforeAll(async () => {
    old = await startFeed(ecbDocument('2024-06-28'))
    stale = await startGateway({ CHAIN: 'simulated', FX_RATES_URL: old.url, LOG_LEVEL: 'silent' })
  }, 60_000)
  afterAll(async () => {
    await stale?.stop()
    await old?.close()
  })

  it.each([
    ['without a payment', {}],
    ['with a payment', { 'X-PAYMENT': payment }],
  ])('no caller %s is challenged or charged', async (_who, headers) => {
    const response = await fetch(`${stale.origin}${query}`, { headers })
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '30'])
    expect(await response.json()).toMatchObject({ code: 'rates_unavailable' })
  })
})
