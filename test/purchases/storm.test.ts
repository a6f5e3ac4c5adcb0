/**
 * A storm of purchases from honest and flaky sellers over four gateways, which are killed and restarted. Every purchase ends unpaid
 * or paid once, repeated calls deliver what honest sellers sell, no budget is exceeded, the seller has exactly what the books say,
 * and no money is held or lost. STORM_PURCHASES sets the size.
 */
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { createPublicClient, erc20Abi, http, parseAbiItem } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/ledger/trial-balance.ts'
import { decimalOf } from '../../src/money/money.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/providers/chain/node/anvil-process.ts'
import { readPurseBalances } from '../../src/purchases/purse-books.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { expectEventsOfEffects } from '../events/effects.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { newGuest, type Person, requestJson } from '../journeys/people.ts'
import { hasAnvil } from '../x402/world.ts'
import { type FlakySellers, SELLER, startFlakySellers } from './flaky-sellers.ts'

const PURCHASES = Number(process.env.STORM_PURCHASES ?? 2_000)
const GATEWAYS = 4
const CLIENTS = 24
const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
/** Sellers that deliver in the end, in one of the calls with one idempotency key. */
const HONEST = ['honest', '504-once', 'drop-before', 'third']
const KINDS = [
  'honest',
  'honest',
  'honest',
  '504-once',
  'drop-before',
  'honest',
  'third',
  '504-after',
  'drop-after',
  'honest',
  'late',
  'changes',
]
/** Smallest units that the key with the tight budget may spend: less than it tries. */
const TIGHT = BigInt(PURCHASES) * 100n
const PAYEE = '0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc'
/** A gateway dies this often. */
const KILL_MS = 10_000
const MIN_KILLS = 4

const answer = z.looseObject({
  status: z.union([z.string(), z.number()]).optional(),
  code: z.string().optional(),
  purchaseId: z.string().nullish(),
  charged: z.string().optional(),
  isFinal: z.boolean().optional(),
})
type Answer = z.output<typeof answer>

/** Codes after which the outcome of the same call is still open. */
const OPEN = new Set([
  'idempotency_in_progress',
  'internal',
  'provider_unavailable',
  'settlement_pending',
  'rates_unavailable',
])

type Send = (origin: string) => Promise<{ readonly body: unknown }>

function kindOf(number: number): string {
  return KINDS[number % KINDS.length] ?? 'honest'
}

