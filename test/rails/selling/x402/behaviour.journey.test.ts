/**
 * The x402 behaviour table: every outcome of a payment, over real HTTP, with unmodified clients of both generations, on
 * a chain whose blocks can be held back.
 */
import { generateKeyPairSync } from 'node:crypto'
import { jwtVerify } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { external } from '../../../../src/books/ledger/accounts.ts'
import { balanceOfSystem } from '../../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../../src/books/ledger/trial-balance.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import { Failure } from '../../../../src/core/failures/failure.ts'
import { findPayment } from '../../../../src/rails/selling/payments/store.ts'
import { settlePayments } from '../../../../src/server/jobs/settle-payments.ts'
import type { Database } from '../../../../src/storage/database.ts'
import { openPglite } from '../../../../src/storage/pglite.ts'
import { dataKey, newCustomer, openShop, path, payTo, type Shop, tamperingFetch } from './scene.ts'
import { anvilWorld, hasAnvil, simulatedWorld, startFacilitator, type World } from './world.ts'

const PRICE = 10_000n
const HASH = /^0x[0-9a-f]{64}$/
const generations = ['v1', 'v2'] as const
const worlds: readonly (readonly [string, () => Promise<World>])[] = [
  ...(hasAnvil() ? [['anvil', anvilWorld] as const] : []),
  ['the simulated chain', simulatedWorld],
]

