/** Members that a version 2 client can send back: the id of its purchase, and the locked offer of its challenge. */
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import type { Chain } from '../../../../src/providers/chain/port.ts'
import type { Database } from '../../../../src/storage/database.ts'
import { openPglite } from '../../../../src/storage/pglite.ts'
import { newCustomer, openShop, parseJsonText, path, type Shop } from './scene.ts'

const PRICE = 10_000n
const identified = 'pay_0123456789abcdef0123456789abcdef'

let chain: Chain
let database: Database
let shop: Shop
let aheadMs = 0
const clock = () => new Date(Date.now() + aheadMs)
const openAt = async (units: bigint) => {
  await shop?.close()
  shop = await openShop(chain, { database, clock, price: { asset: 'USDC', units } })
}
beforeAll(async () => {
  chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
  database = await openPglite({ directory: 'memory', now: clock, log: silentLog })
  await database.migrate()
})
beforeEach(async () => {
  aheadMs = 0
  await openAt(PRICE)
})
afterAll(async () => {
  await shop.close()
  await database.close()
  await chain.close()
})

const readBody = async (response: Response) => {
  const body: unknown = await response.json()
  return { status: response.status, body }
}
const answerRate = (rate: string) => async () => ({ rate })

/**
 * A client that pays its challenge only after `between` has run. @param between runs between the challenge and the
 * payment.
 */
async function buySlowly(generation: 'v1' | 'v2', between: () => Promise<void> | void) {
  let isPaid = false
  const customer = await newCustomer(chain, 5n * PRICE, async (input, init) => {
    const request = new Request(input, init)
    isPaid ||= request.headers.has('X-PAYMENT') || request.headers.has('PAYMENT-SIGNATURE')
    if (isPaid) await between()
    const target = new URL(request.url)
    return fetch(new Request(`${new URL(shop.url).origin}${target.pathname}${target.search}`, request))
  })
  const response = await customer[generation](shop.url)
  return {
    ...(await readBody(response)),
    spent: 5n * PRICE - (await chain.readBalance('USDC', customer.address)),
  }
}

describe('a challenge', () => {
  it('names the resource and reveals nothing unpaid', async () => {
    shop.deliver = answerRate('0.92317')
    const response = await fetch(shop.url)
    const required = parseJsonText(response.headers.get('PAYMENT-REQUIRED') ?? '')
    expect(required).toMatchObject({
      extensions: {
        bazaar: {
          info: {
            input: { type: 'http', method: 'GET', queryParams: { from: 'USD', to: 'EUR', amount: '100' } },
          },
        },
        'payment-identifier': { info: { required: false } },
        'quote-lock': { info: { token: expect.any(String), expiresAt: expect.any(String) } },
      },
    })
    expect(JSON.stringify(required) + (await response.text())).not.toContain('0.92317')
  })
})

describe('an offer', () => {
  it('keeps its price and its rate when it is returned in time', async () => {
    shop.deliver = answerRate('1.10')
    const { status, body, spent } = await buySlowly('v2', async () => {
      await openAt(3n * PRICE)
      shop.deliver = answerRate('1.20')
      aheadMs = 59_000
    })
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { rate: '1.10', payment: { amount: '0.01' } },
    })
    expect(spent).toBe(PRICE)
  })

  it('expires after a minute: the current rate applies', async () => {
    shop.deliver = answerRate('1.10')
    const { status, body } = await buySlowly('v2', () => {
      shop.deliver = answerRate('1.20')
      aheadMs = 60_000
    })
    expect({ status, body }).toMatchObject({ status: 200, body: { rate: '1.20' } })
  })

  it.each(['v1', 'v2'] as const)(
    'an offer that expired at another price is challenged afresh, uncharged (%s)',
    async (generation) => {
      const { status, body, spent } = await buySlowly(generation, async () => {
        aheadMs = 60_000
        await openAt(3n * PRICE)
      })
      expect({ status, body }).toMatchObject({
        status: 402,
        body: { error: expect.stringContaining('value'), accepts: [{ maxAmountRequired: '30000' }] },
      })
      expect(spent).toBe(0n)
    },
  )

  it('is valid for one request only', async () => {
    shop.deliver = answerRate('1.10')
    const challenged = await fetch(shop.url)
    shop.deliver = answerRate('1.20')
    const account = privateKeyToAccount(generatePrivateKey())
    await chain.mint([{ token: 'USDC', to: account.address, units: PRICE }])
    let isFirst = true
    const paying = wrapFetchWithPayment(
      async (input, init) => {
        if (!isFirst) return fetch(input, init)
        isFirst = false
        return challenged
      },
      new x402Client().register('eip155:*', new ExactEvmScheme(account)),
    )
    const other = `${new URL(shop.url).origin}${path}?from=GBP&to=EUR&amount=1`
    expect(await readBody(await paying(other))).toMatchObject({ status: 200, body: { rate: '1.20' } })
  })
})

describe('a purchase with an id', () => {
  const buyer = async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    await chain.mint([{ token: 'USDC', to: account.address, units: 3n * PRICE }])
    const client = new x402Client()
      .register('eip155:*', new ExactEvmScheme(account))
      .onBeforePaymentCreation(async ({ paymentRequired }) => {
        const declared = paymentRequired.extensions?.['payment-identifier']
        const info = { required: false, id: identified }
        Object.assign(paymentRequired, {
          extensions: {
            ...paymentRequired.extensions,
            'payment-identifier': { ...Object(declared), info },
          },
        })
      })
    return {
      buy: (query = '') => wrapFetchWithPayment(fetch, client)(`${shop.url}${query}`),
      spent: async () => 3n * PRICE - (await chain.readBalance('USDC', account.address)),
    }
  }

  it('is charged once, although a second payment was signed for it', async () => {
    const { buy, spent } = await buyer()
    const first = await readBody(await buy())
    expect(first.status).toBe(200)
    expect(await readBody(await buy())).toEqual(first)
    expect(await spent()).toBe(PRICE)
  })

  it('is one purchase when two payments arrive concurrently', async () => {
    const { buy, spent } = await buyer()
    const [one, two] = await Promise.all([buy().then(readBody), buy().then(readBody)])
    expect(one).toMatchObject({ status: 200 })
    expect(two).toEqual(one)
    expect(await spent()).toBe(PRICE)
  })

  it('belongs to one request, and to one payer', async () => {
    const [one, other] = [await buyer(), await buyer()]
    expect((await one.buy()).status).toBe(200)
    expect(await readBody(await one.buy('&x=1'))).toMatchObject({
      status: 409,
      body: { code: 'payment_reused' },
    })
    expect((await other.buy()).status).toBe(200)
    expect([await one.spent(), await other.spent()]).toEqual([PRICE, PRICE])
  })
})
