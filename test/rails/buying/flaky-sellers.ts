/** Sellers of x402 v2 that fail in the ways that cost other buyers money twice. */
import { setTimeout as pause } from 'node:timers/promises'
import { Hono } from 'hono'
import { parseAbi } from 'viem'
import { z } from 'zod'
import { sandboxTokens } from '../../../src/chain/rpc/networks.ts'
import { connectRpcChain } from '../../../src/chain/rpc.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { ChainName } from '../../../src/core/money/chains.ts'
import { listen } from '../selling/x402/scene.ts'

export const SELLER = '0x976EA74026E726554dB657fA54763abd0C3a0aa9'
export const OTHER = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65'
/** What they sell. */
export const SOLD = 'tomorrow it rains'
const PRICE = '1000'

const hex = z.templateLiteral(['0x', z.string()])
const payment = z.looseObject({
  payload: z.looseObject({
    signature: hex,
    authorization: z.looseObject({
      from: hex,
      to: hex,
      value: z.string(),
      validAfter: z.string(),
      validBefore: z.string(),
      nonce: hex,
    }),
  }),
})

const abi = parseAbi([
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
])

/** Terms of a seller. */
export interface SellerTerms {
  readonly payTo: string
  readonly amount: string
  /** How long a payment may be valid; 60 by default. */
  readonly seconds?: number
  /** Path at which it takes requests for refunds. */
  readonly refundUrl?: string
}

/** A moment of a request: it arrives unpaid, it arrives paid, its payment is settled. */
export type Moment = 'asked' | 'paid' | 'settled'

export type Fault = () => Promise<unknown>
export const GO_ON = 'go on'

export interface FlakySellers {
  readonly origin: string
  /** Runs `fault` once, at a moment of `/honest/{run}`, and hangs up unless it says to go on. */
  interrupt(run: string, moment: Moment, fault: Fault): void
  /** Sets the terms of `/{kind}/{run}` by its run. */
  setTerms(run: string, terms: SellerTerms): void
  close(): Promise<void>
}

/** Takes payments as a facilitator does. */
export async function connectTaker(rpcUrl: string, name: ChainName = 'base-sepolia') {
  const chain = await connectRpcChain({
    name,
    url: rpcUrl,
    log: silentLog,
    clock: () => new Date(),
  })
  const asset = chain.tokens.USDC
  const take = async (header: string) => {
    const { payload } = payment.parse(JSON.parse(Buffer.from(header, 'base64').toString()))
    const { from, to, value, validAfter, validBefore, nonce } = payload.authorization
    const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, payload.signature]
    try {
      const hash = await chain.signer.writeContract({
        address: asset,
        abi,
        functionName: 'transferWithAuthorization',
        args,
      })
      return (await chain.signer.waitForTransactionReceipt({ hash })).status === 'success'
    } catch {
      return false
    }
  }
  /** The header `payment-required` of terms. */
  const challenge = (url: string, { payTo, amount, seconds = 60, refundUrl }: SellerTerms) => {
    const accepts = [
      {
        scheme: 'exact',
        network: `eip155:${chain.id}`,
        asset,
        payTo,
        amount,
        maxTimeoutSeconds: seconds,
        extra: { name: 'USDC', version: '2', refundUrl },
      },
    ]
    const text = JSON.stringify({ x402Version: 2, error: '', resource: { url }, accepts })
    return Buffer.from(text).toString('base64')
  }
  return { take, challenge, close: () => chain.close() }
}

/** Serves `/{kind}/{run}`: every run has its own count of paid requests. */
export async function startFlakySellers(rpcUrl: string, name?: ChainName): Promise<FlakySellers> {
  const { take, close, ...taker } = await connectTaker(rpcUrl, name)
  const requests = new Map<string, number>()
  const paid = new Set<string>()
  const app = new Hono<{ Bindings: { incoming: { socket: { destroy(): void } } } }>()
  const named = new Map<string, SellerTerms>()
  const faults = new Map<string, Fault>()
  const isInterrupted = async (run: string, moment: Moment) => {
    const fault = faults.get(`${run} ${moment}`)
    faults.delete(`${run} ${moment}`)
    return fault !== undefined && (await fault()) !== GO_ON
  }
  const challenge = (url: string, terms: SellerTerms) =>
    new Response(null, { status: 402, headers: { 'payment-required': taker.challenge(url, terms) } })

  app.get('/:kind/:run', async (c) => {
    const { kind, run } = c.req.param()
    const header = c.req.header('payment-signature')
    const terms = named.get(run) ?? { payTo: SELLER, amount: PRICE }
    const hangUp = () => {
      c.env.incoming.socket.destroy()
      return c.body(null)
    }
    if (header === undefined)
      return (await isInterrupted(run, 'asked')) ? hangUp() : challenge(c.req.url, terms)
    const count = (requests.get(run) ?? 0) + 1
    requests.set(run, count)
    if (await isInterrupted(run, 'paid')) return hangUp()
    const settle = async () => {
      if (await take(header)) paid.add(run)
    }
    // Once paid, it is delivered again, as honest sellers do.
    const report = () =>
      paid.has(run) ? c.json({ report: run, content: SOLD }) : challenge(c.req.url, terms)
    switch (kind) {
      case 'huge':
        await settle()
        c.header('x-huge', 'x'.repeat(100_000))
        return report()
      case '504-once':
        await settle()
        return count === 1 ? c.text('', 504) : report()
      case '504-after':
        await settle()
        return c.text('', 504)
      case 'drop-after':
        await settle()
        return hangUp()
      case 'drop-before':
        if (count === 1) return hangUp()
        await settle()
        return report()
      case 'late':
        void pause(1_000).then(() => settle())
        return c.text('', 504)
      case 'third':
        // Delivers in the caller's second call, for the same payment.
        await settle()
        return count <= 3 ? c.text('', 504) : report()
      // Three facilitators that fail: before, during and after settling. Stock sellers then ask for a payment again.
      case 'unsettled':
        if (count <= 2) return challenge(c.req.url, terms)
        await settle()
        return report()
      case 'unaware':
        if (count === 1) void settle()
        return count === 1 ? challenge(c.req.url, terms) : report()
      case 'forgotten':
        await settle()
        return challenge(c.req.url, terms)
      case 'changes':
        return challenge(c.req.url, { ...terms, payTo: OTHER })
      default:
        await settle()
        return (await isInterrupted(run, 'settled')) ? hangUp() : report()
    }
  })
  const { server, port } = await listen(app)
  return {
    origin: `http://127.0.0.1:${port}`,
    setTerms: (run, terms) => void named.set(run, terms),
    interrupt: (run, moment, fault) => void faults.set(`${run} ${moment}`, fault),
    close: async () => {
      if ('closeAllConnections' in server) server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await close()
    },
  }
}

/** A seller that only asks for 0.05 USDC of the sandbox chain. */
export async function startChallenger(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const app = new Hono()
  app.get('/', (c) => {
    const accepts = [
      {
        scheme: 'exact',
        network: 'eip155:84532',
        asset: sandboxTokens.USDC.address,
        payTo: SELLER,
        amount: '50000',
        maxTimeoutSeconds: 60,
      },
    ]
    const text = JSON.stringify({ x402Version: 2, accepts })
    c.header('payment-required', Buffer.from(text).toString('base64'))
    return c.body(null, 402)
  })
  const { server, port } = await listen(app)
  return {
    url: `http://127.0.0.1:${port}/`,
    close: async () => {
      if ('closeAllConnections' in server) server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
