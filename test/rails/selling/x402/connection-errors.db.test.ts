import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator'
import { Hono } from 'hono'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import { type Chain, type EvmSigner, unknownBroadcast } from '../../../../src/providers/chain/port.ts'
import { listen, newCustomer, openShop, type Shop } from './scene.ts'

const generations = ['v1', 'v2'] as const

const lost = (name: string, code?: string) => {
  const cause = Object.assign(new Error('connection'), code === undefined ? {} : { code })
  return Object.assign(new Error('lost', { cause }), { name })
}

let chain: Chain
let shop: Shop | undefined
beforeAll(async () => {
  chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
})
afterEach(async () => {
  await shop?.close()
  shop = undefined
})
afterAll(() => chain.close())

async function buy(generation: 'v1' | 'v2', open: () => Promise<Shop>) {
  const customer = await newCustomer(chain, 10_000n)
  shop = await open()
  const response = await customer[generation](shop.url)
  const body: unknown = await response.json()
  return { status: response.status, body, left: await chain.readBalance('USDC', customer.address) }
}

const shopWith = (signer: Partial<EvmSigner>) => () =>
  openShop({ ...chain, signer: { ...chain.signer, ...signer } })

describe.each(generations)('a %s payment, when the chain', (generation) => {
  it('is unreachable, is not charged and gets a retry time', async () => {
    const readContract = () => Promise.reject(lost('HttpRequestError', 'ECONNREFUSED'))
    const { status, body, left } = await buy(generation, shopWith({ readContract }))
    expect({ status, body }).toMatchObject({
      status: 503,
      body: { code: 'facilitator_unavailable', retryAfter: 5 },
    })
    expect(left).toBe(10_000n)
  })

  it('rejects connections while sending, is not charged and gets a retry time', async () => {
    const writeContract = () => Promise.reject(lost('HttpRequestError', 'ECONNREFUSED'))
    const { status, body, left } = await buy(generation, shopWith({ writeContract }))
    expect({ status, body }).toMatchObject({ status: 503, body: { code: 'facilitator_unavailable' } })
    expect(left).toBe(10_000n)
  })

  it('is lost while sending, is pending and never challenged afresh', async () => {
    const writeContract: EvmSigner['writeContract'] = async (call) => {
      await chain.signer.writeContract(call)
      throw lost('TimeoutError')
    }
    const { status, body } = await buy(generation, shopWith({ writeContract }))
    expect({ status, body }).toMatchObject({
      status: 503,
      body: { code: 'settlement_pending', retryAfter: 3 },
    })
  })

  it.each([
    ['an error of the node', new Error('nonce too low')],
    ['a refused connection', lost('HttpRequestError', 'ECONNREFUSED')],
  ])(
    'may have taken the transaction after %s, is pending and never challenged afresh',
    async (_why, cause) => {
      const writeContract: EvmSigner['writeContract'] = async (call) => {
        await chain.signer.writeContract(call)
        throw unknownBroadcast('It is unknown whether the node accepted it.', { cause })
      }
      const { status, body } = await buy(generation, shopWith({ writeContract }))
      expect({ status, body }).toMatchObject({ status: 503, body: { code: 'settlement_pending' } })
    },
  )

  it('has no receipt in time, is pending under its transaction', async () => {
    const waitForTransactionReceipt = () => Promise.reject(lost('WaitForTransactionReceiptTimeoutError'))
    const { status, body } = await buy(generation, shopWith({ waitForTransactionReceipt }))
    expect({ status, body }).toMatchObject({
      status: 503,
      body: { code: 'settlement_pending', detail: expect.stringMatching(/0x[0-9a-f]{64}/) },
    })
  })

  it('refuses the transaction, is challenged afresh', async () => {
    const writeContract = () => Promise.reject(new Error('FiatTokenV2: authorization is used or canceled'))
    const { status, body, left } = await buy(generation, shopWith({ writeContract }))
    expect({ status, body }).toMatchObject({ status: 402, body: { x402Version: 1, accepts: [{}] } })
    expect(left).toBe(10_000n)
  })
})

describe.each(generations)('a %s payment over a remote facilitator', (generation) => {
  const open = (facilitatorUrl: string) => () => openShop(chain, { facilitatorUrl })

  async function facilitator(settle?: () => Response) {
    const inner = registerExactEvmScheme(new x402Facilitator(), {
      signer: toFacilitatorEvmSigner(chain.signer),
      networks: 'eip155:84532',
    })
    const app = new Hono()
    app.post('/verify', async (c) => {
      const { paymentPayload, paymentRequirements } = await c.req.json()
      return c.json(await inner.verify(paymentPayload, paymentRequirements))
    })
    app.post('/settle', async (c) => {
      if (settle !== undefined) return settle()
      const { paymentPayload, paymentRequirements } = await c.req.json()
      return c.json(await inner.settle(paymentPayload, paymentRequirements))
    })
    const { server, port } = await listen(app)
    return { url: `http://127.0.0.1:${port}`, close: () => new Promise((resolve) => server.close(resolve)) }
  }

  it('is settled by the facilitator', async () => {
    const remote = await facilitator()
    expect(await buy(generation, open(remote.url))).toMatchObject({ status: 200, left: 0n })
    await remote.close()
  })

  it('is not charged while the facilitator is down; challenges do not need it', async () => {
    const { status, body, left } = await buy(generation, open('http://127.0.0.1:1'))
    expect({ status, body }).toMatchObject({ status: 503, body: { code: 'facilitator_unavailable' } })
    expect(left).toBe(10_000n)
  })

  it('is pending when the settle request gets no answer', async () => {
    const remote = await facilitator(() => new Response('bad gateway', { status: 502 }))
    const { status, body } = await buy(generation, open(remote.url))
    expect({ status, body }).toMatchObject({ status: 503, body: { code: 'settlement_pending' } })
    await remote.close()
  })

  it.each([
    ['for an unknown reason', { errorReason: 'unexpected_settle_error', transaction: '' }],
    [
      'with an unmined transaction',
      { errorReason: 'invalid_transaction_state', transaction: `0x${'ab'.repeat(32)}` },
    ],
  ])('is pending when settling failed and %s', async (_why, failure) => {
    const remote = await facilitator(() =>
      Response.json({ success: false, network: 'base-sepolia', ...failure }),
    )
    const { status, body } = await buy(generation, open(remote.url))
    expect({ status, body }).toMatchObject({ status: 503, body: { code: 'settlement_pending' } })
    await remote.close()
  })

  it('is challenged afresh when settling was refused', async () => {
    const refusal = {
      success: false,
      errorReason: 'insufficient_funds',
      transaction: '',
      network: 'base-sepolia',
    }
    const remote = await facilitator(() => Response.json(refusal))
    const { status, body } = await buy(generation, open(remote.url))
    expect({ status, body }).toMatchObject({ status: 402, body: { error: 'insufficient_funds' } })
    await remote.close()
  })
})
