/** Sellers by the x402 scheme `upto`, over the gateway's chain: a stock server, and one that does what honest ones never do. */
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner, x402UptoPermit2ProxyABI, x402UptoPermit2ProxyAddress } from '@x402/evm'
import { UptoEvmScheme as Facilitates } from '@x402/evm/upto/facilitator'
import { UptoEvmScheme } from '@x402/evm/upto/server'
import { paymentMiddleware, setSettlementOverrides, x402ResourceServer } from '@x402/hono'
import { Hono } from 'hono'
import { z } from 'zod'
import { connectRpcChain } from '../../../src/chain/rpc.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Chain, Hex } from '../../../src/providers/chain/port.ts'
import { listen } from '../selling/x402/scene.ts'

export const UPTO_SELLER = '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f'
/** 0.005 USDC. */
export const MAXIMUM = 5_000n

const hex = z.templateLiteral(['0x', z.string()])
const payment = z.looseObject({
  payload: z.looseObject({
    signature: hex,
    permit2Authorization: z.looseObject({
      from: hex,
      permitted: z.looseObject({ token: hex, amount: z.string() }),
      nonce: z.string(),
      deadline: z.string(),
      witness: z.looseObject({ to: hex, facilitator: hex, validAfter: z.string() }),
    }),
  }),
})

export interface UptoSellers {
  readonly origin: string
  readonly chain: Chain
  /** Address that paid a run of `/own/{kind}/{run}`. */
  readonly payerOf: (run: string) => Hex | undefined
  /** Settles the payment of a run for an amount. @returns whether the chain took it. */
  settle(run: string, units: bigint): Promise<boolean>
  /** Runs before a paid request of a run is answered. */
  interrupt(run: string, work: () => Promise<unknown>): void
  close(): Promise<void>
}

/**
 * Serves `/stock?used={units}` by @x402/hono, and `/own/{kind}/{run}`:
 * `says-less` settles the maximum and says 1; `free` settles nothing and says so; `free-lie` says so and settles at once;
 * `silent` delivers and settles nothing; `412-once` asks for the permission once; `412` always; `never` never answers well.
 */
export async function startUptoSellers(rpcUrl: string): Promise<UptoSellers> {
  const chain = await connectRpcChain({
    name: 'base-sepolia',
    url: rpcUrl,
    log: silentLog,
    clock: () => new Date(),
  })
  const facilitator = new x402Facilitator().register(
    'eip155:84532',
    new Facilitates(toFacilitatorEvmSigner(chain.signer)),
  )
  const server = new x402ResourceServer({
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported() as never,
  }).register('eip155:84532', new UptoEvmScheme())
  const app = new Hono()
  const accepts = {
    scheme: 'upto',
    network: 'eip155:84532',
    price: '$0.005',
    payTo: UPTO_SELLER,
  } as const
  app.use('/stock', paymentMiddleware({ 'GET /stock': { accepts, description: 'Tokens' } }, server))
  app.get('/stock', (c) => {
    const used = c.req.query('used')
    if (used !== undefined) setSettlementOverrides(c, { amount: used })
    return c.json({ used: used ?? 'all' })
  })

  const requests = new Map<string, number>()
  const payments = new Map<string, z.output<typeof payment>['payload']>()
  const faults = new Map<string, () => Promise<unknown>>()
  const settle = async (run: string, units: bigint) => {
    const paid = payments.get(run)
    if (paid === undefined) throw new Error(`${run} was not paid`)
    const { from, permitted, nonce, deadline, witness } = paid.permit2Authorization
    try {
      const hash = await chain.signer.writeContract({
        address: x402UptoPermit2ProxyAddress,
        abi: x402UptoPermit2ProxyABI,
        functionName: 'settle',
        args: [
          {
            permitted: { token: permitted.token, amount: BigInt(permitted.amount) },
            nonce: BigInt(nonce),
            deadline: BigInt(deadline),
          },
          units,
          from,
          { to: witness.to, facilitator: witness.facilitator, validAfter: BigInt(witness.validAfter) },
          paid.signature,
        ],
      })
      return (await chain.signer.waitForTransactionReceipt({ hash })).status === 'success'
    } catch {
      return false
    }
  }
  app.get('/own/:kind/:run', async (c) => {
    const { kind, run } = c.req.param()
    const header = c.req.header('payment-signature')
    const ask = (status: 402 | 412, error = '') => {
      const offer = {
        scheme: 'upto',
        network: 'eip155:84532',
        asset: chain.tokens.USDC,
        payTo: UPTO_SELLER,
        amount: MAXIMUM.toString(),
        maxTimeoutSeconds: kind === 'short' ? 5 : 60,
        extra: {
          name: 'USDC',
          version: '2',
          assetTransferMethod: 'permit2',
          facilitatorAddress: chain.signer.address,
        },
      }
      const text = JSON.stringify({ x402Version: 2, error, resource: { url: c.req.url }, accepts: [offer] })
      c.header('payment-required', Buffer.from(text).toString('base64'))
      return c.body(null, status)
    }
    if (header === undefined) return ask(402)
    const count = (requests.get(run) ?? 0) + 1
    requests.set(run, count)
    payments.set(run, payment.parse(JSON.parse(Buffer.from(header, 'base64').toString())).payload)
    await faults.get(run)?.()
    const say = (receipt: object) =>
      c.header('payment-response', Buffer.from(JSON.stringify(receipt)).toString('base64'))
    const free = { success: true, transaction: '', network: 'eip155:84532', amount: '0' }
    switch (kind) {
      case '412-once':
        if (count === 1) return ask(412, 'permit2_allowance_required')
        await settle(run, 700n)
        break
      case '412':
        return ask(412, 'permit2_allowance_required')
      case 'never':
        return c.text('', 504)
      case 'says-less':
        await settle(run, MAXIMUM)
        say({ ...free, transaction: `0x${'1'.repeat(64)}`, amount: '1' })
        break
      case 'free':
        say(free)
        break
      case 'free-lie':
        await settle(run, 900n)
        say(free)
        break
      case 'drops':
        await settle(run, 800n)
        return count === 1 ? c.text('', 504) : c.json({ run })
    }
    return c.json({ run })
  })
  const { server: http, port } = await listen(app)
  return {
    origin: `http://127.0.0.1:${port}`,
    chain,
    payerOf: (run) => payments.get(run)?.permit2Authorization.from,
    settle,
    interrupt: (run, work) => void faults.set(run, work),
    close: async () => {
      if ('closeAllConnections' in http) http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
      await chain.close()
    },
  }
}
