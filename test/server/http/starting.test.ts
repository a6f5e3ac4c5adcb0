/** What a gateway answers that is not up yet. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { answerStarting } from '../../../src/server/http/starting.ts'

const server = createServer((request, response) => answerStarting(request, response, 'req_1'))
let origin: string
beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A listening server has an address object with a port.
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

it('says of the quote that its rail cannot be read, and of everything else that it is unavailable', async () => {
  const answer = async (path: string) => {
    const response = await fetch(`${origin}${path}`)
    const { code, reason, type, instance } = JSON.parse(await response.text())
    return [response.status, response.headers.get('retry-after'), code, reason, type, instance]
  }
  expect(await answer('/api/x402/fx?from=USD&to=EUR&amount=1')).toEqual([
    503,
    '1',
    'controls_unavailable',
    'plan_limit',
    '/errors/controls_unavailable',
    '/api/x402/fx',
  ])
  expect(await answer('/api/wallets')).toEqual([
    503,
    '1',
    'provider_unavailable',
    undefined,
    '/errors/provider_unavailable',
    '/api/wallets',
  ])
})
