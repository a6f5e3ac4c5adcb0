/** A gateway that is killed at each step of taking money from escrow: it comes back once, in the books as on the chain. */
import { once } from 'node:events'
import { createPublicClient, http, parseAbiItem } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { escrowAddress } from '../../../src/providers/payment-escrow.ts'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import { type ChainProxy, type Step, startChainProxy } from '../../journeys/chain-proxy.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person, requestJson } from '../../journeys/people.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { type EscrowSellers, startEscrowSellers } from './escrow-sellers.ts'

/** The first transaction brings the gas, the second one takes the money. */
const cuts: readonly (readonly [Step, number])[] = [
  ['after broadcast', 1],
  ['before broadcast', 2],
  ['after broadcast', 2],
]
const wallet = z.looseObject({
  balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
  purse: z.array(z.looseObject({ amount: z.string() })),
})

describe.skipIf(testServerUrl === undefined || !hasAnvil())('a gateway killed while it reclaims', () => {
  let node: AnvilProcess
  let proxy: ChainProxy
  let gateway: Gateway
  let sellers: EscrowSellers
  let owner: Person
  let bearer = ''
  let env: Record<string, string> = {}
  let drop = async () => {}

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    proxy = await startChainProxy(() => node.url)
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    env = { DATABASE_URL: created.url, CHAIN_RPC_URL: proxy.url, LOG_LEVEL: 'error' }
    gateway = await startGateway(env)
    env = { ...env, PORT: new URL(gateway.origin).port }
    sellers = await startEscrowSellers(node.url)
    owner = await newGuest(gateway.origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['purchases:pay'],
      policy: {
        perTransaction: { max: '0.05' },
        dailyBudget: { max: '0.05' },
        categories: { allow: ['x402'] },
      },
    })
    bearer = `Bearer ${String(body.key)}`
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    await proxy?.close()
    await sellers?.close()
    await node?.stop()
    await drop()
  }, 60_000)

  const readUnits = async () => {
    const { balances, purse } = wallet.parse((await owner.send('GET', '/api/wallets')).body)
    const own = balances.filter(({ token }) => token === 'USDC')
    return [...own.flatMap(({ amount, held }) => [amount, held]), ...purse.map(({ amount }) => amount)]
      .map((amount) => BigInt(Math.round(Number(amount) * 1e6)))
      .reduce((sum, units) => sum + units, 0n)
  }

  it('takes it once, and books it once', async () => {
    const before = await readUnits()
    for (const [at, [step, nth]] of cuts.entries()) {
      const sent = {
        headers: { authorization: bearer, 'idempotency-key': `k${at}` },
        body: { url: `${sellers.origin}/own/silent/mute-k${at}?capture=30`, maxAmount: '0.01' },
      }
      const { body: bought } = await requestJson(gateway.origin, 'POST', '/api/purchases', sent)
      expect(bought).toMatchObject({ status: 'settlement_pending' })
      const killed = new Promise<void>((resolve) =>
        proxy.cut(step, nth, async () => {
          const exited = once(gateway.process, 'exit')
          gateway.process.kill('SIGKILL')
          await exited
          resolve()
        }),
      )
      await killed
      gateway = await startGateway(env)
      await expect
        .poll(
          async () => (await owner.send('GET', `/api/purchases/${String(bought.purchaseId)}`)).body.status,
          { timeout: 60_000, interval: 500 },
        )
        .toBe('failed')
      await expect.poll(readUnits, { timeout: 60_000, interval: 500 }).toBe(before)
      await expect
        .poll(async () => wallet.parse((await owner.send('GET', '/api/wallets')).body).purse, {
          timeout: 60_000,
          interval: 500,
        })
        .toEqual([])
    }
    const client = createPublicClient({ chain: baseSepolia, transport: http(node.url) })
    const reclaimed = await client.getLogs({
      address: escrowAddress,
      event: parseAbiItem('event PaymentReclaimed(bytes32 indexed paymentInfoHash, uint256 amount)'),
      fromBlock: 0n,
    })
    expect(reclaimed.map(({ args }) => args.amount)).toEqual(cuts.map(() => 5_000n))
  }, 400_000)
})
