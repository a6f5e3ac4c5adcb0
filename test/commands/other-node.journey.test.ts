/** Other versions of Node than the one of the build: those that share its V8, and the first of Node 20. */
import { readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { startGateway } from '../journeys/gateway.ts'
import { requestJson } from '../journeys/people.ts'

it('registers OAuth clients on a Node without URL.parse', async () => {
  const gateway = await startGateway({
    CHAIN: 'simulated',
    NODE_OPTIONS: '--import=data:text/javascript,delete%20URL.parse',
  })
  try {
    const body = {
      client_name: 'An agent',
      redirect_uris: ['http://127.0.0.1:1/callback'],
      token_endpoint_auth_method: 'none',
    }
    expect(await requestJson(gateway.origin, 'POST', '/oauth/register', { body })).toMatchObject({
      status: 201,
      body: { client_id: expect.any(String) },
    })
  } finally {
    await gateway.stop()
  }
})

it('keeps compiled code for the Node that compiled it alone', () => {
  const kept = readdirSync('.build/bin').filter((name) => name.endsWith('.code'))
  expect(kept).toEqual([`main.cjs.${process.version}.code`])
})
