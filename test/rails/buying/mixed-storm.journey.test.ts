/**
 * A storm of purchases of every kind at once: `exact`, `upto` and by channel, over the API and by programs behind a proxy that know
 * nothing of payments, while gateways and the proxy are killed. Every purchase is paid at most once, no budget is exceeded, every
 * channel ends closed with its deposit spent or back, and the chain is what the books say. STORM_PURCHASES sets the size, STORM_SEED
 * what is bought.
 */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { createPublicClient, erc20Abi, http, parseAbiItem } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { toDecimal } from '../../../src/core/money/money.ts'
import { channelsAddress } from '../../../src/providers/payment-channels.ts'
import { readPurseBalances } from '../../../src/rails/buying/purse-books.ts'
import type { Database } from '../../../src/storage/database.ts'
import { openPostgres } from '../../../src/storage/postgres.ts'
import { newBuyer, type ProxyAgent, type RunningProxy, startTestProxy } from '../../commands/proxy/scene.ts'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person, requestJson } from '../../journeys/people.ts'
import { expectEventsOfEffects } from '../../records/events/effects.ts'
import { seededBy } from '../../simulator/seeded.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { OTHER, SELLER } from './flaky-sellers.ts'
import { type MixedSellers, type Order, startMixedSellers } from './mixed-sellers.ts'
import { UPTO_SELLER } from './upto-sellers.ts'

const PURCHASES = Number(process.env.STORM_PURCHASES ?? 60)
const SEED = process.env.STORM_SEED ?? '1'
const GATEWAYS = 3
const CLIENTS = 12
const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const CENT = 10_000n
/** What a tight key and the proxy may spend, and both together: less than they try. Policies are in whole cents. */
const BUDGETS = {
  tight: BigInt(Math.ceil(PURCHASES / 60)) * CENT,
  proxy: BigInt(Math.ceil(PURCHASES / 20)) * CENT,
}
const CAP = BigInt(Math.ceil(PURCHASES / 18)) * CENT
/** Pauses between two deaths, and what is added at random. */
const GATEWAY_LIFE = { leastMs: 3_000, moreMs: 3_000 }
const PROXY_LIFE = { leastMs: 3_000, moreMs: 4_000 }
/** A program that gave up asks again so much later. */
const REPEAT_MS = 400
const BUYING_MS = 300_000
/** Longer than a seller's withdraw delay. */
const DELAY_SECONDS = 901

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
  'gateway_unreachable',
  'idempotency_in_progress',
  'internal',
  'provider_unavailable',
  'rates_unavailable',
  'settlement_pending',
])
/** A budget is used up. */
const DENIED = ['policy_denied', 'budget']

const openFile = z.looseObject({
  key: z.string(),
  isNamed: z.boolean(),
  isGiven: z.boolean(),
  chargedMicros: z.string().nullable(),
  maxMicros: z.string(),
})
const wallet = z.looseObject({
  safeAddress: z.templateLiteral(['0x', z.string()]),
  balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
})
const toUnits = (amount: string) => BigInt(Math.round(Number(amount) * 1e6))
const sum = (units: Iterable<bigint>) => [...units].reduce((total, each) => total + each, 0n)

type Buyer = 'ample' | 'tight' | 'proxy'

