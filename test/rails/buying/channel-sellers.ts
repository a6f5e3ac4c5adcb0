/** Sellers by the x402 scheme `batch-settlement`, over the gateway's chain: stock servers, and what honest ones never do. */
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { BatchSettlementEvmScheme as Facilitates } from '@x402/evm/batch-settlement/facilitator'
import { BatchSettlementEvmScheme as Sells } from '@x402/evm/batch-settlement/server'
import { paymentMiddleware, x402ResourceServer } from '@x402/hono'
import { Hono } from 'hono'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { connectRpcChain } from '../../../src/chain/rpc.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Address, Chain } from '../../../src/providers/chain/port.ts'
import { listen } from '../selling/x402/scene.ts'

/** 0.0005 USDC. */
export const PRICE = 500n

const NETWORK = 'eip155:84532'

export interface ChannelSeller {
  readonly origin: string
  readonly payTo: Address
  /** Paid requests that reached the handler. */
  served(): number
  /** Time in which this server worked on requests with this `x-call`. */
  handledMs(name: string): number
  /** Requests without a payment. */
  asked(): number
  /** Changes the price, such as `$0.001`. */
  setPrice(price: string): void
  /** Loses the answers of the next requests that succeed. */
  lose(count: number): void
  /** Answers the next paid requests with a failure, without looking at them. */
  refuse(count: number): void
  /** Claims what was charged of all channels, and takes it. */
  claim(): Promise<void>
  /** What was charged by channel, in smallest units. */
  charged(): Promise<ReadonlyMap<string, bigint>>
  close(): Promise<void>
}

/** Connects to the node as sellers do. */
export function connectSellers(rpcUrl: string): Promise<Chain> {
  const clock = () => new Date()
  return connectRpcChain({ name: 'base-sepolia', url: rpcUrl, log: silentLog, clock })
}

/** Serves `/call/{anything}` by @x402/hono. @param withdrawDelay seconds. @param delayMs how long a call takes. */
export async function startChannelSeller(
  chain: Chain,
  {
    withdrawDelay = 900,
    price = '$0.0005',
    delayMs = 0,
    minDeposit = '5000',
  }: { withdrawDelay?: number; price?: string; delayMs?: number; minDeposit?: string } = {},
): Promise<ChannelSeller> {
  const payTo = privateKeyToAccount(generatePrivateKey()).address
  const selling = new Sells(payTo, {
    receiverAuthorizerSigner: privateKeyToAccount(generatePrivateKey()),
    withdrawDelay,
  })
  const facilitator = new x402Facilitator().register(
    NETWORK,
    new Facilitates(toFacilitatorEvmSigner(chain.signer)),
  )
  const local = {
    verify: (payload: never, requirements: never) => facilitator.verify(payload, requirements),
    settle: (payload: never, requirements: never) => facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported() as never,
  }
  const server = new x402ResourceServer(local as never).register(NETWORK, selling)
  const manager = selling.createChannelManager(local as never, NETWORK, chain.tokens.USDC)
  let losing = 0
  let refusing = 0
  let count = 0
  let asked = 0
  let now = price
  const app = new Hono()
  const handled = new Map<string, number>()
  app.use(async (c, next) => {
    const start = performance.now()
    await next()
    const name = c.req.header('x-call') ?? ''
    handled.set(name, (handled.get(name) ?? 0) + performance.now() - start)
  })
  app.use(async (c, next) => {
    if (c.req.header('payment-signature') === undefined) asked += 1
    if (refusing > 0 && c.req.header('payment-signature') !== undefined) {
      refusing -= 1
      return c.text('', 503)
    }
    await next()
    if (losing === 0 || c.res.status !== 200) return
    losing -= 1
    c.res = new Response('', { status: 504 })
  })
  const accepts = {
    scheme: 'batch-settlement',
    network: NETWORK,
    price: () => now,
    payTo,
    extra: { minDeposit },
  } as const
  app.use('/call/*', paymentMiddleware({ 'GET /call/*': { accepts, description: 'A call' } }, server))
  app.get('/call/:name', async (c) => {
    count += 1
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
    return c.json({ name: c.req.param('name') })
  })
  const { server: http, port } = await listen(app)
  return {
    origin: `http://127.0.0.1:${port}`,
    payTo,
    served: () => count,
    asked: () => asked,
    setPrice: (given) => {
      now = given
    },
    handledMs: (name) => handled.get(name) ?? 0,
    lose: (more) => {
      losing = more
    },
    refuse: (more) => {
      refusing = more
    },
    claim: async () => {
      await manager.claim()
      await manager.settle()
    },
    charged: async () =>
      new Map(
        (await selling.getStorage().list()).map(
          (channel) => [channel.channelId, BigInt(channel.chargedCumulativeAmount)] as const,
        ),
      ),
    close: async () => {
      if ('closeAllConnections' in http) http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}