describe.each(worlds)('payments on %s', (_world, open) => {
  let world: World
  let database: Database
  let shop: Shop
  /** Offset of the gateway's clock, in milliseconds. */
  let aheadMs = 0
  const clock = () => new Date(Date.now() + aheadMs)
  const openAgain = async (parts: Parameters<typeof openShop>[1] = {}) => {
    await shop?.close()
    shop = await openShop(world.chain, { database, clock, ...parts })
  }
  beforeAll(async () => {
    world = await open()
    database = await openPglite({ directory: 'memory', now: clock, log: silentLog })
    await database.migrate()
    await openAgain()
  })
  afterEach(async () => {
    aheadMs = 0
    await world.resume()
    await openAgain()
  })
  afterAll(async () => {
    await shop.close()
    await database.close()
    await world.chain.close()
  })

  /** A customer whose payment is kept for resending. @property sign signs a payment without sending it. */
  const newBuyer = async (generation: 'v1' | 'v2', funds = 3n * PRICE) => {
    let payment: Record<string, string> = {}
    let isHeld = false
    const through: typeof fetch = async (input, init) => {
      const request = new Request(input, init)
      const [header] = ['X-PAYMENT', 'PAYMENT-SIGNATURE'].filter((name) => request.headers.has(name))
      if (header === undefined) return fetch(request)
      payment = { [header]: request.headers.get(header) ?? '' }
      return isHeld ? new Response(null, { status: 503 }) : fetch(request)
    }
    const { address, ...clients } = await newCustomer(world.chain, funds, through)
    const buy = () => clients[generation](shop.url)
    return {
      buy,
      sign: async () => {
        isHeld = true
        await buy()
      },
      send: (url = shop.url, through = fetch) => through(url, { headers: payment }),
      spent: async () => funds - (await world.chain.readBalance('USDC', address)),
    }
  }
  const readCode = async (response: Response) => {
    const body: unknown = await response.json()
    return { status: response.status, body }
  }
  const findPendingId = (response: Response) =>
    /^\/api\/x402\/payments\/(pay_\w+)$/.exec(response.headers.get('location') ?? '')?.[1] ?? ''
  const paid = { status: 200, body: { quoteId: 'quote_1', payment: { amount: '0.01' } } }
  const round = () =>
    settlePayments(
      { database, chain: world.chain, clock, log: silentLog, settings: { dataKey } },
      new AbortController().signal,
    )
  const readRevenue = () => balanceOfSystem(database, 'revenue:x402.fx', 'USDC')

  describe.each(generations)('of a %s client', (generation) => {
    it('are metered and booked once each', async () => {
      const [sold, books, income] = [
        await shop.sold(),
        await readRevenue(),
        await world.chain.readBalance('USDC', payTo),
      ]
      const buyer = await newBuyer(generation)
      expect(await readCode(await buyer.buy())).toMatchObject(paid)
      expect(await shop.sold()).toBe(sold + 1)
      expect(await readRevenue()).toBe(books + PRICE)
      expect(await world.chain.readBalance('USDC', payTo)).toBe(income + PRICE)
      expect(await balanceOfSystem(database, external('base-sepolia'), 'USDC')).toBe(-(books + PRICE))
      expect(await trialBalance(database)).toMatchObject({ balanced: true })
    })

    it('are settled once and answered identically when five senders submit one concurrently', async () => {
      const buyer = await newBuyer(generation)
      await buyer.sign()
      shop.deliver = async () => ({ quoteId: 'quote_1', made: performance.now() })
      const [sold, sent] = [await shop.sold(), world.sent()]
      const answers = await Promise.all(Array.from({ length: 5 }, () => buyer.send().then(readCode)))
      expect(answers[0]).toMatchObject(paid)
      for (const answer of answers) expect(answer).toEqual(answers[0])
      expect(world.sent()).toBe(sent + 1)
      expect(await shop.sold()).toBe(sold + 1)
      expect(await buyer.spent()).toBe(PRICE)
    })

    it('are settled once when five senders use two gateways while nothing is mined', async () => {
      const buyer = await newBuyer(generation)
      await buyer.sign()
      const other = await openShop(world.chain, { database, clock })
      await world.pause()
      const sent = world.sent()
      const senders = [shop.url, other.url, shop.url, other.url, shop.url]
      const late = await Promise.all(senders.map((url) => buyer.send(url)))
      expect(late.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503])
      expect(new Set(late.map(findPendingId)).size).toBe(1)
      await world.resume()
      const answers = await Promise.all(senders.map((url) => buyer.send(url).then(readCode)))
      expect(answers[0]).toMatchObject(paid)
      for (const answer of answers) expect(answer).toEqual(answers[0])
      await expect.poll(() => world.sent()).toBe(sent + 1)
      expect(await buyer.spent()).toBe(PRICE)
      await other.close()
    })

    it('are answered identically when repeated, also after a restart and with other rates', async () => {
      const buyer = await newBuyer(generation)
      const bought = await readCode(await buyer.buy())
      expect(bought).toMatchObject(paid)
      await openAgain()
      shop.deliver = () => Promise.reject(new Failure('rates_unavailable', 'Too old.'))
      expect(await readCode(await buyer.send())).toEqual(bought)
      expect(await buyer.spent()).toBe(PRICE)
    })

    it('pay for one request only, in any spelling', async () => {
      const buyer = await newBuyer(generation)
      const bought = await readCode(await buyer.buy())
      const requestUrl = new URL(shop.url)
      const at = (query: string) => buyer.send(`${requestUrl.origin}${path}?${query}`)
      expect(await readCode(await at('amount=100&to=EUR&from=USD'))).toEqual(bought)
      for (const query of ['from=USD&to=EUR&amount=101', 'from=USD&to=EUR&amount=100&amount=100', ''])
        expect(await readCode(await at(query))).toMatchObject({
          status: 409,
          body: { code: 'payment_reused' },
        })
      expect(await buyer.spent()).toBe(PRICE)
    })

    it('are accepted once per idempotency key, whichever is sent', async () => {
      const [one, two] = [await newBuyer(generation), await newBuyer(generation)]
      await Promise.all([one.sign(), two.sign()])
      const nameFetch =
        (key: string): typeof fetch =>
        (url, init) =>
          fetch(url, { ...init, headers: { ...init?.headers, 'idempotency-key': key } })
      const [sold, key] = [await shop.sold(), `once-${generation}`]
      shop.deliver = async () => ({ quoteId: 'quote_1', made: performance.now() })
      const sent = await Promise.all([one, two, one, two].map(({ send }) => send(shop.url, nameFetch(key))))
      const answers = await Promise.all(sent.map(readCode))
      expect(answers[0]).toMatchObject(paid)
      for (const answer of answers) expect(answer).toEqual(answers[0])
      expect(await readCode(await nameFetch(key)(shop.url))).toEqual(answers[0])
      expect(await shop.sold()).toBe(sold + 1)
      expect((await one.spent()) + (await two.spent())).toBe(PRICE)
      const other = await two.send(`${shop.url}&more=1`, nameFetch(key))
      expect(await readCode(other)).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } })
      // A payment accepted earlier is bound to the new key too, and no other payment is accepted under that key.
      const [taken, free] = (await one.spent()) === PRICE ? [one, two] : [two, one]
      expect(await readCode(await taken.send(shop.url, nameFetch(`${key}-2`)))).toEqual(answers[0])
      expect(await readCode(await free.send(shop.url, nameFetch(`${key}-2`)))).toEqual(answers[0])
      expect(await free.spent()).toBe(0n)
    })

    it('leave an idempotency key free when refused, and occupy it while pending', async () => {
      const [poor, buyer] = [await newBuyer(generation, 0n), await newBuyer(generation)]
      await Promise.all([poor.sign(), buyer.sign()])
      const key = { 'idempotency-key': `freed-${generation}` }
      const nameFetch: typeof fetch = (url, init) =>
        fetch(url, { ...init, headers: { ...init?.headers, ...key } })
      expect((await poor.send(shop.url, nameFetch)).status).toBe(402)
      expect((await nameFetch(shop.url)).status).toBe(402)
      await world.pause()
      const late = await buyer.send(shop.url, nameFetch)
      expect(late.status).toBe(503)
      // Requests with another payment or with none are held until the outcome is known.
      for (const again of [await poor.send(shop.url, nameFetch), await nameFetch(shop.url)])
        expect([again.status, findPendingId(again)]).toEqual([503, findPendingId(late)])
      await world.resume()
      expect(await readCode(await nameFetch(shop.url))).toMatchObject(paid)
      expect(await buyer.spent()).toBe(PRICE)
    })

    it('are not charged while the facilitator is down, and are accepted once it is back', async () => {
      const facilitator = await startFacilitator(world.chain)
      await openAgain({ facilitatorUrl: facilitator.url })
      facilitator.mood = 'down'
      const buyer = await newBuyer(generation)
      const refused = await buyer.buy()
      expect(refused.headers.get('retry-after')).toBe('5')
      expect(await readCode(refused)).toMatchObject({
        status: 503,
        body: { code: 'facilitator_unavailable' },
      })
      expect(await buyer.spent()).toBe(0n)
      facilitator.mood = 'up'
      expect(await readCode(await buyer.send())).toMatchObject(paid)
      expect(await buyer.spent()).toBe(PRICE)
      await facilitator.close()
    })

    it('are settled by a facilitator that wants a token for each request, with the right key only', async () => {
      const facilitator = await startFacilitator(world.chain)
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const seen: string[] = []
      facilitator.admits = async (authorization, { method, path }) => {
        const token = authorization.replace(/^Bearer /, '')
        const verified = await jwtVerify(token, publicKey, { issuer: 'cdp', subject: 'key-1' }).catch(
          () => null,
        )
        seen.push(`${method} ${path}`)
        return verified?.payload.uri === `${method} ${new URL(facilitator.url).host}${path}`
      }
      const pem = (key: typeof privateKey) => key.export({ type: 'pkcs8', format: 'pem' }).toString()
      const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
      await openAgain({
        facilitatorUrl: facilitator.url,
        facilitatorKey: { id: 'key-1', secret: pem(other) },
      })
      const refused = await newBuyer(generation)
      expect((await refused.buy()).status).not.toBe(200)
      expect(await refused.spent()).toBe(0n)
      await openAgain({
        facilitatorUrl: facilitator.url,
        facilitatorKey: { id: 'key-1', secret: pem(privateKey) },
      })
      const buyer = await newBuyer(generation)
      expect(await readCode(await buyer.buy())).toMatchObject(paid)
      expect(await buyer.spent()).toBe(PRICE)
      expect(seen.slice(-2)).toEqual(['POST /verify', 'POST /settle'])
      await facilitator.close()
    })

    it('are pending when the facilitator is lost after sending, and found on the chain', async () => {
      const facilitator = await startFacilitator(world.chain)
      await openAgain({ facilitatorUrl: facilitator.url })
      facilitator.mood = 'lost'
      const buyer = await newBuyer(generation)
      const lost = await buyer.buy()
      const id = findPendingId(lost)
      expect(lost.headers.get('retry-after')).toBe('3')
      expect(await readCode(lost)).toMatchObject({
        status: 503,
        body: { code: 'settlement_pending', paymentId: id },
      })
      facilitator.mood = 'down'
      expect(await readCode(await buyer.send())).toMatchObject({ ...paid, body: { payment: { id } } })
      expect(facilitator.settled()).toBe(1)
      expect(await buyer.spent()).toBe(PRICE)
      await facilitator.close()
    })

    it('are pending when the facilitator does not answer, and resent if it did nothing', async () => {
      const facilitator = await startFacilitator(world.chain)
      await openAgain({ facilitatorUrl: facilitator.url })
      facilitator.mood = 'silent'
      const buyer = await newBuyer(generation)
      const silent = await buyer.buy()
      const id = findPendingId(silent)
      expect(await readCode(silent)).toMatchObject({ status: 503, body: { code: 'settlement_pending' } })
      facilitator.mood = 'down'
      aheadMs = 4_000
      expect(await readCode(await buyer.send())).toMatchObject({
        status: 503,
        body: { code: 'settlement_pending', paymentId: id },
      })
      facilitator.mood = 'up'
      aheadMs = 8_000
      expect(await readCode(await buyer.send())).toMatchObject({ ...paid, body: { payment: { id } } })
      expect(await buyer.spent()).toBe(PRICE)
      await facilitator.close()
    })

    it('not mined in 3 s are pending under their transaction, never challenged afresh, and answered once mined', async () => {
      const buyer = await newBuyer(generation)
      await world.pause()
      const start = performance.now()
      const late = await buyer.buy()
      expect(performance.now() - start).toBeLessThan(4_500)
      const id = findPendingId(late)
      expect(late.headers.get('retry-after')).toBe('3')
      expect(await readCode(late)).toMatchObject({
        status: 503,
        body: {
          code: 'settlement_pending',
          paymentId: id,
          ...(world.isHashKnown ? { transaction: expect.stringMatching(HASH) } : {}),
        },
      })
      const sent = world.sent()
      const still = await buyer.send()
      expect([still.status, findPendingId(still)]).toEqual([503, id])
      expect(await findPayment(database, id)).toMatchObject({ state: 'pending' })
      await world.resume()
      const answer = await readCode(await buyer.send())
      expect(answer).toMatchObject({
        status: 200,
        body: { payment: { id, ...(world.isHashKnown ? { transaction: expect.stringMatching(HASH) } : {}) } },
      })
      expect(world.sent() - sent).toBeLessThanOrEqual(world.isHashKnown ? 0 : 1)
      expect(await buyer.spent()).toBe(PRICE)
    })

    it('payments that are never resent are found by the job', async () => {
      const buyer = await newBuyer(generation)
      await world.pause()
      const id = findPendingId(await buyer.buy())
      aheadMs = 2_000
      await round()
      expect(await findPayment(database, id)).toMatchObject({ state: 'pending' })
      await world.resume()
      aheadMs = 4_000
      await round()
      expect(await findPayment(database, id)).toMatchObject({ state: 'settled' })
      expect(await trialBalance(database)).toMatchObject({ balanced: true })
    })

    it('held by a process that died are looked up once its lease has expired', async () => {
      const buyer = await newBuyer(generation)
      await world.pause()
      const id = findPendingId(await buyer.buy())
      await world.resume()
      await database.kysely.updateTable('payment').set({ state: 'taking' }).where('id', '=', id).execute()
      aheadMs = 10_000
      await round()
      expect(await findPayment(database, id)).toMatchObject({ state: 'taking' })
      aheadMs = 20_000
      await round()
      expect(await findPayment(database, id)).toMatchObject({ state: 'settled' })
      expect(await readCode(await buyer.send())).toMatchObject({ status: 200, body: { payment: { id } } })
      expect(await buyer.spent()).toBe(PRICE)
    })

    it('payments that can no longer be mined have failed, and are then challenged afresh', async () => {
      const writeContract = () => Promise.reject(Object.assign(new Error('lost'), { name: 'TimeoutError' }))
      await openAgain({ chain: { ...world.chain, signer: { ...world.chain.signer, writeContract } } })
      const buyer = await newBuyer(generation)
      const id = findPendingId(await buyer.buy())
      aheadMs = 400_000
      await round()
      expect(await findPayment(database, id)).toMatchObject({ state: 'pending' })
      aheadMs = 430_000
      await round()
      expect(await findPayment(database, id)).toMatchObject({ state: 'failed' })
      expect(await readCode(await buyer.send())).toMatchObject({
        status: 402,
        body: { error: 'authorization_expired_unused' },
      })
      expect(await buyer.spent()).toBe(0n)
    })

    it('are paid when a third party submitted the authorization to the chain', async () => {
      const { signer } = world.chain
      const writeContract: typeof signer.writeContract = async (call) => {
        await signer.writeContract(call)
        throw new Error('FiatTokenV2: authorization is used or canceled')
      }
      await openAgain({ chain: { ...world.chain, signer: { ...signer, writeContract } } })
      const buyer = await newBuyer(generation)
      expect(await readCode(await buyer.buy())).toMatchObject(paid)
      expect(await buyer.spent()).toBe(PRICE)
    })

    it('are never charged when the sale cannot be delivered', async () => {
      const buyer = await newBuyer(generation)
      shop.deliver = () => Promise.reject(new Failure('rates_unavailable', 'Too old.'))
      expect(await readCode(await buyer.buy())).toMatchObject({
        status: 503,
        body: { code: 'rates_unavailable' },
      })
      expect(await buyer.spent()).toBe(0n)
    })

    it('payments with a forged signature neither get the answer of a paid one nor block it', async () => {
      const forging = tamperingFetch((payment) =>
        JSON.parse(JSON.stringify(payment).replace(/"signature":"0x..../, '"signature":"0xabcd')),
      )
      const buyer = await newBuyer(generation)
      await buyer.sign()
      expect((await buyer.send(shop.url, forging)).status).toBe(402)
      expect(await readCode(await buyer.send())).toMatchObject(paid)
      expect(await readCode(await buyer.send(shop.url, forging))).toMatchObject({
        status: 409,
        body: { code: 'payment_reused' },
      })
    })
  })
})
