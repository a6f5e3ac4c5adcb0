/**
 * Swaps through the offers of LI.FI and 0x, over HTTP on both engines and a real chain: the cheaper one is executed, and one that lies
 * moves nothing.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type AggregatorServers,
  apiKeys,
  type Lie,
  startAggregators,
} from '../contracts/aggregator-servers.ts'
import { overBothEnginesOnNodes } from './both-engines.ts'
import { readAddress, tokenBalance } from './keyed-owners.ts'
import { newGuest, type Person } from './people.ts'

let servers: AggregatorServers
beforeAll(async () => {
  servers = await startAggregators()
})
afterAll(() => servers?.close())

overBothEnginesOnNodes(
  'swaps by aggregators',
  (world) => {
    let owner: Person
    let address = ''
    beforeAll(async () => {
      servers.rpcUrl = world.rpcUrl()
      owner = await newGuest(world.gateway().origin)
      address = await readAddress(owner)
    }, 60_000)
    beforeEach(() => {
      servers.rpcUrl = world.rpcUrl()
      servers.lie = null
      servers.shares = { lifi: 10_000, '0x': 10_000 }
    })
    const quote = async () => {
      const { status, body } = await owner.send('POST', '/api/swaps', {
        ...{ fromToken: 'USDC', toToken: 'EURC', fromChain: 'base-sepolia', amountIn: '10' },
      })
      return { status, body }
    }
    const swap = (quoteId: unknown) =>
      owner.send('POST', '/api/swaps/orders', { quoteId }, { 'idempotency-key': crypto.randomUUID() })
    const readChain = async () => [
      await tokenBalance(world.rpcUrl(), 'USDC', address),
      await tokenBalance(world.rpcUrl(), 'EURC', address),
    ]
    const readBooked = async () => {
      const { body } = await owner.send('GET', '/api/wallets')
      const { balances } = z
        .looseObject({
          balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
        })
        .parse(body)
      const read = (symbol: string) => {
        const found = balances.find(({ token }) => token === symbol)
        return BigInt(Math.round((Number(found?.amount ?? 0) + Number(found?.held ?? 0)) * 1e6))
      }
      return [read('USDC'), read('EURC')]
    }

    it.each([
      { cheaper: 'lifi', dearer: '0x' },
      { cheaper: '0x', dearer: 'lifi' },
    ] as const)('executes the offer of $cheaper, which gives more', async ({ cheaper, dearer }) => {
      servers.shares[dearer] = 9_900
      servers.asked.length = 0
      const [usdc = 0n, eurc = 0n] = await readChain()
      const { body: offered } = await quote()
      expect(offered).toMatchObject({ executable: true, tool: cheaper })
      expect(servers.asked).toHaveLength(2)
      for (const { status } of servers.asked) expect(status).toBe(200)
      const { body } = await swap(offered.id)
      expect(body).toMatchObject({ status: 'confirmed', sent: '10', route: cheaper })
      const received = BigInt(Math.round(Number(body.received) * 1e6))
      expect(received).toBeGreaterThanOrEqual(BigInt(Math.round(Number(offered.amountOutMin) * 1e6)))
      expect(await readChain()).toEqual([usdc - 10_000_000n, eurc + received])
      expect(await readBooked()).toEqual(await readChain())
    })

    const lies: readonly Lie[] = ['buys for another', 'takes twice the amount', 'approves another']
    it.each(lies)('moves nothing by an offer that %s', async (lie) => {
      const before = await readChain()
      for (const dearer of ['lifi', '0x'] as const) {
        servers.lie = lie
        servers.shares = { lifi: 10_000, '0x': 10_000, [dearer]: 9_000 }
        const { body: offered } = await quote()
        expect(offered).toMatchObject({ executable: true })
        expect(await swap(offered.id)).toMatchObject({
          body: { code: 'swap_rejected', reason: 'route_refused' },
        })
      }
      expect(await readChain()).toEqual(before)
      expect(await readBooked()).toEqual(before)
    })

    it('takes no offer of 0x for another amount, and none that asks for native coin', async () => {
      servers.shares.lifi = 9_000
      servers.lie = 'sells another amount'
      expect((await quote()).body).toMatchObject({
        tool: 'lifi',
        failed: expect.arrayContaining([{ tool: '0x', reason: 'bad_answer' }]),
      })
      servers.lie = 'asks for coin'
      expect((await quote()).body).toMatchObject({ executable: false })
    })
  },
  () => ({
    SWAP_AGGREGATORS: 'lifi,0x',
    LIFI_URL: servers.origin,
    LIFI_API_KEY: apiKeys.lifi,
    ZEROX_URL: servers.origin,
    ZEROX_API_KEY: apiKeys['0x'],
  }),
)