describe.skipIf(testServerUrl === undefined || !hasAnvil())('a mixed storm of purchases', () => {
  const random = seededBy(`mixed storm ${SEED}`)
  const gateways: Gateway[] = []
  const envs: Record<string, string>[] = []
  const keys = { ample: { id: '', bearer: '' }, tight: { id: '', bearer: '' } }
  let node: AnvilProcess
  let sellers: MixedSellers
  let database: Database
  let drop = async () => {}
  let owner: Person
  let agent: ProxyAgent
  let proxy: RunningProxy

  const origin = (at: number) => gateways[at % GATEWAYS]?.origin ?? ''
  const startProxy = () =>
    startTestProxy(
      agent,
      origin(0),
      ...['--max-price', '0.01'],
      ...['--budget', toDecimal({ asset: 'USDC', units: BUDGETS.proxy })],
    )

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    const env = {
      DATABASE_URL: created.url,
      CHAIN_RPC_URL: node.url,
      LOG_LEVEL: 'error',
      ...Object.fromEntries(
        ['MUTATIONS', 'ACCOUNT', 'SPONSORED'].map((limit) => [`RATE_${limit}`, '1000000/60']),
      ),
    }
    for (let at = 0; at < GATEWAYS; at += 1) {
      gateways.push(await startGateway(env))
      // A gateway restarts on its first port: its clients have no other address.
      envs.push({ ...env, PORT: new URL(origin(at)).port })
    }
    sellers = await startMixedSellers(node.url)
    database = await openPostgres({ url: created.url })
    owner = await newGuest(origin(0))
    const policyWith = (units: bigint) => ({
      perTransaction: { max: '0.01' },
      dailyBudget: { max: toDecimal({ asset: 'USDC', units }) },
      categories: { allow: ['x402'] },
    })
    agent = await newBuyer(origin(0), policyWith(CAP))
    const newKey = async (person: Person, units: bigint) => {
      const { body } = await person.send('POST', '/api/developer/keys', {
        name: 'Storm',
        scopes: ['purchases:pay'],
        policy: policyWith(units),
      })
      const { id, key } = z.looseObject({ id: z.string(), key: z.string() }).parse(body)
      return { id, bearer: `Bearer ${key}` }
    }
    keys.ample = await newKey(owner, 1_000n * 100n * CENT)
    keys.tight = await newKey(agent.owner, BUDGETS.tight)
    const capped = await agent.owner.send('PUT', '/api/agents/policy', {
      dailyBudget: { max: toDecimal({ asset: 'USDC', units: CAP }) },
    })
    expect(capped.status).toBe(200)
    proxy = await startProxy()
  }, 180_000)
  afterAll(async () => {
    await proxy?.kill()
    for (const gateway of gateways)
      if (gateway.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
    await database?.close()
    await sellers?.close()
    await node?.stop()
    await drop()
  }, 60_000)

  /** Kills and starts again, as a supervisor does. */
  const killGateway = async (at: number) => {
    const gateway = gateways[at]
    if (gateway === undefined) return
    const exited = once(gateway.process, 'exit')
    gateway.process.kill('SIGKILL')
    await exited
    gateways[at] = await startGateway(envs[at] ?? {})
  }
  const killProxy = async () => {
    await proxy.kill()
    proxy = await startProxy()
  }
  /** Kills at random until `isOver`, leaving twice the time that a start takes between two deaths. @returns how often. */
  const keepKilling = async (
    isOver: () => boolean,
    { leastMs, moreMs }: typeof GATEWAY_LIFE,
    kill: () => Promise<void>,
  ): Promise<number> => {
    let startMs = 0
    for (let kills = 0; ; kills += 1) {
      const until = Date.now() + leastMs + random.below(moreMs) + 2 * startMs
      while (!isOver() && Date.now() < until) await pause(50)
      if (isOver()) return kills
      const killedAt = Date.now()
      await kill()
      startMs = Date.now() - killedAt
    }
  }

  /** Repeats a purchase until it is certain, and one that an honest seller owes until it came. */
  const untilOver = async (order: Order, send: (attempt: number) => Promise<Answer>): Promise<Answer> => {
    const until = Date.now() + BUYING_MS
    for (let attempt = 0; ; attempt += 1) {
      const said = await send(attempt).catch((): Answer => ({ code: 'internal' }))
      const isOpen =
        (OPEN.has(said.code ?? '') && said.isFinal !== true) ||
        said.status === 'settlement_pending' ||
        (order.isHonest && said.status === 'undelivered')
      if (!isOpen || Date.now() > until) return said
      await pause(REPEAT_MS)
    }
  }
  const buy = ({ number, url }: Order, buyer: 'ample' | 'tight', attempt: number): Promise<Answer> =>
    requestJson(origin(number + attempt), 'POST', '/api/purchases', {
      body: { url, maxAmount: '0.01' },
      headers: { authorization: keys[buyer].bearer, 'idempotency-key': `storm-${number}` },
    }).then(({ body }) => answer.parse(body))

  /** One request of a program. @param key its own idempotency key. @param patienceMs it ends then, without its answer. */
  const ask = (url: string, key: string | null, patienceMs: number): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const asking = request({
        host: '127.0.0.1',
        port: proxy.port,
        agent: false,
        path: url,
        headers: {
          host: new URL(url).host,
          'proxy-authorization': `Basic ${Buffer.from(`bursar:${proxy.token}`).toString('base64')}`,
          ...(key === null ? {} : { 'bursar-idempotency-key': key }),
        },
        timeout: 150_000,
      })
      const leaving = setTimeout(() => asking.destroy(new Error('the program ended')), patienceMs)
      asking.on('timeout', () => asking.destroy(new Error('no answer')))
      asking.on('error', reject)
      asking.on('close', () => clearTimeout(leaving))
      asking.on('response', (given) => {
        given.on('error', reject)
        given.resume()
        given.on('end', () => {
          const problem = given.headers['bursar-problem']
          if (!given.complete) return reject(new Error('the answer broke off'))
          if (given.statusCode === 200)
            return resolve({
              status: 'delivered',
              purchaseId: String(given.headers['bursar-purchase']),
              charged: String(given.headers['bursar-charged']).split(' ')[0],
            })
          if (problem === 'undelivered') return resolve({ status: 'undelivered' })
          // A proxy or an origin that was lost has said nothing of a purchase.
          resolve({ code: given.statusCode === 402 ? String(problem) : 'internal' })
        })
      })
      asking.end()
    })
  const askTwice = async (order: Order): Promise<Answer> => {
    const { number, url } = order
    const isNamed = number % 5 === 0
    const isHasty = number % 7 === 0
    let undelivered = 0
    const program = () =>
      untilOver(order, async (attempt) => {
        const patienceMs = isHasty && attempt < 2 ? 50 + random.below(500) : 200_000
        const said = await ask(url, isNamed ? `program-${number}` : null, patienceMs)
        // What was paid and did not come is asked for again, as programs do.
        if (said.status === 'undelivered' && undelivered++ < 2) return { code: 'internal' }
        return said
      })
    const [said, twin] = await Promise.all([program(), isNamed ? program() : undefined])
    if (twin?.status === 'delivered' && said.status === 'delivered')
      expect([number, twin.purchaseId]).toEqual([number, said.purchaseId])
    return said
  }

  const readChannels = () => database.kysely.selectFrom('channel').selectAll().orderBy('id').execute()
  const closeChannels = async () => {
    for (const { id, account_id: account, status } of await readChannels()) {
      if (status !== 'open') continue
      const person = account === owner.accountId ? owner : agent.owner
      await vi.waitFor(
        async () => expect((await person.send('POST', `/api/channels/${id}/close`, {})).status).toBe(200),
        { timeout: 60_000, interval: 300 },
      )
    }
  }
  /**
   * Waits until all channels are closed, for their delay too where a death kept the seller from returning the rest. Sellers claim
   * meanwhile, as they do: of a deposit that is used up there is no rest to ask for.
   */
  const awaitClosed = async () => {
    let hasJumped = false
    await vi.waitFor(
      async () => {
        await claimAll()
        const all = await readChannels()
        if (!hasJumped && all.some(({ withdrawable_at: at }) => at !== null)) {
          hasJumped = true
          await fetch(node.url, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({
              ...{ jsonrpc: '2.0', id: 1 },
              ...{ method: 'evm_increaseTime', params: [DELAY_SECONDS] },
            }),
          })
        }
        expect(all.filter(({ status }) => status !== 'closed').map(({ id, status }) => [id, status])).toEqual(
          [],
        )
      },
      { timeout: 300_000, interval: 500 },
    )
  }
  /** A stock seller's claim throws where there is nothing to take. */
  const claimAll = async () => {
    for (const seller of sellers.channels) await seller.claim().catch(() => undefined)
  }
  const awaitEnds = () =>
    vi.waitFor(
      async () => {
        const open = await database.kysely
          .selectFrom('purchase')
          .select(['id', 'scheme', 'state'])
          .where('state', 'in', ['reserved', 'signed'])
          .execute()
        const held = await database.kysely
          .selectFrom('reservation')
          .select('decision_id')
          .where('status', '=', 'reserved')
          .execute()
        expect({ open, held }).toEqual({ open: [], held: [] })
      },
      { timeout: 180_000, interval: 500 },
    )
  /** Money that has left for the world by the books. */
  const readOutside = async () => {
    const { rows } = await sql<{ units: bigint }>`
      select coalesce(sum(case when p.destination = 'external:base-sepolia' then p.units else -p.units end), 0)::bigint as units
      from posting p join ledger_transaction t on t.id = p.transaction_id
      where 'external:base-sepolia' in (p.source, p.destination) and t.kind <> 'deposit' and p.asset = 'USDC'`.execute(
      database.kysely,
    )
    return rows[0]?.units ?? 0n
  }
  const readOpenFiles = () => {
    const home = join(agent.home, '.bursar/proxy')
    return readdirSync(home, { recursive: true, encoding: 'utf8' })
      .filter((name) => /open\/.*\.json$/.test(name))
      .map((name) => openFile.parse(JSON.parse(readFileSync(join(home, name), 'utf8'))))
  }

  it('pays each at most once, within every budget, and ends with the chain', async () => {
    const startedAt = performance.now()
    let seconds = 0
    let isOver = false
    const gatewayKills = keepKilling(
      () => isOver,
      GATEWAY_LIFE,
      () => killGateway(random.below(GATEWAYS)),
    )
    const proxyKills = keepKilling(() => isOver, PROXY_LIFE, killProxy)
    const orders = Array.from({ length: PURCHASES }, (_, number) => sellers.order(random, number))
    const buyers = orders.map(
      ({ isShared }): Buyer =>
        // Programs behind a proxy name nothing by which purchases of one URL could be told apart.
        random.oneOf(isShared ? ['ample', 'tight'] : ['ample', 'tight', 'proxy', 'proxy']),
    )
    const answers: Answer[] = []
    let next = 0
    const buying = Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        for (let number = next++; number < PURCHASES; number = next++) {
          const [order, buyer] = [orders[number], buyers[number]]
          if (order === undefined || buyer === undefined) continue
          if (buyer === 'proxy') {
            answers[number] = await askTwice(order)
            continue
          }
          const call = (first: number) => untilOver(order, (attempt) => buy(order, buyer, first + attempt))
          // Some calls are made twice at once, at two gateways.
          const [said, twin] = await Promise.all([call(0), number % 8 === 1 ? call(1) : undefined])
          if (twin !== undefined) expect([number, twin.purchaseId]).toEqual([number, said.purchaseId])
          answers[number] = said
        }
      }),
    ).finally(() => {
      isOver = true
      seconds = Math.round((performance.now() - startedAt) / 1_000)
    })
    const [, kills, deaths] = await Promise.all([buying, gatewayKills, proxyKills])
    // Once more while channels end.
    const ending = closeChannels().then(awaitClosed)
    await pause(random.below(1_500))
    await Promise.all([ending, killGateway(random.below(GATEWAYS))])
    await awaitEnds()
    await claimAll()

    const purchases = await database.kysely.selectFrom('purchase').selectAll().execute()
    const settled = purchases.filter(({ state }) => state === 'settled')
    const chargedFor = (rows: typeof settled) => rows.map(({ charged, units }) => charged ?? units)
    const count = (names: readonly string[]) =>
      [...new Set(names)].map((name) => `${name} ${names.filter((one) => one === name).length}`).join(', ')
    const said = answers.map(
      ({ status, code }, at) => `${buyers[at]} ${orders[at]?.scheme} ${code ?? status}`,
    )
    process.stdout.write(
      `seed ${SEED}: ${PURCHASES} purchases in ${seconds} s, ${kills} deaths of gateways and ${deaths} of the proxy; ` +
        `${purchases.length} begun, ${settled.length} paid; ${count(said.toSorted())}\n`,
    )

    // Each is paid at most once.
    const paidAt = new Map<string, number>()
    for (const { url } of settled) paidAt.set(url, (paidAt.get(url) ?? 0) + 1)
    const own = orders.filter(({ isShared }) => !isShared)
    expect(own.filter(({ url }) => (paidAt.get(url) ?? 0) > 1)).toEqual([])
    const shared = orders.filter(({ isShared }) => isShared)
    for (const { url } of shared)
      expect(paidAt.get(url) ?? 0).toBeLessThanOrEqual(shared.filter((order) => order.url === url).length)
    const named = answers.flatMap(({ purchaseId }) => purchaseId ?? [])
    expect(named.length).toBe(new Set(named).size)

    // The chain is what the books say.
    const client = createPublicClient({ chain: baseSepolia, transport: http(node.url) })
    const readBalance = (address: string) =>
      client.readContract({
        ...{ address: USDC, abi: erc20Abi, functionName: 'balanceOf' },
        args: [z.templateLiteral(['0x', z.string()]).parse(address)],
      })
    const channels = await readChannels()
    const used = await client.getLogs({
      address: USDC,
      event: parseAbiItem('event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)'),
      fromBlock: 0n,
    })
    const swept = await database.kysely.selectFrom('purse_sweep').select('nonce').execute()
    const returns = new Set<string | undefined>(swept.map(({ nonce }) => nonce))
    const payers = await database.kysely
      .selectFrom('purse')
      .innerJoin('channel', 'channel.id', 'purse.id')
      .select('address')
      .execute()
    const ofChannels = new Set(payers.map(({ address }) => address))
    const payments = used
      .map(({ args }) => ({ authorizer: args.authorizer?.toLowerCase() ?? '', nonce: args.nonce }))
      .filter(({ authorizer, nonce }) => !returns.has(nonce) && !ofChannels.has(authorizer))
      .map(({ authorizer, nonce }) => `${authorizer} ${nonce}`)
    const of = (scheme: string) => settled.filter((row) => row.scheme === scheme)
    expect(payments.toSorted()).toEqual(
      of('exact')
        .map(({ payer, nonce }) => `${payer} ${nonce}`)
        .toSorted(),
    )
    const taken = [
      sum(await Promise.all([SELLER, OTHER].map(readBalance))),
      await readBalance(UPTO_SELLER),
      sum(await Promise.all(sellers.channels.map(({ payTo }) => readBalance(payTo)))),
    ]
    expect(taken).toEqual(['exact', 'upto', 'batch-settlement'].map((scheme) => sum(chargedFor(of(scheme)))))
    expect(await readOutside()).toBe(sum(taken))
    expect(new Set(purchases.map(({ scheme }) => scheme)).size).toBe(3)

    // Every deposit is spent, or back.
    expect(channels.length).toBeGreaterThan(0)
    expect(sum(channels.map(({ claimed }) => claimed))).toBe(taken[2])
    expect(await readBalance(channelsAddress)).toBe(0n)
    await vi.waitFor(
      async () => {
        for (const { address, asset, available, held } of await readPurseBalances(database, null))
          expect([address, asset, await readBalance(address), held]).toEqual([address, asset, available, 0n])
      },
      { timeout: 30_000, interval: 500 },
    )
    expect(await trialBalance(database)).toMatchObject({ balanced: true, drifts: [] })
    await expectEventsOfEffects(database)
    // The rest of a purchase may still be on its way back: it is on the chain before it is in the books.
    await vi.waitFor(
      async () => {
        for (const person of [owner, agent.owner]) {
          const { safeAddress, balances } = wallet.parse((await person.send('GET', '/api/wallets')).body)
          const { amount = '', held = '' } = balances.find(({ token }) => token === 'USDC') ?? {}
          expect([toUnits(held), await readBalance(safeAddress)]).toEqual([0n, toUnits(amount)])
        }
      },
      { timeout: 60_000, interval: 500 },
    )

    // What callers were told was charged is what was paid.
    const charges = new Map(settled.map((row) => [row.id, row.charged ?? row.units]))
    for (const { purchaseId, charged } of answers)
      if (purchaseId != null && charged !== undefined)
        expect([purchaseId, toUnits(charged)]).toEqual([purchaseId, charges.get(purchaseId) ?? 0n])

    // No budget is exceeded, and each was of use.
    const spentBy = (keyId: string) => sum(chargedFor(settled.filter(({ key_id: by }) => by === keyId)))
    const spent = { tight: spentBy(keys.tight.id), proxy: spentBy(agent.agentId) }
    process.stdout.write(
      `budgets of ${BUDGETS.tight} and ${BUDGETS.proxy} were used by ${spent.tight} and ${spent.proxy}, the cap of ${CAP} by ${spent.tight + spent.proxy}\n`,
    )
    expect(spent.tight).toBeLessThanOrEqual(BUDGETS.tight)
    expect(spent.proxy).toBeLessThanOrEqual(BUDGETS.proxy)
    expect(spent.tight + spent.proxy).toBeLessThanOrEqual(CAP)
    expect(spent.tight > 0n && spent.proxy > 0n).toBe(true)

    // What honest sellers sold came, unless a budget was used up.
    const missed = orders.flatMap(({ number, isHonest, url }) => {
      const { status, code = '' } = answers[number] ?? {}
      const isDenied = DENIED.includes(code) && buyers[number] !== 'ample'
      return isHonest && status !== 'delivered' && !isDenied
        ? [{ url, code, status, by: buyers[number] }]
        : []
    })
    process.stdout.write(
      `${orders.filter(({ isHonest }) => isHonest).length} honest, missed: ${JSON.stringify(missed)}\n`,
    )
    expect(missed.length).toBeLessThanOrEqual(Math.max(1, PURCHASES / 100))

    // The proxy forgets nothing that it spent, and each of its open purchases has an end.
    const files = readOpenFiles()
    process.stdout.write(`open purchases of the proxy: ${files.length}\n`)
    expect(files.filter(({ chargedMicros }) => chargedMicros === null)).toEqual([])
    await proxy.kill()
    proxy = await startProxy()
    const counted = /([\d.]+) of [\d.]+ USD/.exec(proxy.output())?.[1] ?? '0'
    expect(toUnits(counted)).toBeGreaterThanOrEqual(spent.proxy)
    expect(toUnits(counted)).toBeLessThanOrEqual(BUDGETS.proxy)
  }, 1_800_000)
})
