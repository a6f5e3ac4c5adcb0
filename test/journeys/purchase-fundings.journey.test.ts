/**
 * Purchases on two real chains, over HTTP on both engines: from a seller on either, with the money on the same or moved first under the
 * one decision. Each is paid once for the agreed price or not at all, and the books are what both chains show, whatever the seller, the
 * bridge or a kill does.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Address } from '../../src/providers/chain/port.ts'
import { longestEngines } from '../engines.ts'
import { callMcp, connectMcp } from '../mcp/client.ts'
import { type FlakySellers, GO_ON, type Moment, startFlakySellers } from '../rails/buying/flaky-sellers.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import type { Step } from './chain-proxy.ts'
import { readAddress } from './keyed-owners.ts'
import type { Person } from './people.ts'
import { type ChainName, startTwoChains, type TwoChains } from './two-chains.ts'

const text = z.string()
const HOME = 'base-sepolia'
const AWAY = 'arbitrum-sepolia'
const PAYEE: Address = '0x00000000000000000000000000000000000000b2'

describe.each(longestEngines)('purchases on two chains on $engine', ({ isPostgres }) => {
  describe.runIf(hasAnvil())('', () => {
    let world: TwoChains
    let away: FlakySellers
    let home: FlakySellers
    let owner: Person
    let agentId = ''
    let key = ''
    let address: Address = '0x'
    let runs = 0

    beforeAll(async () => {
      world = await startTwoChains(isPostgres)
      away = await startFlakySellers(world.urlOf(AWAY), AWAY)
      home = await startFlakySellers(world.urlOf(HOME), HOME)
      owner = await world.newGuest()
      address = await readAddress(owner)
      const created = await createKey({})
      key = created.key
      agentId = created.id
    }, 120_000)
    afterAll(async () => {
      await away?.close()
      await home?.close()
      await world?.stop()
    }, 60_000)
    beforeEach(() => world.setMode('normal'))

    const createKey = async (policy: object, by = owner) => {
      const { body } = await world.send(by.token, 'POST', '/api/developer/keys', {
        name: 'Buyer',
        scopes: ['purchases:pay', 'wallets:read', 'swaps:execute'],
        policy: {
          perTransaction: { max: '300' },
          dailyBudget: { max: '900' },
          categories: { allow: ['x402', 'swap'] },
          ...policy,
        },
      })
      return { id: String(body.id), key: String(body.key) }
    }
    /** Names a report for sale. @param units its price in smallest units. */
    const offer = (units: bigint, { sellers = away, kind = 'honest' } = {}) => {
      runs += 1
      const run = `report-${runs}`
      sellers.setTerms(run, { payTo: PAYEE, amount: units.toString() })
      return { run, url: `${sellers.origin}/${kind}/${run}` }
    }
    const buy = (
      url: string,
      { by = key, idempotencyKey = crypto.randomUUID() as string, ...members }: Record<string, string> = {},
    ) =>
      world.send(
        by,
        'POST',
        '/api/purchases',
        { url, maxAmount: '300', ...members },
        { 'idempotency-key': idempotencyKey },
      )
    const readPaid = (name: ChainName = AWAY) => world.readChain(name, PAYEE)
    const readUsed = async (id = agentId) => {
      const { body } = await world.send(owner.token, 'GET', `/api/agents/keys/${id}/usage`)
      return z.looseObject({ usage: z.looseObject({ used: text, count: z.number() }) }).parse(body).usage
    }
    const readOwnCount = async () => {
      const { body } = await world.send(key, 'GET', '/api/agents/self')
      return z.looseObject({ usage: z.looseObject({ count: z.number() }) }).parse(body).usage.count
    }
    const readOrders = async (by = key) => {
      const { body } = await world.send(by, 'GET', '/api/swaps/orders?limit=100')
      return z.array(z.looseObject({ swapId: text, status: text, decisionId: text })).parse(body.orders)
    }
    const readPurchase = async (id: unknown) =>
      (await world.send(key, 'GET', `/api/purchases/${String(id)}`)).body
    /** A price that needs money of the other chain. */
    const dear = async (by = key) => (await world.readBooked(by, AWAY)).available + 2_000_000n

    it('moves the money first and pays once, under one decision', async () => {
      const before = { paid: await readPaid(), used: await readUsed() }
      const { url } = offer(25_000_000n)
      const idempotencyKey = crypto.randomUUID()
      const { status, body } = await buy(url, { idempotencyKey })
      expect({ status, body }).toMatchObject({
        status: 200,
        body: {
          status: 'delivered',
          charged: '25',
          network: 'eip155:421614',
          replayed: false,
          funding: {
            fee: '0.003002',
            usd: '0.003002',
            steps: [{ from: HOME, to: AWAY, route: 'cctp-fast' }],
          },
        },
      })
      expect(await readPaid()).toBe(before.paid + 25_000_000n)
      expect((await readOrders())[0]).toMatchObject({ decisionId: body.decisionId, status: 'confirmed' })
      const used = await readUsed()
      expect(used.count).toBe(before.used.count + 1)
      expect(Number(used.used) - Number(before.used.used)).toBeCloseTo(25.003002, 6)
      await world.expectEqual(owner.token, address)
      const again = await buy(url, { idempotencyKey })
      expect(again.body).toMatchObject({
        ...{ status: 'delivered', purchaseId: body.purchaseId, decisionId: body.decisionId },
        ...{ replayed: true, funding: { fee: '0.003002' } },
      })
      expect(await readPaid()).toBe(before.paid + 25_000_000n)
    }, 60_000)

    const move = async (by: string, amount: string) => {
      const { body: moved } = await world.send(by, 'POST', '/api/swaps/orders', {
        sell: { chain: HOME, token: 'USDC', amount },
        buy: { chain: AWAY, token: 'USDC' },
      })
      await expect
        .poll(async () => (await readOrders(by)).find(({ swapId }) => swapId === moved.swapId)?.status, {
          timeout: 30_000,
        })
        .toBe('confirmed')
    }

    it('pays on the second chain with what lies there, and moves nothing', async () => {
      await move(key, '6')
      const orders = await readOrders()
      const before = { paid: await readPaid(), away: await world.readBooked(key, AWAY) }
      const { body } = await buy(offer(2_500_000n).url)
      expect(body).toMatchObject({
        ...{ status: 'delivered', charged: '2.5', funding: null, network: 'eip155:421614' },
      })
      expect(await readPaid()).toBe(before.paid + 2_500_000n)
      expect((await world.readBooked(key, AWAY)).available).toBe(before.away.available - 2_500_000n)
      expect(await readOrders()).toHaveLength(orders.length)
      await world.expectEqual(owner.token, address)
      const { body: proof } = await world.send(
        key,
        'GET',
        `/api/purchases/${String(body.purchaseId)}/evidence`,
      )
      expect(proof).toMatchObject({ evidence: { settlement: { log: { units: '2500000' } } } })
    }, 60_000)

    it('returns what a seller does not take to the wallet on its chain', async () => {
      const before = { paid: await readPaid(), away: await world.readBooked(key, AWAY) }
      const { body } = await buy(offer(1_000_000n, { kind: 'changes' }).url)
      expect(body).toMatchObject({ code: 'terms_not_payable' })
      await expect
        .poll(async () => (await world.readBooked(key, AWAY)).available, { timeout: 40_000 })
        .toBe(before.away.available)
      expect(await readPaid()).toBe(before.paid)
      await world.expectEqual(owner.token, address)
    }, 60_000)

    it('still pays on the first chain as before', async () => {
      const before = await readPaid(HOME)
      const { url } = offer(20_000n, { sellers: home })
      expect((await buy(url)).body).toMatchObject({ status: 'delivered', funding: null, charged: '0.02' })
      expect(await readPaid(HOME)).toBe(before + 20_000n)
    }, 60_000)

    it('moves nothing unless it may', async () => {
      const units = await dear()
      const orders = await readOrders()
      expect((await buy(offer(units).url, { from: 'chain' })).body).toMatchObject({
        code: 'insufficient_funds',
        chain: AWAY,
        elsewhere: expect.arrayContaining([expect.objectContaining({ chain: HOME, asset: 'USDC' })]),
      })
      const limited = await createKey({ chains: [AWAY] })
      expect((await buy(offer(units).url, { by: limited.key })).body).toMatchObject({
        code: 'insufficient_funds',
      })
      const elsewhere = await createKey({ chains: [HOME] })
      expect((await buy(offer(units).url, { by: elsewhere.key })).body).toMatchObject({
        code: 'policy_denied',
      })
      // The price alone is within the limit, the price with its cost is not.
      expect((await buy(offer(300_000_000n).url)).body).toMatchObject({
        code: 'policy_denied',
        violations: [{ rule: 'per_transaction' }],
      })
      expect(await readOrders()).toHaveLength(orders.length)
      await world.expectEqual(owner.token, address)
    }, 60_000)

    it('tells the cost beforehand, and asks once for both', async () => {
      const units = await dear()
      const { url } = offer(units)
      const fee = expect.stringMatching(/^0\.00\d+$/)
      const steps = [{ from: HOME, to: AWAY, route: 'cctp-fast' }]
      expect((await world.send(key, 'POST', '/api/purchases/quote', { url })).body).toMatchObject({
        offers: [{ payable: true, network: 'eip155:421614' }],
        funding: { fee, steps },
      })
      const amount = (Number(units) / 1e6).toFixed(6)
      const spend = { category: 'x402', amount, chain: AWAY, counterparty: PAYEE, from: 'any' }
      expect((await world.send(key, 'POST', '/api/agents/policies/simulate', { spend })).body).toMatchObject({
        decision: 'allow',
        funding: { fee, steps },
      })
      const asking = await createKey({ approval: { above: '0.5' } })
      const before = await readPaid()
      const idempotencyKey = crypto.randomUUID()
      const { body } = await buy(url, { by: asking.key, idempotencyKey })
      expect(body).toMatchObject({ code: 'approval_required' })
      expect(await readPaid()).toBe(before)
      const path = `/api/approvals/${String(body.approvalId)}`
      expect((await world.send(owner.token, 'GET', path)).body).toMatchObject({
        status: 'pending',
        funding: { fee, steps },
      })
      await world.send(owner.token, 'POST', path, { decision: 'approve' })
      await expect.poll(readPaid, { timeout: 40_000 }).toBe(before + units)
      await expect
        .poll(async () => (await buy(url, { by: asking.key, idempotencyKey })).body, { timeout: 40_000 })
        .toMatchObject({ status: 'delivered', funding: { steps } })
      expect(await readPaid()).toBe(before + units)
      await world.expectEqual(owner.token, address)
    }, 120_000)

    it('buys over MCP by the same one decision', async () => {
      const units = await dear()
      const before = await readPaid()
      const client = await connectMcp(world.readOrigin(), {
        requestInit: { headers: { authorization: `Bearer ${key}` } },
      })
      const { url } = offer(units)
      const quoted = await callMcp(client, 'purchases_quote', { url })
      const steps = [{ from: HOME, to: AWAY }]
      expect(quoted.body).toMatchObject({ funding: { steps } })
      const call = { url, maxAmount: '300', idempotency_key: crypto.randomUUID() }
      const bought = await callMcp(client, 'purchases_buy', call)
      expect(bought).toMatchObject({ isError: false, body: { status: 'delivered', funding: { steps } } })
      const again = await callMcp(client, 'purchases_buy', call)
      expect(again.body).toMatchObject({ purchaseId: bought.body.purchaseId, replayed: true })
      const stay = { url: offer(await dear()).url, maxAmount: '300', from: 'chain' }
      expect(
        (await callMcp(client, 'purchases_buy', { ...stay, idempotency_key: crypto.randomUUID() })).body,
      ).toMatchObject({ code: 'insufficient_funds' })
      await client.close()
      expect(await readPaid()).toBe(before + units)
      await world.expectEqual(owner.token, address)
    }, 60_000)

    it('gives equal calls one answer and one payment while the money is late', async () => {
      await world.setMode('late')
      const units = await dear()
      const [before, used] = [await readPaid(), await readUsed()]
      const { url } = offer(units)
      const idempotencyKey = crypto.randomUUID()
      const answers = await Promise.all([1, 2, 3].map(() => buy(url, { idempotencyKey })))
      for (const { status, body } of answers)
        expect(status === 200 ? body.status : body.code).toMatch(/^(delivered|idempotency_in_progress)$/)
      expect((await buy(url, { idempotencyKey })).body).toMatchObject({ status: 'delivered' })
      expect(await readPaid()).toBe(before + units)
      expect((await readUsed()).count).toBe(used.count + 1)
      await world.expectEqual(owner.token, address)
    }, 90_000)

    it('ends unpaid where the seller has changed its terms meanwhile, with the money on its chain', async () => {
      await world.setMode('late')
      const units = await dear()
      const [before, used] = [await readPaid(), await readUsed()]
      const { run, url } = offer(units)
      away.interrupt(run, 'asked', async () => {
        // The terms of the first answer are still the old ones.
        void sleep(300).then(() => away.setTerms(run, { payTo: PAYEE, amount: (units + 1n).toString() }))
        return GO_ON
      })
      const idempotencyKey = crypto.randomUUID()
      const { body } = await buy(url, { idempotencyKey })
      expect(body).toMatchObject({ code: 'terms_not_payable', reason: 'terms_changed' })
      expect(await readPurchase(body.purchaseId)).toMatchObject({ status: 'failed', charged: '0' })
      expect((await buy(url, { idempotencyKey })).body).toMatchObject({ code: 'terms_not_payable' })
      expect((await readUsed()).used).toBe(used.used)
      expect((await world.readBooked(key, AWAY)).available).toBeGreaterThanOrEqual(units)
      expect(await readPaid()).toBe(before)
      await world.expectEqual(owner.token, address)
    }, 90_000)

    it('ends unpaid where its money is lost for too long, and has it once it arrives', async () => {
      await world.setMode('lost')
      const units = await dear()
      const [before, used] = [await readPaid(), await readUsed()]
      const there = await world.readBooked(key, AWAY)
      const { url } = offer(units)
      const idempotencyKey = crypto.randomUUID()
      const { body } = await buy(url, { idempotencyKey })
      expect(body).toMatchObject({ code: 'provider_unavailable', retryAfter: 5 })
      expect(await readPurchase(body.purchaseId)).toMatchObject({ status: 'settlement_pending' })
      await world.expectEqual(owner.token, address)
      await world.send(owner.token, 'POST', '/sandbox/clock', { advance: 31 * 60 })
      await expect
        .poll(async () => (await readPurchase(body.purchaseId)).status, { timeout: 30_000 })
        .toBe('failed')
      expect((await buy(url, { idempotencyKey })).body).toMatchObject({ code: 'provider_unavailable' })
      expect((await readUsed()).used).toBe(used.used)
      expect(await world.readBooked(key, AWAY)).toEqual(there)
      await world.setMode('normal')
      await expect
        .poll(async () => (await world.readBooked(key, AWAY)).available, { timeout: 30_000 })
        .toBeGreaterThanOrEqual(units)
      expect(await readPaid()).toBe(before)
      await world.expectEqual(owner.token, address)
    }, 120_000)

    it('pays nobody for a key that is paused while its money is on its way', async () => {
      await world.setMode('late')
      const before = await readPaid()
      const paused = await createKey({})
      const { url } = offer(await dear())
      const [{ body }] = await Promise.all([
        buy(url, { by: paused.key }),
        sleep(1_500).then(() => world.send(owner.token, 'POST', `/api/agents/keys/${paused.id}/pause`, {})),
      ])
      expect(body).toMatchObject({ code: expect.stringMatching(/^(provider_unavailable|policy_denied)$/) })
      await sleep(1_500)
      expect(await readPaid()).toBe(before)
      await world.expectEqual(owner.token, address)
    }, 60_000)

    it('buys on the first chain with money that is on the second', async () => {
      const rich = await world.newGuest()
      const at = await readAddress(rich)
      const limits = { perTransaction: { max: '2000' }, dailyBudget: { max: '5000' } }
      const buyer = await createKey(limits, rich)
      const { available } = await world.readBooked(rich.token, HOME)
      await move(buyer.key, (Number(available) / 1e6 - 3).toFixed(6))
      const before = await readPaid(HOME)
      const { url } = offer(20_000_000n, { sellers: home })
      expect((await buy(url, { by: buyer.key })).body).toMatchObject({
        ...{ status: 'delivered', charged: '20', network: 'eip155:84532' },
        funding: { steps: [{ from: AWAY, to: HOME }] },
      })
      expect(await readPaid(HOME)).toBe(before + 20_000_000n)
      await world.expectEqual(rich.token, at)
    }, 90_000)

    const killed = async (kill: (run: string) => Promise<unknown>) => {
      const units = await dear()
      const [before, count] = [await readPaid(), await readOwnCount()]
      const { run, url } = offer(units)
      const idempotencyKey = crypto.randomUUID()
      const dead = kill(run)
      await buy(url, { idempotencyKey }).catch(() => undefined)
      await dead
      await world.restart()
      await expect
        .poll(async () => (await buy(url, { idempotencyKey })).body, { timeout: 100_000, interval: 500 })
        .toMatchObject({ status: 'delivered' })
      expect(await readPaid()).toBe(before + units)
      expect(await readOwnCount()).toBe(count + 1)
      await sleep(1_500)
      expect(await readPaid()).toBe(before + units)
      await world.expectEqual(key, address)
    }

    const steps: readonly (readonly [ChainName, Step, number])[] = [
      // The burn, the mint, and the payment to the purse.
      [HOME, 'before broadcast', 1],
      [HOME, 'after broadcast', 1],
      [HOME, 'at the receipt', 1],
      [AWAY, 'before broadcast', 1],
      [AWAY, 'after broadcast', 1],
      [AWAY, 'before broadcast', 2],
      [AWAY, 'after broadcast', 2],
      [AWAY, 'at the receipt', 2],
    ]
    it.each(steps)(
      'pays once when the gateway is killed on %s %s of transaction %i',
      (name, step, nth) => killed(() => world.killAt(name, step, nth)),
      240_000,
    )

    const moments: readonly Moment[] = ['paid', 'settled']
    it.each(moments)(
      'pays once when the gateway is killed as the seller has the request, %s',
      (moment) =>
        killed(
          (run) =>
            new Promise((resolve) =>
              away.interrupt(run, moment, async () => {
                await world.kill()
                resolve(undefined)
              }),
            ),
        ),
      240_000,
    )

    it('leaves books that a stranger recomputes', () => world.expectRecomputed(), 60_000)
  })
})
