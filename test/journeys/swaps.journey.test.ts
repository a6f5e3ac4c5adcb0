/**
 * Swap quotes from the built gateway over REST and MCP, and with real adapters whose vendors answer, fail and are
 * unreachable.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, sharedGateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

const usual = { fromToken: 'USDC', toToken: 'USDT', fromChain: 'base', toChain: 'arbitrum', amountIn: '100' }
const usdt = { symbol: 'USDT', decimals: 6 }

describe('swaps in the sandbox', () => {
  const origin = sharedGateway()
  let guest: Person
  beforeAll(async () => {
    guest = await newGuest(origin)
  })

  it('have another cheapest provider for another amount or route', async () => {
    const toolFor = async (changes: object) =>
      (await guest.send('POST', '/api/swaps', { ...usual, ...changes })).body.tool
    expect(await toolFor({ amountIn: 20 })).toBe('sandbox-share')
    expect(await toolFor({ amountIn: 1000 })).toBe('sandbox-gas')
    expect(await toolFor({ amountIn: 50_000 })).toBe('sandbox-flat')
    expect(await toolFor({ amountIn: 1000, fromChain: 'ethereum' })).toBe('sandbox-flat')
  })

  it('move nothing', async () => {
    const before = await guest.send('GET', '/api/wallets')
    await guest.send('POST', '/api/swaps', usual)
    expect(await guest.send('GET', '/api/wallets')).toEqual(before)
  })

  it('are quoted over MCP to a key with the scope, and to no other', async () => {
    const call = async (scopes: string[]) => {
      const { body } = await guest.send('POST', '/api/developer/keys', { name: 'Key', scopes })
      const response = await fetch(`${origin}/mcp`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          authorization: `Bearer ${String(body.key)}`,
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'swaps_quote', arguments: usual },
        }),
      })
      return { status: response.status, body: z.looseObject({}).parse(await response.json()) }
    }
    expect(await call(['swaps:quote'])).toMatchObject({
      status: 200,
      body: { result: { structuredContent: { tool: 'sandbox-share', order: 'CHEAPEST' } } },
    })
    expect((await call(['wallets:read'])).body).not.toHaveProperty('result.structuredContent')
  })

  it('list the supported values when one is unknown', async () => {
    expect(await guest.send('POST', '/api/swaps', { ...usual, toToken: undefined })).toMatchObject({
      status: 400,
    })
    expect(await guest.send('POST', '/api/swaps', { ...usual, toToken: 'DOGE' })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', hint: expect.stringContaining('USDT') },
    })
    expect(await guest.send('POST', '/api/swaps', { ...usual, toChain: 'base-sepolia' })).toMatchObject({
      status: 404,
      body: { code: 'pair_not_supported' },
    })
  })
})

describe('swaps with real adapters', () => {
  let gateway: Gateway
  let guest: Person
  let isUp = true
  const vendor = createServer((request, response) => {
    if (!isUp || request.url?.startsWith('/quote/v2')) return void response.writeHead(500).end()
    const estimate = {
      toAmount: '99700000',
      toAmountMin: '99200000',
      toAmountUSD: '99.70',
      executionDuration: 30,
      feeCosts: [{ name: 'Fee', amount: '250000', amountUSD: '0.25', included: true, token: usdt }],
      gasCosts: [{ amount: '1', amountUSD: '0.02', token: { symbol: 'ETH', decimals: 18 } }],
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ estimate }))
  })
  beforeAll(async () => {
    await once(vendor.listen(0, '127.0.0.1'), 'listening')
    // A listening server has an address object with a port.
    const { port } = vendor.address() as AddressInfo
    const url = `http://127.0.0.1:${port}`
    gateway = await startGateway({
      CHAIN: 'simulated',
      SWAP_AGGREGATORS: 'lifi,relay,0x',
      LIFI_URL: url,
      RELAY_URL: url,
      // Nothing listens on this port.
      ZEROX_URL: 'http://127.0.0.1:1',
    })
    guest = await newGuest(gateway.origin)
  })
  afterAll(async () => {
    await gateway?.stop()
    vendor.closeAllConnections()
    vendor.close()
  })

  it('are quoted when some providers are down, and unavailable when all are', async () => {
    expect(await guest.send('POST', '/api/swaps', usual)).toMatchObject({
      status: 200,
      body: {
        tool: 'lifi',
        amountOut: '99.7',
        netOutUsd: '99.68',
        alternatives: [],
        failed: [
          { tool: 'relay', reason: 'unavailable' },
          { tool: '0x', reason: 'unavailable' },
        ],
      },
    })
    isUp = false
    expect(await guest.send('POST', '/api/swaps', usual)).toMatchObject({
      status: 503,
      body: { code: 'no_route' },
    })
  })
})
