/** Sellers of x402 v2 that take the payment, deliver nothing, and refund as a test wants: honestly, twice, too much, to others, never. */
import { Hono } from 'hono'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { z } from 'zod'
import { randomToken } from '../../../src/core/base/ids.ts'
import type { Address, Chain } from '../../../src/providers/chain/port.ts'
import { executePayment, signPayment } from '../../../src/rails/buying/authorization.ts'
import type { PayableAsset } from '../../../src/rails/buying/terms.ts'
import { listen } from '../selling/x402/scene.ts'
import { connectTaker } from './flaky-sellers.ts'

/** 0.001 USDC. */
export const PRICE = 1_000n

/** A paid request. @property payer the address that paid. @property take uses the payment. */
export interface PaidRequest {
  readonly payer: Address
  take(): Promise<boolean>
}

export interface RefundingSeller {
  readonly origin: string
  readonly payTo: Address
  /** Purchases whose refund was asked for, one for each request. */
  readonly requests: readonly string[]
  /** Address of the payer of the latest request. */
  payer(): Address
  /** Sends money from the address that was paid, by default to the payer. */
  send(units: bigint, to?: Address, asset?: PayableAsset): Promise<void>
  close(): Promise<void>
}

const paidBy = z.looseObject({
  payload: z.looseObject({
    authorization: z.looseObject({ from: z.templateLiteral(['0x', z.string()]) }),
  }),
})

/**
 * Serves `/sold`.
 * @param onPaid sees a paid request; takes the payment by default. It is delivered if this returns true.
 * @param onAsked sees a request for a refund, which is always answered with 202.
 */
export async function startRefundingSeller(
  { rpcUrl, chain }: { rpcUrl: string; chain: Chain },
  {
    onPaid = async ({ take }) => {
      await take()
    },
    onAsked = async () => {},
  }: {
    readonly onPaid?: (request: PaidRequest, seller: RefundingSeller) => Promise<unknown>
    readonly onAsked?: (seller: RefundingSeller) => Promise<unknown>
  } = {},
): Promise<RefundingSeller> {
  const account = privateKeyToAccount(generatePrivateKey())
  const taker = await connectTaker(rpcUrl)
  // For refunds beyond what it takes.
  await chain.mint([
    { token: 'USDC', to: account.address, units: 10n * PRICE },
    { token: 'EURC', to: account.address, units: 10n * PRICE },
  ])
  const requests: string[] = []
  let payer: Address | null = null
  const requirePayer = () => {
    if (payer === null) throw new Error('nobody has paid')
    return payer
  }
  const app = new Hono()
  app.get('/sold', async (c) => {
    const header = c.req.header('payment-signature')
    const terms = { payTo: account.address, amount: PRICE.toString(), refundUrl: '/refund' }
    if (header === undefined)
      return new Response(null, {
        status: 402,
        headers: { 'payment-required': taker.challenge(c.req.url, terms) },
      })
    const { from } = paidBy.parse(JSON.parse(Buffer.from(header, 'base64').toString())).payload.authorization
    payer = from
    const isSold = await onPaid({ payer: from, take: () => taker.take(header) }, seller)
    return isSold === true ? c.json({ report: 'sunny' }) : c.text('', 500)
  })
  app.post('/refund', async (c) => {
    requests.push(z.looseObject({ purchase: z.string() }).parse(await c.req.json()).purchase)
    await onAsked(seller)
    return c.body(null, 202)
  })
  const { server, port } = await listen(app)
  const seller: RefundingSeller = {
    origin: `http://127.0.0.1:${port}`,
    payTo: account.address,
    requests,
    payer: requirePayer,
    send: async (units, to = requirePayer(), asset = 'USDC') => {
      const message = {
        ...{ from: account.address, to, value: units, validAfter: 0n },
        validBefore: BigInt(Math.floor(Date.now() / 1_000) + 300),
        nonce: `0x${Buffer.from(randomToken(32), 'base64url').toString('hex').padEnd(64, '0')}`,
      } as const
      const signature = await signPayment(chain, account, { asset, message })
      await executePayment(chain, { asset, message, signature })
    },
    close: async () => {
      if ('closeAllConnections' in server) server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await taker.close()
    },
  }
  return seller
}
