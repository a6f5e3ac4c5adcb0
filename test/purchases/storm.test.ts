/**
 * A storm of purchases from honest and flaky sellers, while gateways are killed and restarted. Every purchase ends unpaid or paid
 * once, the seller has exactly what the books say, and no money is held or lost. STORM_PURCHASES sets the size.
 */
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { createPublicClient, erc20Abi, http, parseAbiItem } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/ledger/trial-balance.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/providers/chain/node/anvil-process.ts'
import { readPurseBalances } from '../../src/purchases/purse-books.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { newGuest, requestJson } from '../journeys/people.ts'
import { hasAnvil } from '../x402/world.ts'
import { type FlakySellers, SELLER, startFlakySellers } from './flaky-sellers.ts'

const PURCHASES = Number(process.env.STORM_PURCHASES ?? 200)
const CLIENTS = 16
const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const KINDS = [
  'honest',
  'honest',
  'honest',
  '504-once',
  '504-after',
  'drop-after',
  'drop-before',
  'late',
  'changes',
]
/** A gateway dies this often. */
const KILL_MS = 4_000
const MIN_KILLS = 3

const answer = z.looseObject({
  status: z.union([z.string(), z.number()]).optional(),
  code: z.string().optional(),
  purchaseId: z.string().nullish(),
  charged: z.string().optional(),
})
type Answer = z.output<typeof answer>

/** Codes after which the outcome of the same call is still open. */
const OPEN = new Set(['idempotency_in_progress', 'internal', 'settlement_pending', 'rates_unavailable'])

