/** Sellers in the tests' own process, over the gateway's chain: stock servers that nobody modified. */
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { paymentMiddleware, x402ResourceServer } from '@x402/hono'
import { Hono } from 'hono'
import { evm, Mppx } from 'mppx/server'
import { parseAbi } from 'viem'
import { paymentMiddleware as paymentMiddlewareV1 } from 'x402-hono'
import { connectRpcChain } from '../../../src/chain/rpc.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import { listen } from '../selling/x402/scene.ts'
import { startFacilitator } from '../selling/x402/world.ts'

export const SELLER = '0x14dC79964da2C08b23698B3D3cc7Ca32193d9955'
export const PRICE = 1_000n

export interface Sellers {
  readonly origin: string
  readonly chain: Chain
  /** Times that a path has delivered. */
  readonly delivered: () => number
  close(): Promise<void>
}

/** Serves `/v2/report` by @x402/hono and `/v1/report` by x402-hono, each for 0.001 USDC. */
export async function startStockSellers(rpcUrl: string): Promise<Sellers> {
  const chain = await connectRpcChain({
    name: 'base-sepolia',
    url: rpcUrl,
    log: silentLog,
    clock: () => new Date(),
  })
  const facilitator = registerExactEvmScheme(new x402Facilitator(), {
    signer: toFacilitatorEvmSigner(chain.signer),
    networks: 'eip155:84532',
  })
  const remote = await startFacilitator(chain)
  let delivered = 0
  const app = new Hono()
  const accepts = {
    scheme: 'exact',
    network: 'eip155:84532',
    price: '$0.001',
    payTo: SELLER,
  } as const
  const server = new x402ResourceServer({
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported() as never,
  }).register('eip155:84532', new ExactEvmScheme())
  app.use(
    paymentMiddleware(
      { 'GET /v2/report': { accepts, description: 'A report', mimeType: 'application/json' } },
      server,
    ),
  )
  app.use(
    '/v1/report',
    paymentMiddlewareV1(
      SELLER,
      { 'GET /v1/report': { price: '$0.001', network: 'base-sepolia' } },
      { url: remote.url as `${string}://${string}` },
    ),
  )
  for (const path of ['/v1/report', '/v2/report'])
    app.get(path, (c) => {
      delivered += 1
      return c.json({ report: 'sunny' })
    })
  const money = { amount: '0.001', currency: chain.tokens.USDC, chainId: 84532, decimals: 6 } as const
  const mpp = Mppx.create({
    realm: 'seller.test',
    secretKey: 'x'.repeat(40),
    methods: [
      evm.charge({
        ...money,
        authorization: { name: 'USDC', version: '2' },
        recipient: SELLER,
        settle: async ({ payload }) => {
          const { from, to, value, validAfter, validBefore, nonce, signature } = payload
          const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature]
          const hash = await chain.signer.writeContract({
            address: chain.tokens.USDC,
            abi: parseAbi([
              'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
            ]),
            functionName: 'transferWithAuthorization',
            args,
          })
          await chain.signer.waitForTransactionReceipt({ hash })
          return { reference: hash }
        },
      }),
    ],
  })
  // A fixed end gives every challenge one id, hence one nonce.
  const end = new Date(Date.now() + 240_000).toISOString()
  for (const [path, more] of [
    ['report', {}],
    ['repeats', { expires: end }],
  ] as const)
    app.get(`/mpp/${path}`, async (c) => {
      const charged = await mpp.charge({ amount: '0.001', ...more })(c.req.raw)
      if (charged.status !== 402) return charged.withReceipt(Response.json({ report: 'sunny' }))
      const { challenge } = charged
      // The same server also offers x402, which a buyer prefers.
      const headers = new Headers(challenge.headers)
      headers.delete('payment-required')
      return new Response(null, { status: 402, headers })
    })
  app.get('/free', (c) => c.text('nothing to pay'))
  app.get('/broken', (c) => c.text('no', 500))
  app.get('/moved', (c) => c.redirect('http://169.254.169.254/latest/meta-data'))
  const { server: http, port } = await listen(app)
  return {
    origin: `http://127.0.0.1:${port}`,
    chain,
    delivered: () => delivered,
    close: async () => {
      if ('closeAllConnections' in http) http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
      await remote.close()
      await chain.close()
    },
  }
}
