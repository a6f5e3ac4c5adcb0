/** A quote that an agent buys over MCP on a slow chain: nothing is delivered before it is paid. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { httpClient, parseProblem } from '../mcp/scene.ts'
import { stableTokens, tokenBalance } from './keyed-owners.ts'
import { startOnOwnNode } from './own-node.ts'
import { requestJson } from './people.ts'

const own = startOnOwnNode()

it('delivers a quote over MCP once the chain has confirmed its payment, and never before', async () => {
  const rpc = (method: string, params: unknown[] = []) =>
    fetch(own().node.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
  const { body } = await requestJson(own().gateway.origin, 'GET', '/sandbox/credentials')
  const { demoApiKey } = z.looseObject({ demoApiKey: z.string() }).parse(body)
  const client = await httpClient({ gateway: own().gateway, apiKey: demoApiKey })
  const buy = (idempotencyKey: string) =>
    client.callTool({
      name: 'x402_fx',
      arguments: { from: 'USD', to: 'EUR', amount: '100', idempotency_key: idempotencyKey },
    })
  const readReceived = () => tokenBalance(own().node.url, 'USDC', stableTokens.payTo)
  expect((await buy('deploys')).isError).not.toBe(true)
  const before = await readReceived()
  await rpc('evm_setAutomine', [false])
  for (let times = 0; times < 2; times += 1)
    expect(parseProblem(await buy('one'))).toMatchObject({ code: 'settlement_pending' })
  expect(await readReceived()).toBe(before)
  await rpc('evm_mine')
  await rpc('evm_setAutomine', [true])
  await expect.poll(async () => (await buy('one')).isError, { timeout: 30_000, interval: 500 }).not.toBe(true)
  expect(await readReceived()).toBe(before + 10_000n)
  await client.close()
}, 60_000)