describe.skipIf(testServerUrl === undefined || !hasAnvil())('a storm of purchases', () => {
  let node: AnvilProcess
  let database: Database
  let sellers: FlakySellers
  let drop = async () => {}
  const gateways: Gateway[] = []
  const envs: Record<string, string>[] = []
  let bearer = ''

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    const shared = {
      DATABASE_URL: created.url,
      CHAIN_RPC_URL: node.url,
      RATE_MUTATIONS: '1000000/60',
      RATE_ACCOUNT: '1000000/60',
      RATE_SPONSORED: '1000000/86400',
      LOG_LEVEL: 'error',
    }
    for (let at = 0; at < 2; at += 1) {
      const env = { ...shared }
      gateways.push(await startGateway(env))
      // A gateway restarts on its first port: its clients have no other address.
      envs.push({ ...env, PORT: new URL(gateways[at]?.origin ?? '').port })
    }
    sellers = await startFlakySellers(node.url)
    database = await openPostgres({ url: created.url })
    const [first] = gateways
    const owner = await newGuest(first?.origin ?? '')
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Storm',
      scopes: ['purchases:pay', 'wallets:read'],
      policy: {
        perTransaction: { max: '1' },
        dailyBudget: { max: '1000' },
        categories: { allow: ['x402'] },
      },
    })
    bearer = `Bearer ${String(body.key)}`
  }, 120_000)
  afterAll(async () => {
    for (const gateway of gateways)
      if (gateway.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
    await database?.close()
    await sellers?.close()
    await node?.stop()
    await drop()
  }, 60_000)

  const buy = async (number: number): Promise<Answer> => {
    const kind = KINDS[number % KINDS.length] ?? 'honest'
    const until = Date.now() + 150_000
    for (let attempt = number; ; attempt += 1) {
      const origin = gateways[attempt % gateways.length]?.origin ?? ''
      const body = await requestJson(origin, 'POST', '/api/purchases', {
        body: { url: `${sellers.origin}/${kind}/${number}`, maxAmount: '0.01' },
        headers: { authorization: bearer, 'idempotency-key': `storm-${number}` },
      }).then(
        (response) => answer.parse(response.body),
        (): Answer => ({ code: 'internal' }),
      )
      const isOpen = OPEN.has(body.code ?? '') || body.status === 'settlement_pending'
      if (!isOpen || Date.now() > until) return body
      await pause(300)
    }
  }

  it('ends every purchase unpaid or paid once, wherever a gateway dies', async () => {
    let kills = 0
    let isOver = false
    const killing = (async () => {
      for (let at = 0; !isOver || kills < MIN_KILLS; at = 1 - at) {
        await pause(KILL_MS)
        if (isOver && kills >= MIN_KILLS) break
        const gateway = gateways[at]
        if (gateway === undefined) continue
        const exited = once(gateway.process, 'exit')
        gateway.process.kill('SIGKILL')
        await exited
        kills += 1
        gateways[at] = await startGateway(envs[at] ?? {})
      }
    })()
    const answers: Answer[] = []
    let next = 0
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        for (let number = next++; number < PURCHASES; number = next++) answers[number] = await buy(number)
      }),
    )
    isOver = true
    await killing
    await vi.waitFor(
      async () => {
        const open = await database.kysely
          .selectFrom('purchase')
          .select('id')
          .where('state', 'in', ['reserved', 'signed'])
          .execute()
        const held = await database.kysely
          .selectFrom('reservation')
          .select('decision_id')
          .where('status', '=', 'reserved')
          .execute()
        expect([open.length, held.length]).toEqual([0, 0])
      },
      { timeout: 240_000, interval: 1_000 },
    )
    const purchases = await database.kysely.selectFrom('purchase').selectAll().execute()
    const settled = purchases.filter(({ state }) => state === 'settled')
    const client = createPublicClient({ chain: baseSepolia, transport: http(node.url) })
    const used = await client.getLogs({
      address: USDC,
      event: parseAbiItem('event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)'),
      fromBlock: 0n,
    })
    const balanceOf = (address: `0x${string}`) =>
      client.readContract({ address: USDC, abi: erc20Abi, functionName: 'balanceOf', args: [address] })
    const counts = [...new Set(answers.map(({ status, code }) => String(code ?? status)))].map(
      (name) => `${name} ${answers.filter(({ status, code }) => String(code ?? status) === name).length}`,
    )
    const unpaid = purchases.length - settled.length
    process.stdout.write(
      `${PURCHASES} purchases, ${kills} kills: ${settled.length} paid, ${unpaid} not; ${counts.join(', ')}\n`,
    )
    // What the chain shows is what the books say: each payment belongs to one purchase, and each purchase has one.
    expect(new Set(used.map(({ args }) => args.nonce))).toEqual(new Set(settled.map(({ nonce }) => nonce)))
    expect(used.length).toBe(settled.length)
    expect(await balanceOf(SELLER)).toBe(settled.reduce((sum, { units }) => sum + units, 0n))
    // What callers were told was charged is what was paid. A seller may deliver without ever taking its payment.
    const paid = new Set(settled.map(({ id }) => id))
    for (const { purchaseId, charged } of answers)
      if (purchaseId != null)
        expect([purchaseId, charged !== undefined && charged !== '0']).toEqual([
          purchaseId,
          paid.has(purchaseId),
        ])
    for (const { address, asset, available, held } of await readPurseBalances(database, null))
      expect([asset, await balanceOf(address), held]).toEqual([asset, available, 0n])
    expect(await trialBalance(database)).toMatchObject({ balanced: true, drifts: [] })
    const { body } = await requestJson(gateways[0]?.origin ?? '', 'GET', '/api/wallets', {
      headers: { authorization: bearer },
    })
    const wallet = z
      .looseObject({
        safeAddress: z.templateLiteral(['0x', z.string()]),
        balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
      })
      .parse(body)
    const usdc = wallet.balances.find(({ token }) => token === 'USDC')
    expect(usdc?.held).toBe('0')
    expect(await balanceOf(wallet.safeAddress)).toBe(BigInt(Math.round(Number(usdc?.amount) * 1e6)))
    expect(settled.length).toBeGreaterThan(PURCHASES / 3)
  }, 1_800_000)
})
