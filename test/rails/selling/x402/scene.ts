/** A shop with one thing for sale, on a real server and a real chain, and customers with real clients. */
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment as wrapFetchV2 } from '@x402/fetch'
import { Hono } from 'hono'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { wrapFetchWithPayment as wrapFetchV1 } from 'x402-fetch'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { newId } from '../../../../src/core/base/ids.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import { type Chains, createChains } from '../../../../src/providers/chain/chains.ts'
import type { Chain } from '../../../../src/providers/chain/port.ts'
import { noMetrics } from '../../../../src/providers/metrics/port.ts'
import { noTracing } from '../../../../src/providers/tracing/port.ts'
import { createPaywall, type PaywallParts } from '../../../../src/rails/selling/x402/paywall.ts'
import { problemResponse } from '../../../../src/server/http/problem.ts'
import { PAYMENT_HEADERS, readSentPayment, saleResponse } from '../../../../src/server/http/x402.ts'
import { openPglite } from '../../../../src/storage/pglite.ts'

export const path = '/api/x402/fx'
/** Differs from the server's address: the resource URL must come from the configuration. */
export const origin = 'https://gateway.test'
export const payTo = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
/** Seals the offers of every shop here. */
export const dataKey = Buffer.alloc(32, 7)
const price = { asset: 'USDC', units: 10_000n } as const

/** An open shop. @property sold number of metered sales: one per settled payment. */
export interface Shop {
  readonly url: string
  readonly sold: () => Promise<number>
  readonly logged: readonly unknown[]
  deliver: () => Promise<Record<string, unknown>>
  close(): Promise<void>
}

export async function openShop(
  chain: Chain | Chains,
  parts: Partial<PaywallParts> & { readonly chain?: Chain } = {},
): Promise<Shop> {
  const logged: unknown[] = []
  const log = { ...silentLog, info: (facts: object, message: string) => void logged.push({ facts, message }) }
  const own = parts.database === undefined ? await freshDatabase() : undefined
  const database = parts.database ?? own
  if (database === undefined) throw new Error('unreachable')
  const paywall = await createPaywall({
    operation: 'x402.fx',
    pollPath: '/api/x402/payments/{id}',
    example: { from: 'USD', to: 'EUR', amount: '100' },
    database,
    dataKey,
    chains: 'all' in chain ? chain : createChains([parts.chain ?? chain]).chains,
    payTo,
    price,
    origin,
    path,
    description: 'An FX quote',
    facilitatorUrl: null,
    facilitatorKey: null,
    clock: systemClock,
    newId,
    log,
    metrics: noMetrics,
    tracing: noTracing,
    ...parts,
  })
  const app = new Hono()
  app.get(path, async (c) => {
    const input = Object.fromEntries(Object.entries(c.req.queries()).map(([name, all]) => [name, all.join()]))
    const deliver = () => shop.deliver()
    const key = c.req.header('idempotency-key')
    const payment = readSentPayment(c)
    const sale = { route: `GET ${path}`, input, deliver, payment, paymentPlace: PAYMENT_HEADERS }
    if (key === undefined) return saleResponse(await paywall.sell(sale))
    const purchase = { principal: 'key_1', key, fingerprint: JSON.stringify(input) }
    const bought = payment === null ? await paywall.recall(purchase) : null
    return saleResponse(bought ?? (await paywall.sell({ ...sale, purchase })))
  })
  app.onError((error) => problemResponse(error, { requestId: 'req_test', instance: path, log: silentLog }))
  const { server, port } = await listen(app)
  const shop: Shop = {
    url: `http://127.0.0.1:${port}${path}?from=USD&to=EUR&amount=100`,
    sold: async () => (await database.kysely.selectFrom('metering').select('payment_id').execute()).length,
    logged,
    deliver: async () => ({ quoteId: 'quote_1', result: '92.5' }),
    close: async () => {
      await new Promise((resolve) => server.close(resolve))
      await paywall.close()
      await own?.close()
    },
  }
  return shop
}

async function freshDatabase() {
  const database = await openPglite({ directory: 'memory', now: systemClock, log: silentLog })
  await database.migrate()
  return database
}

/** Serves an app on an ephemeral port of 127.0.0.1. */
export function listen(app: {
  fetch: Parameters<typeof serve>[0]['fetch']
}): Promise<{ server: ReturnType<typeof serve>; port: number }> {
  return new Promise((resolve) => {
    const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }: AddressInfo) =>
      resolve({ server, port }),
    )
  })
}

export interface Customer {
  readonly address: `0x${string}`
  /** An unmodified x402-fetch. */
  readonly v1: typeof fetch
  /** An unmodified @x402/fetch. */
  readonly v2: typeof fetch
}

/** A customer with this much USDC. @param through the fetch that their clients use. */
export async function newCustomer(
  chain: Chain,
  units: bigint,
  through: typeof fetch = fetch,
): Promise<Customer> {
  const account = privateKeyToAccount(generatePrivateKey())
  if (units > 0n) await chain.mint([{ token: 'USDC', to: account.address, units }])
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(account))
  return {
    address: account.address,
    v1: wrapFetchV1(through, account),
    v2: wrapFetchV2(through, client),
  }
}

/** A fetch that changes the payments that pass through it. */
export function tamperingFetch(change: (payment: unknown) => unknown): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init)
    for (const header of ['X-PAYMENT', 'PAYMENT-SIGNATURE']) {
      const encoded = request.headers.get(header)
      if (encoded !== null) request.headers.set(header, toBase64(change(parseJsonText(encoded))))
    }
    return fetch(request)
  }
}

/** A fetch that changes the challenges that pass through it, so that a client signs other terms. */
export function misleadingFetch(change: (text: string) => string): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init)
    const isPaid = request.headers.has('X-PAYMENT') || request.headers.has('PAYMENT-SIGNATURE')
    const response = await fetch(request)
    if (response.status !== 402 || isPaid) return response
    const headers = new Headers(response.headers)
    const required = headers.get('PAYMENT-REQUIRED')
    if (required !== null) headers.set('PAYMENT-REQUIRED', toBase64(JSON.parse(change(toText(required)))))
    return new Response(change(await response.text()), { status: 402, headers })
  }
}

/** A fetch that records payments. @property payment the last one, as a header. */
export function spyingFetch(): { fetch: typeof fetch; payment: () => Record<string, string> } {
  let payment: Record<string, string> = {}
  return {
    payment: () => payment,
    fetch: async (input, init) => {
      const request = new Request(input, init)
      for (const header of ['X-PAYMENT', 'PAYMENT-SIGNATURE']) {
        const encoded = request.headers.get(header)
        if (encoded !== null) payment = { [header]: encoded }
      }
      return fetch(request)
    },
  }
}

/** USDC on Base: the clients pay only in tokens of their built-in list. */
export const baseUsdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'

export const toText = (encoded: string): string => Buffer.from(encoded, 'base64').toString('utf8')
export const parseJsonText = (encoded: string): unknown => JSON.parse(toText(encoded))
export const toBase64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')
