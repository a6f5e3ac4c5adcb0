/**
 * Payouts in stablecoins that take money of another chain (`from: "any"`), over HTTP on both engines and two real chains: one decision
 * covers the payout and the move, the bank gets its money once, and the books are what both chains show, whatever the bank or a kill does.
 */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { toDecimal } from '../../src/core/money/money.ts'
import type { Address } from '../../src/providers/chain/port.ts'
import { longestEngines } from '../engines.ts'
import { american } from '../rails/banking/american.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import type { Step } from './chain-proxy.ts'
import { readAddress } from './keyed-owners.ts'
import type { Person } from './people.ts'
import { type ChainName, startTwoChains, type TwoChains } from './two-chains.ts'

const text = z.string()
const HOME = 'base-sepolia'
const AWAY = 'arbitrum-sepolia'
const typedData = z.object({
  domain: z.looseObject({}),
  types: z.record(z.string(), z.array(z.object({ name: text, type: text }))),
  primaryType: text,
  message: z.record(z.string(), z.unknown()),
})
const payoutAnswer = z.looseObject({ id: text, decisionId: text, status: text })

describe.each(longestEngines)('payouts from any chain on $engine', ({ isPostgres }) => {
  describe.runIf(hasAnvil())('', () => {
    let world: TwoChains
    let owner: Person
    let key = ''
    let address: Address = '0x'
    let recipientId = ''

    beforeAll(async () => {
      world = await startTwoChains(isPostgres)
      owner = await world.newGuest()
      address = await readAddress(owner)
      key = (await newKey()).key
      const { body } = await world.send(owner.token, 'POST', '/api/banking/recipients', american)
      recipientId = String(body.id)
    }, 120_000)
    afterAll(() => world.stop(), 60_000)

    const newKey = async () => {
      const { body } = await world.send(owner.token, 'POST', '/api/developer/keys', {
        name: 'Payer',
        scopes: ['banking:pay', 'wallets:read', 'swaps:execute'],
        policy: {
          perTransaction: { max: '9000' },
          dailyBudget: { max: '90000' },
          categories: { allow: ['payout', 'swap'] },
        },
      })
      return { id: String(body.id), key: String(body.key) }
    }
    const readOrders = async () => {
      const { body } = await world.send(key, 'GET', '/api/swaps/orders?limit=100')
      return z.array(z.looseObject({ swapId: text, status: text, decisionId: text })).parse(body.orders)
    }
    const move = async (amount: string) => {
      const { body } = await world.send(key, 'POST', '/api/swaps/orders', {
        sell: { chain: HOME, token: 'USDC', amount },
        buy: { chain: AWAY, token: 'USDC' },
      })
      await expect
        .poll(async () => (await readOrders()).find(({ swapId }) => swapId === body.swapId)?.status, {
          timeout: 30_000,
        })
        .toBe('confirmed')
    }
    const readUsed = async () => {
      const { body } = await world.send(key, 'GET', '/api/agents/self')
      return z.looseObject({ usage: z.looseObject({ used: text, count: z.number() }) }).parse(body).usage
    }
    /** What lies on both chains, without what is held. */
    const readAvailable = async () => {
      const [home, away] = [await world.readBooked(key, HOME), await world.readBooked(key, AWAY)]
      return { home: home.available, away: away.available }
    }
    /** A little more than the chain of payouts has. */
    const lacking = async () => {
      const units = (await readAvailable()).home + 3_000_000n
      return { units, amount: toDecimal({ asset: 'USDC', units }) }
    }
    const ask = (amount: string, changes: object = {}) => ({
      ...{ recipientId, asset: 'USDC', amount, from: 'any' },
      ...changes,
    })
    const pay = (body: object, { by = key, idempotencyKey = crypto.randomUUID() as string } = {}) =>
      world.send(by, 'POST', '/api/banking/payouts', body, { 'idempotency-key': idempotencyKey })
    const readPayout = async (id: unknown) =>
      (await world.send(key, 'GET', `/api/banking/payouts/${String(id)}`)).body
    const awaitStatus = (id: unknown, status: string) =>
      expect.poll(async () => (await readPayout(id)).status, { timeout: 60_000, interval: 250 }).toBe(status)

    it('tells the cost first, moves what lacks, and pays in one decision', async () => {
      await move('500')
      const { units, amount } = await lacking()
      const [before, used] = [await readAvailable(), await readUsed()]
      const { body: quote } = await world.send(key, 'POST', '/api/banking/payouts/quote', ask(amount))
      const funding = {
        fee: '0.000362',
        steps: [{ from: AWAY, to: HOME, route: 'cctp-fast', asset: 'USDC' }],
      }
      expect(quote).toMatchObject({ amount, funding })
      const { body: simulated } = await world.send(key, 'POST', '/api/agents/policies/simulate', {
        spend: { category: 'payout', asset: 'USDC', amount, recipientId, from: 'any' },
      })
      expect(simulated).toMatchObject({ decision: 'allow', funding })

      const idempotencyKey = crypto.randomUUID()
      const { status, body } = await pay(ask(amount), { idempotencyKey })
      expect({ status, body }).toMatchObject({ status: 200, body: { status: 'pending', amount, funding } })
      expect(await readPayout(body.id)).toMatchObject({ status: 'pending' })
      await awaitStatus(body.id, 'paid')
      const after = await readAvailable()
      // A little more may arrive than was needed.
      expect(after.home).toBeLessThan(400n)
      expect(before.home + before.away - after.home - after.away - units).toBeLessThan(400n)
      await world.expectEqual(key, address)
      const now = await readUsed()
      expect(now.count).toBe(used.count + 1)
      expect(Number(now.used) - Number(used.used)).toBeCloseTo(Number(amount) + 0.000362, 6)
      expect((await pay(ask(amount), { idempotencyKey })).body).toMatchObject({
        ...{ id: body.id, decisionId: body.decisionId, status: 'paid', funding },
      })
      const { body: activity } = await world.send(owner.token, 'GET', '/api/activity?kind=payout&limit=100')
      expect(activity.entries).toMatchObject([{ kind: 'payout', status: 'completed', amount }])
    }, 120_000)

    it('takes money of its own chain only unless it is asked to, and USDC only', async () => {
      const { amount } = await lacking()
      const { from: _from, ...own } = ask(amount)
      expect((await pay(own)).body).toMatchObject({ code: 'insufficient_funds' })
      const cash = ask('5', { asset: 'USD' })
      expect(await pay(cash)).toMatchObject({
        status: 400,
        body: { issues: [{ path: 'from', message: 'is for payouts of USDC' }] },
      })
      expect((await pay(ask('5000'))).body).toMatchObject({ code: 'insufficient_funds' })
    })

    it('moves the money of one payout for a quote that several use at once', async () => {
      const { amount } = await lacking()
      const { body: quote } = await world.send(key, 'POST', '/api/banking/payouts/quote', ask(amount))
      const before = await readAvailable()
      const use = { recipientId, asset: 'USDC', quoteId: quote.quoteId, from: 'any' }
      const answers = await Promise.all(Array.from({ length: 4 }, () => pay(use)))
      const paid = answers.filter(({ status }) => status === 200)
      expect(paid).toHaveLength(1)
      await awaitStatus(paid[0]?.body.id, 'paid')
      const readHeld = async () =>
        (await world.readBooked(key, HOME)).held + (await world.readBooked(key, AWAY)).held
      await expect.poll(readHeld, { timeout: 30_000 }).toBe(0n)
      // A burn that its call has left behind would be sent by a job now.
      await new Promise((resolve) => setTimeout(resolve, 10_000))
      await expect.poll(readHeld, { timeout: 30_000 }).toBe(0n)
      const after = await readAvailable()
      expect(before.away - after.away).toBeLessThan(3_100_000n)
      expect(after.home).toBeLessThan(400n)
      await world.expectEqual(key, address)
    }, 120_000)

    it('pays nothing by a key that is stopped while its money is on its way', async () => {
      const { units, amount } = await lacking()
      const other = await newKey()
      const before = await readAvailable()
      await world.setMode('late')
      const { body } = await pay(ask(amount), { by: other.key })
      expect(body).toMatchObject({ status: 'pending' })
      expect((await world.send(owner.token, 'DELETE', `/api/agents/keys/${other.id}`)).status).toBe(200)
      const read = async () =>
        (await world.send(owner.token, 'GET', `/api/banking/payouts/${String(body.id)}`)).body
      await expect.poll(async () => (await read()).status, { timeout: 60_000 }).toBe('failed')
      await world.setMode('normal')
      expect(await read()).toMatchObject({ reason: 'not_funded' })
      await expect
        .poll(async () => (await readAvailable()).home, { timeout: 30_000 })
        .toBeGreaterThanOrEqual(units)
      const after = await readAvailable()
      expect(before.home + before.away - after.home - after.away).toBeLessThan(3_100n)
      await world.expectEqual(owner.token, address)
    }, 120_000)

    const steps: readonly (readonly [ChainName, Step, number])[] = [
      [AWAY, 'before broadcast', 1],
      [AWAY, 'after broadcast', 1],
      [HOME, 'after broadcast', 1],
      [HOME, 'before broadcast', 2],
      [HOME, 'after broadcast', 2],
      [HOME, 'at the receipt', 2],
    ]
    it.each(steps)(
      'pays once when the gateway is killed on %s %s of transaction %i',
      async (name, step, nth) => {
        const { amount } = await lacking()
        const [before, used] = [await readAvailable(), await readUsed()]
        const killed = world.killAt(name, step, nth)
        const idempotencyKey = crypto.randomUUID()
        await pay(ask(amount), { idempotencyKey }).catch(() => undefined)
        await killed
        await world.restart()
        const { body } = await pay(ask(amount), { idempotencyKey })
        const { id } = payoutAnswer.parse(body)
        await awaitStatus(id, 'paid')
        const after = await readAvailable()
        expect(after.home).toBeLessThan(400n)
        expect(before.away - after.away - 3_000_000n).toBeGreaterThanOrEqual(0n)
        expect(before.away - after.away - 3_000_000n).toBeLessThan(3_100n)
        expect((await readUsed()).count).toBe(used.count + 1)
        await world.expectEqual(key, address)
      },
      240_000,
    )

    it('quotes no move to a person whose own key owns the wallet, as the payout makes none', async () => {
      const { amount } = await lacking()
      const quoteAs = async (by: string) =>
        (await world.send(by, 'POST', '/api/banking/payouts/quote', ask(amount))).body
      expect(await quoteAs(owner.token)).toMatchObject({ funding: { steps: [{ from: AWAY }] } })
      const signer = privateKeyToAccount(generatePrivateKey())
      const add = (said: object) =>
        world.send(owner.token, 'POST', '/api/wallets/signers', { address: signer.address, ...said })
      const { body } = await add({})
      const { domain, types, primaryType, message } = typedData.parse(body.typedData)
      const signature = await signer.signTypedData({ domain, types, primaryType, message })
      expect((await add({ signature })).status).toBe(200)
      expect(await quoteAs(owner.token)).toMatchObject({ amount, funding: null })
      expect(await quoteAs(key)).toMatchObject({ funding: { steps: [{ from: AWAY }] } })
    }, 60_000)

    it('leaves books that a stranger recomputes', () => world.expectRecomputed(), 60_000)
  })
})
