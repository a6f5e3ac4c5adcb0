/**
 * The stock middlewares of both generations, mounted as in their examples, over the same chain, in a process of their
 * own.
 */
import { serve } from '@hono/node-server'
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { paymentMiddleware as paymentMiddlewareV2, x402ResourceServer } from '@x402/hono'
import { Hono } from 'hono'
import { paymentMiddleware as paymentMiddlewareV1 } from 'x402-hono'
import { connectRpcChain } from '../../src/chain/rpc.ts'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'

const payTo = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const chain = await connectRpcChain({
  name: 'base-sepolia',
  url: process.env.CHAIN_RPC_URL ?? '',
  clock: systemClock,
  log: silentLog,
})
const facilitator = registerExactEvmScheme(new x402Facilitator(), {
  signer: toFacilitatorEvmSigner(chain.signer),
  networks: 'eip155:84532',
})
const inProcess = {
  verify: facilitator.verify.bind(facilitator),
  settle: facilitator.settle.bind(facilitator),
  getSupported: async () => ({
    kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:84532' as const }],
    extensions: [],
    signers: {},
  }),
}

/** Version 1 needs a facilitator over HTTP: on loopback, the nearest possible. */
const loopback = new Hono()
loopback.post('/verify', async (c) => {
  const { paymentPayload, paymentRequirements } = await c.req.json()
  return c.json(await facilitator.verify(paymentPayload, paymentRequirements))
})
loopback.post('/settle', async (c) => {
  const { paymentPayload, paymentRequirements } = await c.req.json()
  return c.json(await facilitator.settle(paymentPayload, paymentRequirements))
})
const listening = serve({ fetch: loopback.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  const app = new Hono()
  app.use(
    paymentMiddlewareV1(
      payTo,
      { 'GET /v1/fx': { price: '$0.01', network: 'base-sepolia', config: { description: 'FX quote' } } },
      { url: `http://127.0.0.1:${port}` },
    ),
  )
  app.use(
    paymentMiddlewareV2(
      {
        'GET /v2/fx': {
          accepts: { scheme: 'exact', network: 'eip155:84532', price: '$0.01', payTo },
          description: 'FX quote',
          mimeType: 'application/json',
        },
      },
      new x402ResourceServer(inProcess).register('eip155:84532', new ExactEvmScheme()),
    ),
  )
  const quote = { quoteId: 'quote_1', from: 'USD', to: 'EUR', amount: '100', rate: '0.93', result: '93' }
  app.get('/v1/fx', (c) => c.json(quote))
  app.get('/v2/fx', (c) => c.json(quote))
  serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, (stock) => {
    process.stdout.write(`is up at http://127.0.0.1:${stock.port}\n`)
  })
})
process.once('SIGTERM', () => {
  listening.close()
  process.exit(0)
})
