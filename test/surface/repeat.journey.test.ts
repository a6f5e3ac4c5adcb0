/** A repeated call after a change of the world: it gets its first answer, and a new call sees the change. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { postTransfer } from '../journeys/post-transfer.ts'

/** Longer than rail controls are cached. */
const CACHE_MS = 2_500

let isEnabled = true
const controlPlane = createServer((_request, response) => {
  const rails = ['wallet-transfer', 'x402-fx'].map((id) => ({
    id,
    enabled: isEnabled,
    reason: 'maintenance',
  }))
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ rails }))
})
let gateway: Gateway
let key: string

beforeAll(async () => {
  await new Promise<void>((resolve) => controlPlane.listen(0, '127.0.0.1', resolve))
  // A listening server has an address object with a port.
  const { port } = controlPlane.address() as AddressInfo
  gateway = await startGateway({ CHAIN: 'simulated', RAIL_CONTROLS_URL: `http://127.0.0.1:${port}/` })
  const credentials = await (await fetch(`${gateway.origin}/sandbox/credentials`)).json()
  key = z.object({ demoApiKey: z.string() }).parse(credentials).demoApiKey
})
afterAll(async () => {
  await gateway?.stop()
  controlPlane.close()
})

const transfer = (idempotencyKey: string) =>
  postTransfer(gateway.origin, key, { amount: '1', idempotencyKey })

it('gets its first answer even on a disabled rail, where a new call is refused', async () => {
  const first = await transfer('before')
  expect(first.status).toBe(200)
  isEnabled = false
  await pause(CACHE_MS)
  const again = await transfer('before')
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
  expect(await again.json()).toEqual(await first.json())
  const fresh = await transfer('after')
  expect([fresh.status, await fresh.json()]).toMatchObject([403, { code: 'rail_disabled' }])
  const sold = await fetch(`${gateway.origin}/api/x402/fx?from=USD&to=EUR&amount=1`)
  expect([sold.status, await sold.json()]).toMatchObject([403, { code: 'rail_disabled' }])
})