describe.skipIf(testServerUrl === undefined || !hasAnvil())('a storm of purchases', () => {
  let node: AnvilProcess
  let database: Database
  let sellers: FlakySellers
  let drop = async () => {}
  const gateways: Gateway[] = []
  const envs: Record<string, string>[] = []
  let owner: Person
  let ample = ''
  let tight = ''

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
    for (let at = 0; at < GATEWAYS; at += 1) {
      const env = { ...shared }
      gateways.push(await startGateway(env))
      // A gateway restarts on its first port: its clients have no other address.
      envs.push({ ...env, PORT: new URL(gateways[at]?.origin ?? '').port })
    }
    sellers = await startFlakySellers(node.url)
    database = await openPostgres({ url: created.url })
    const [first] = gateways
    owner = await newGuest(first?.origin ?? '')
    const keyWith = async (max: string) => {
      const { body } = await owner.send('POST', '/api/developer/keys', {
        name: 'Storm',
        scopes: ['purchases:pay', 'wallets:read', 'wallets:transfer'],
        policy: {
          perTransaction: { max: '0.01' },
          dailyBudget: { max },
          categories: { allow: ['x402', 'transfer'] },
        },
      })
      return `Bearer ${z.string().parse(body.key)}`
    }
    ample = await keyWith('1000')
    tight = await keyWith(decimalOf({ asset: 'USDC', units: TIGHT }))
  }, 120_000)
  afterAll(async () => {
    for (const gateway of gateways)
      if (gateway.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
    await database?.close()
    await sellers?.close()
    await node?.stop()
    await drop()
  }, 60_000)

  /** Who pays: an ample budget, a tight one, or a person, whose money goes to the purse purchase by purchase. */
  const payerOf = (number: number) =>
    number % 4 === 0 ? tight : number % 10 === 9 ? `Bearer ${owner.token}` : ample

  const untilOver = async (
    { number, first }: { number: number; first: number },
    isOpen: (body: Answer) => boolean,
    send: Send,
  ): Promise<Answer> => {
    const until = Date.now() + 300_000
    for (let attempt = first; ; attempt += 1) {
      // A session belongs to the origin that issued it.
      const at = payerOf(number).endsWith(owner.token) ? 0 : attempt % GATEWAYS
      const body = await send(gateways[at]?.origin ?? '').then(
        (response) => answer.parse(response.body),
        (): Answer => ({ code: 'internal' }),
      )
      if (!isOpen(body) || Date.now() > until) return body
      await pause(300)
    }
  }
  const isUnknown = ({ code, isFinal }: Answer) => OPEN.has(code ?? '') && isFinal !== true

  const buy = (number: number, first = number): Promise<Answer> => {
    const kind = kindOf(number)
    const url = `${sellers.origin}/${kind}/${number}`
    const headers = { authorization: payerOf(number), 'idempotency-key': `storm-${number}` }
    return untilOver(
      { number, first },
      (body) =>
        isUnknown(body) ||
        body.status === 'settlement_pending' ||
        (HONEST.includes(kind) && body.status === 'undelivered'),
      (origin) =>
        requestJson(origin, 'POST', '/api/purchases', { body: { url, maxAmount: '0.01' }, headers }),
    )
  }

  /** A transfer of a purchase's price under the tight budget. */
  const transfer = (number: number): Promise<Answer> =>
    untilOver({ number, first: number }, isUnknown, (origin) =>
      requestJson(origin, 'POST', '/api/wallets/transfer', {
        body: { amount: '0.001', token: 'USDC', destination: PAYEE },
        headers: { authorization: tight, 'idempotency-key': `storm-transfer-${number}` },
      }),
    )

  it('ends every purchase unpaid or paid once, wherever a gateway dies', async () => {
    const startedAt = performance.now()
    let kills = 0
    let isOver = false
    const killing = (async () => {
      for (let at = 0; !isOver || kills < MIN_KILLS; at = (at + 1) % GATEWAYS) {
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
        for (let number = next++; number < PURCHASES; number = next++) {
          // Some calls are made twice at once, at two gateways.
          const [body, twin] = await Promise.all([
            buy(number),
            number % 8 === 1 ? buy(number, number + 1) : undefined,
          ])
          if (twin !== undefined) expect([number, twin.purchaseId]).toEqual([number, body.purchaseId])
          answers[number] = body
          if (number % 16 === 0) await transfer(number)
        }
      }),
    )
    const seconds = Math.round((performance.now() - startedAt) / 1000)
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
      `${PURCHASES} purchases in ${seconds} s, ${kills} kills: ${settled.length} paid, ${unpaid} not; ${counts.join(', ')}\n`,
    )
    // What the chain shows is what the books say: each payment belongs to one purchase, and each purchase has one.
    const payments = used.map(({ args }) => `${args.authorizer?.toLowerCase()} ${args.nonce}`)
    expect(payments.toSorted()).toEqual(settled.map(({ payer, nonce }) => `${payer} ${nonce}`).toSorted())
    expect(new Set(payments).size).toBe(payments.length)
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
    await expectEventsOfEffects(database)
    const { body } = await requestJson(gateways[0]?.origin ?? '', 'GET', '/api/wallets', {
      headers: { authorization: ample },
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
    // Honest sellers deliver, unless the budget is used up.
    const honest = answers.flatMap((body, number) =>
      HONEST.includes(kindOf(number)) && body.code !== 'policy_denied' ? [{ number, ...body }] : [],
    )
    const missed = honest.filter(({ status }) => status !== 'delivered')
    process.stdout.write(`${honest.length} honest, not delivered: ${JSON.stringify(missed)}\n`)
    expect(missed.length).toBeLessThanOrEqual(honest.length / 1000)
    expect(
      answers.flatMap(({ code }, number) => (code === 'policy_denied' ? [payerOf(number)] : [])),
    ).toEqual(answers.flatMap(({ code }) => (code === 'policy_denied' ? [tight] : [])))
    const [tightPurse] = settled.flatMap((row) => (row.url.endsWith('/0') ? [row.purse_id] : []))
    const spent = settled.flatMap(({ purse_id, units }) => (purse_id === tightPurse ? [units] : []))
    const total = spent.reduce((sum, units) => sum + units, await balanceOf(PAYEE))
    process.stdout.write(`the tight budget of ${TIGHT} was used by ${total}\n`)
    expect(total).toBeLessThanOrEqual(TIGHT)
    expect(total).toBeGreaterThan((TIGHT * 3n) / 4n)
  }, 1_800_000)
})
