/** A gateway that is killed at each step of a purchase: the repeated call ends delivered, and paid once. */
import { once } from 'node:events'
import { sql } from 'kysely'
import { createPublicClient, erc20Abi, http, parseAbiItem } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import type { Database } from '../../../src/storage/database.ts'
import { openPostgres } from '../../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import { type ChainProxy, type Step, startChainProxy } from '../../journeys/chain-proxy.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person } from '../../journeys/people.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { type FlakySellers, type Moment, OTHER, SELLER, startFlakySellers } from './flaky-sellers.ts'

const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const moments: readonly Moment[] = ['asked', 'paid', 'settled']
/** Of the transfer to the purse, which a person's purchase needs each time. */
const steps: readonly Step[] = ['before broadcast', 'after broadcast', 'at the receipt']

describe.skipIf(testServerUrl === undefined || !hasAnvil())('a gateway that is killed', () => {
  let node: AnvilProcess
  let proxy: ChainProxy
  let gateway: Gateway
  let sellers: FlakySellers
  let owner: Person
  let env: Record<string, string> = {}
  let database: Database
  let drop = async () => {}

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    proxy = await startChainProxy(() => node.url)
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = async () => {
      await database.close()
      await created.drop()
    }
    database = await openPostgres({ url: created.url })
    env = { DATABASE_URL: created.url, CHAIN_RPC_URL: proxy.url, LOG_LEVEL: 'error' }
    gateway = await startGateway(env)
    env = { ...env, PORT: new URL(gateway.origin).port }
    sellers = await startFlakySellers(node.url)
    owner = await newGuest(gateway.origin)
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    await proxy?.close()
    await sellers?.close()
    await node?.stop()
    await drop()
  }, 60_000)

  const buy = async (run: string) => {
    const { body } = await owner.send(
      'POST',
      '/api/purchases',
      { url: `${sellers.origin}/honest/${run}`, maxAmount: '0.01' },
      { 'idempotency-key': run },
    )
    return z.looseObject({ status: z.unknown(), code: z.string().optional() }).parse(body)
  }

  const interrupt = async (run: string, arm: (kill: () => Promise<void>) => void) => {
    arm(async () => {
      const exited = once(gateway.process, 'exit')
      gateway.process.kill('SIGKILL')
      await exited
    })
    await expect(buy(run)).rejects.toThrow()
    gateway = await startGateway(env)
  }

  it('delivers to the repeated call, and pays once', async () => {
    for (const moment of moments) await interrupt(moment, (kill) => sellers.interrupt(moment, moment, kill))
    for (const step of steps) await interrupt(step.replaceAll(' ', '-'), (kill) => proxy.cut(step, 1, kill))
    const runs = [...moments, ...steps.map((step) => step.replaceAll(' ', '-'))]
    await Promise.all(
      runs.map((run) =>
        expect
          .poll(async () => ({ run, ...(await buy(run)) }), { timeout: 200_000, interval: 1_000 })
          .toMatchObject({ run, status: 'delivered', charged: '0.001' }),
      ),
    )
    const client = createPublicClient({ chain: baseSepolia, transport: http(node.url) })
    const used = await client.getLogs({
      address: USDC,
      event: parseAbiItem('event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)'),
      fromBlock: 0n,
    })
    expect(used).toHaveLength(runs.length)
    expect(
      await client.readContract({ address: USDC, abi: erc20Abi, functionName: 'balanceOf', args: [SELLER] }),
    ).toBe(BigInt(runs.length) * 1_000n)
  }, 400_000)

  it('pays nothing under a decision that others have changed meanwhile', async () => {
    const client = createPublicClient({ chain: baseSepolia, transport: http(node.url) })
    const readBalance = (address: `0x${string}`) =>
      client.readContract({ address: USDC, abi: erc20Abi, functionName: 'balanceOf', args: [address] })
    const before = await readBalance(OTHER)
    await interrupt('forged', (kill) => proxy.cut('after broadcast', 1, kill))
    await database.transaction(async ({ kysely }) => {
      // The decision's table is append-only for everybody who cannot do this.
      await sql`set local session_replication_role = replica`.execute(kysely)
      await sql`update purchase set pay_to = ${OTHER.toLowerCase()} where url like '%/forged'`.execute(kysely)
      await sql`update decision set facts = jsonb_set(facts, '{found,payTo}', ${JSON.stringify(OTHER.toLowerCase())}::jsonb)
        where facts->'found'->>'url' like '%/forged'`.execute(kysely)
    })
    await expect
      .poll(async () => (await buy('forged')).code, { timeout: 60_000, interval: 1_000 })
      .toBe('internal')
    expect(await readBalance(OTHER)).toBe(before)
  }, 120_000)
})
