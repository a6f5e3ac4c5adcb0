/**
 * Payments that take money of another chain (`from: "any"`), over HTTP on both engines and two real chains: one decision covers the
 * payment and the move, the books are what both chains show, and nothing is paid twice, whatever the bridge or a kill does.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ownContracts } from '../../src/chain/rpc/networks.ts'
import type { Address } from '../../src/providers/chain/port.ts'
import { longestEngines } from '../engines.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import type { Step } from './chain-proxy.ts'
import { readAddress } from './keyed-owners.ts'
import type { Person } from './people.ts'
import { type ChainName, startTwoChains, type TwoChains } from './two-chains.ts'

const text = z.string()
const HOME = 'base-sepolia'
const AWAY = 'arbitrum-sepolia'
const PAYEE: Address = '0x00000000000000000000000000000000000000a1'

describe.each(longestEngines)('payments from any chain on $engine', ({ isPostgres }) => {
  describe.runIf(hasAnvil())('', () => {
    let world: TwoChains
    let owner: Person
    let agentId = ''
    let key = ''
    let address: Address = '0x'

    beforeAll(async () => {
      world = await startTwoChains(isPostgres)
      owner = await world.newGuest()
      address = await readAddress(owner)
      const created = await createKey({})
      key = created.key
      agentId = created.id
    }, 120_000)
    afterAll(() => world.stop(), 60_000)
    beforeEach(() => world.setMode('normal'))

    const createKey = async (policy: object, scopes: readonly string[] = []) => {
      const { body } = await world.send(owner.token, 'POST', '/api/developer/keys', {
        name: 'Payer',
        scopes: ['wallets:transfer', 'wallets:read', 'swaps:execute', ...scopes],
        policy: {
          perTransaction: { max: '300' },
          dailyBudget: { max: '900' },
          categories: { allow: ['transfer', 'swap'] },
          ...policy,
        },
      })
      return { id: String(body.id), key: String(body.key) }
    }
    const ask = (amount: string) => ({
      destination: PAYEE,
      amount,
      token: 'USDC',
      chain: AWAY,
      from: 'any',
    })
    const pay = (body: object, { by = key, idempotencyKey = crypto.randomUUID() as string } = {}) =>
      world.send(by, 'POST', '/api/wallets/transfer', body, { 'idempotency-key': idempotencyKey })
    const readTransfer = async (id: unknown, by = key) =>
      (await world.send(by, 'GET', `/api/wallets/transfers/${id}`)).body
    const awaitState = (id: unknown, state: string, by = key) =>
      expect
        .poll(async () => (await readTransfer(id, by)).state, { timeout: 40_000, interval: 200 })
        .toBe(state)
    const readPaid = () => world.readChain(AWAY, PAYEE)
    const readUsed = async (id = agentId) => {
      const { body } = await world.send(owner.token, 'GET', `/api/agents/keys/${id}/usage`)
      return z.looseObject({ usage: z.looseObject({ used: text, count: z.number() }) }).parse(body).usage
    }
    /** Spends that the key has made, as it sees them itself: a session does not survive another origin. */
    const readOwnCount = async () => {
      const { body } = await world.send(key, 'GET', '/api/agents/self')
      return z.looseObject({ usage: z.looseObject({ count: z.number() }) }).parse(body).usage.count
    }
    const readOrders = async (by = owner.token) => {
      const { body } = await world.send(by, 'GET', '/api/swaps/orders?limit=100')
      return z
        .array(z.looseObject({ swapId: text, status: text, decisionId: text, sent: text }))
        .parse(body.orders)
    }
    const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

    it('moves what lacks, pays, and counts both in one decision', async () => {
      const before = { paid: await readPaid(), used: await readUsed() }
      const idempotencyKey = crypto.randomUUID()
      const { status, body } = await pay(ask('25'), { idempotencyKey })
      expect({ status, body }).toMatchObject({
        status: 200,
        body: {
          status: 'funding',
          transactionHash: null,
          chain: AWAY,
          amount: '25',
          funding: {
            fee: '0.003002',
            usd: '0.003002',
            steps: [{ from: HOME, to: AWAY, route: 'cctp-fast' }],
          },
        },
      })
      expect(await readTransfer(body.transferId)).toMatchObject({ state: 'funding', transactionHash: null })
      await awaitState(body.transferId, 'confirmed')
      expect(await readPaid()).toBe(before.paid + 25_000_000n)
      await world.expectEqual(owner.token, address)
      const [order] = await readOrders()
      expect(order).toMatchObject({ decisionId: body.decisionId, status: 'confirmed' })
      const used = await readUsed()
      expect(used.count).toBe(before.used.count + 1)
      expect(Number(used.used) - Number(before.used.used)).toBeCloseTo(25.003002, 6)
      const again = await pay(ask('25'), { idempotencyKey })
      expect(again.body).toMatchObject({
        transferId: body.transferId,
        decisionId: body.decisionId,
        status: 'confirmed',
        funding: { fee: '0.003002' },
      })
      expect(await readPaid()).toBe(before.paid + 25_000_000n)
    }, 60_000)

    it('takes money of its own chain only unless it is asked to, and says what is elsewhere', async () => {
      const { from: _from, ...own } = ask('30')
      const { body } = await pay(own)
      expect(body).toMatchObject({
        code: 'insufficient_funds',
        elsewhere: expect.arrayContaining([expect.objectContaining({ chain: HOME, asset: 'USDC' })]),
      })
      const limited = await createKey({ chains: [AWAY] })
      expect((await pay(ask('30'), { by: limited.key })).body).toMatchObject({ code: 'insufficient_funds' })
      expect(await readOrders()).toHaveLength(1)
    })

    it('holds nothing where no chain has the money, and counts the cost against every limit', async () => {
      const rich = await createKey({ perTransaction: { max: '5000' }, dailyBudget: { max: '5000' } })
      expect((await pay(ask('990'), { by: rich.key })).body).toMatchObject({ code: 'insufficient_funds' })
      // The payment alone is within the limit, the payment with its cost is not.
      expect((await pay(ask('300'))).body).toMatchObject({
        code: 'policy_denied',
        violations: [{ rule: 'per_transaction', requested: '300.036005' }],
      })
      await world.expectEqual(owner.token, address)
    })

    it('tells the cost beforehand, in simulations and approvals, and asks once for both', async () => {
      const spend = { category: 'transfer', amount: '40', chain: AWAY, counterparty: PAYEE, from: 'any' }
      const { body: simulated } = await world.send(key, 'POST', '/api/agents/policies/simulate', { spend })
      // What an earlier move has left there is used first.
      const fee: unknown = expect.stringMatching(/^0\.0048\d\d$/)
      expect(simulated).toMatchObject({
        decision: 'allow',
        usd: expect.stringMatching(/^40\.0048\d\d$/),
        funding: { fee, usd: fee, steps: [{ from: HOME, to: AWAY, route: 'cctp-fast' }] },
      })
      const asking = await createKey({ approval: { above: '10' } })
      const before = await readPaid()
      const idempotencyKey = crypto.randomUUID()
      const { body } = await pay(ask('40'), { by: asking.key, idempotencyKey })
      expect(body).toMatchObject({ code: 'approval_required' })
      const path = `/api/approvals/${String(body.approvalId)}`
      expect((await world.send(owner.token, 'GET', path)).body).toMatchObject({
        status: 'pending',
        funding: { fee, usd: fee, steps: [{ from: HOME, to: AWAY }] },
      })
      const { body: approved } = await world.send(owner.token, 'POST', path, { decision: 'approve' })
      expect(approved).toMatchObject({ status: 'approved', answer: { status: 'funding' } })
      await expect.poll(readPaid, { timeout: 30_000 }).toBe(before + 40_000_000n)
      await expect
        .poll(async () => (await pay(ask('40'), { by: asking.key, idempotencyKey })).body, {
          timeout: 30_000,
        })
        .toMatchObject({ status: 'confirmed' })
      await world.expectEqual(owner.token, address)
    }, 60_000)

    it('moves only what lacks, and pays from both', async () => {
      const { body: moved } = await world.send(key, 'POST', '/api/swaps/orders', {
        sell: { chain: HOME, token: 'USDC', amount: '12' },
        buy: { chain: AWAY, token: 'USDC' },
      })
      await expect
        .poll(async () => (await readOrders()).find(({ swapId }) => swapId === moved.swapId)?.status, {
          timeout: 30_000,
        })
        .toBe('confirmed')
      const before = { home: await world.readChain(HOME, address), paid: await readPaid() }
      const { available } = await world.readBooked(owner.token, AWAY)
      await world.setMode('late')
      const { body } = await pay(ask('20'))
      expect(body).toMatchObject({ status: 'funding' })
      expect(await world.readBooked(owner.token, AWAY)).toMatchObject({ available: 0n })
      await awaitState(body.transferId, 'confirmed')
      expect(await readPaid()).toBe(before.paid + 20_000_000n)
      const left = before.home - (await world.readChain(HOME, address))
      expect(left).toBeGreaterThanOrEqual(20_000_000n - available)
      expect(left).toBeLessThan(20_000_000n - available + 10_000n)
      await world.expectEqual(owner.token, address)
    }, 60_000)

    it('answers a repeat alike while its money is late, and pays once', async () => {
      await world.setMode('late')
      const [before, used] = [await readPaid(), await readUsed()]
      const idempotencyKey = crypto.randomUUID()
      const answers = await Promise.all([
        pay(ask('5'), { idempotencyKey }),
        pay(ask('5'), { idempotencyKey }),
        pay(ask('5'), { idempotencyKey }),
      ])
      const accepted = answers.filter(({ status }) => status === 200)
      expect(accepted.length).toBeGreaterThan(0)
      for (const { status, body } of answers)
        expect(status === 200 ? body.status : body.code).toMatch(/^(funding|idempotency_in_progress)$/)
      const transferId = accepted[0]?.body.transferId
      expect((await pay(ask('5'), { idempotencyKey })).body).toMatchObject({ transferId, status: 'funding' })
      expect((await pay(ask('6'), { idempotencyKey })).body).toMatchObject({ code: 'idempotency_key_reused' })
      await awaitState(transferId, 'confirmed')
      expect(await readPaid()).toBe(before + 5_000_000n)
      expect((await readUsed()).count).toBe(used.count + 1)
      await world.expectEqual(owner.token, address)
    }, 60_000)

    it('ends unpaid when its money is lost for too long, and has it once it arrives', async () => {
      await world.setMode('lost')
      const [before, used] = [await readPaid(), await readUsed()]
      const there = await world.readBooked(owner.token, AWAY)
      const idempotencyKey = crypto.randomUUID()
      const { body } = await pay(ask('9'), { idempotencyKey })
      await sleep(4_000)
      expect(await readTransfer(body.transferId)).toMatchObject({ state: 'funding' })
      await world.expectEqual(owner.token, address)
      await world.send(owner.token, 'POST', '/sandbox/clock', { advance: 31 * 60 })
      await awaitState(body.transferId, 'failed')
      expect(await readTransfer(body.transferId)).toMatchObject({
        failure: 'its money did not arrive in time',
      })
      expect((await pay(ask('9'), { idempotencyKey })).body).toMatchObject({ code: 'provider_unavailable' })
      expect(await readUsed()).toEqual(expect.objectContaining({ used: used.used, count: used.count }))
      expect(await world.readBooked(owner.token, AWAY)).toEqual(there)
      await world.setMode('normal')
      await expect
        .poll(async () => (await world.readBooked(owner.token, AWAY)).available - there.available, {
          timeout: 30_000,
        })
        .toBeGreaterThanOrEqual(9_000_000n - there.available)
      await sleep(2_000)
      expect(await readPaid()).toBe(before)
      await world.expectEqual(owner.token, address)
    }, 90_000)

    it('ends unpaid where the burn is refused, and takes nothing', async () => {
      const desk = ownContracts.bridgeDesk.address
      const code = await world.rpc(HOME, 'eth_getCode', [desk, 'latest'])
      const [before, used] = [await readPaid(), await readUsed()]
      const there = await world.readBooked(owner.token, HOME)
      await world.rpc(HOME, 'anvil_setCode', [desk, '0xfe'])
      const idempotencyKey = crypto.randomUUID()
      const { body } = await pay(ask('60'), { idempotencyKey })
      await world.rpc(HOME, 'anvil_setCode', [desk, code])
      expect(body).toMatchObject({ code: 'provider_unavailable' })
      expect((await pay(ask('60'), { idempotencyKey })).body).toMatchObject({ code: 'provider_unavailable' })
      expect(await world.readBooked(owner.token, HOME)).toEqual(there)
      expect((await readUsed()).used).toBe(used.used)
      await sleep(3_000)
      expect(await readPaid()).toBe(before)
      await world.expectEqual(owner.token, address)
    }, 60_000)

    it('pays nobody for a key that is paused while its money is on its way', async () => {
      await world.setMode('late')
      const before = await readPaid()
      const paused = await createKey({})
      const { body } = await pay(ask('61'), { by: paused.key })
      expect(body).toMatchObject({ status: 'funding' })
      await world.send(owner.token, 'POST', `/api/agents/keys/${paused.id}/pause`, {})
      await expect
        .poll(
          async () =>
            (await world.send(owner.token, 'GET', `/api/wallets/transfers/${body.transferId}`)).body,
          { timeout: 30_000 },
        )
        .toMatchObject({ state: 'failed' })
      await sleep(1_500)
      expect(await readPaid()).toBe(before)
      await world.expectEqual(owner.token, address)
    }, 60_000)

    it('gives two payments the same remaining money once', async () => {
      const [home, away] = [
        await world.readBooked(owner.token, HOME),
        await world.readBooked(owner.token, AWAY),
      ]
      const amount = String(Math.floor(Number(home.available + away.available) / 2e6) + 20)
      const big = await createKey({ perTransaction: { max: '2000' }, dailyBudget: { max: '5000' } })
      const before = await readPaid()
      const answers = await Promise.all([
        pay(ask(amount), { by: big.key }),
        pay(ask(amount), { by: big.key }),
      ])
      expect(answers.map(({ body }) => body.status === 'funding' || body.code).toSorted()).toEqual(
        ['insufficient_funds', true].toSorted(),
      )
      const paid = answers.find(({ status }) => status === 200)
      await awaitState(paid?.body.transferId, 'confirmed', big.key)
      expect(await readPaid()).toBe(before + BigInt(amount) * 1_000_000n)
      expect(Number((await readUsed(big.id)).used)).toBeLessThan(Number(amount) + 1)
      await world.expectEqual(owner.token, address)
    }, 60_000)

    it('is one payment in activity, and statements add up', async () => {
      const { body } = await world.send(owner.token, 'GET', '/api/activity?limit=100')
      const entries = z.array(z.looseObject({ kind: text, id: text })).parse(body.entries)
      // The one swap that was asked for, out and in.
      expect(entries.filter(({ kind }) => kind === 'swap')).toHaveLength(2)
      const { body: statement } = await world.send(
        owner.token,
        'GET',
        `/api/statements/${new Date().toISOString().slice(0, 7)}`,
      )
      const { balances, movements } = z
        .looseObject({
          balances: z.array(z.looseObject({ asset: text, opening: text, closing: text })),
          movements: z.array(z.looseObject({ asset: text, amount: text, direction: text })),
        })
        .parse(statement)
      for (const { asset, opening, closing } of balances) {
        const moved = movements
          .filter((one) => one.asset === asset)
          .reduce((sum, { direction, amount }) => sum + (direction === 'in' ? 1 : -1) * Number(amount), 0)
        expect(Number(opening) + moved).toBeCloseTo(Number(closing), 6)
      }
    })

    const steps: readonly (readonly [ChainName, Step, number])[] = [
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
      async (name, step, nth) => {
        const { available } = await world.readBooked(key, AWAY)
        const amount = (Number(available) / 1e6 + 2).toFixed(6)
        const units = available + 2_000_000n
        const [before, used] = [await readPaid(), await readOwnCount()]
        const killed = world.killAt(name, step, nth)
        const idempotencyKey = crypto.randomUUID()
        await pay(ask(amount), { idempotencyKey }).catch(() => undefined)
        await killed
        await world.restart()
        const { body } = await pay(ask(amount), { idempotencyKey })
        await expect.poll(async () => (await readPaid()) - before, { timeout: 90_000 }).toBe(units)
        await expect
          .poll(async () => (await pay(ask(amount), { idempotencyKey })).body.status, { timeout: 60_000 })
          .toBe('confirmed')
        await sleep(2_000)
        expect(await readPaid()).toBe(before + units)
        expect(await readOwnCount()).toBe(used + 1)
        expect((await readOrders(key))[0]).toMatchObject({ status: 'confirmed', decisionId: body.decisionId })
        await world.expectEqual(key, address)
      },
      240_000,
    )

    it('leaves books that a stranger recomputes', () => world.expectRecomputed(), 60_000)
  })
})
