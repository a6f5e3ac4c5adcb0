/** Four gateways on one database and one chain: budgets, idempotency and caps hold across them, and over a kill -9. */
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { createPublicClient, erc20Abi, http } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { capAccount } from '../books/spending/scene.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'
import { postTransfer } from './post-transfer.ts'

const redisUrl = process.env.TEST_REDIS_URL
const GATEWAYS = 4
const CLIENTS = 64

const hex = z.templateLiteral(['0x', z.string()])
const credentials = z.object({
  chain: z.object({ rpcUrl: z.string(), tokens: z.object({ USDC: hex }) }),
})
const wallet = z.object({
  safeAddress: hex,
  balances: z.array(z.object({ token: z.string(), amount: z.string(), held: z.string() })),
})
const answer = z.looseObject({ code: z.string().optional(), transferId: z.string().optional() })

/** Result of one request. `lost`: the connection broke. */
type Outcome = { readonly status: number | 'lost'; readonly body: z.output<typeof answer> }

describe.skipIf(testServerUrl === undefined)('several gateways on one database', () => {
  let database: Database
  let drop = async () => {}
  let env: Record<string, string>
  const gateways: Gateway[] = []
  const chooseOrigin = (index: number) => gateways[index % gateways.length]?.origin ?? ''

  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    env = {
      DATABASE_URL: created.url,
      ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }),
      RATE_MUTATIONS: '100000/60',
    }
    const first = await startGateway(env)
    gateways.push(first)
    const { chain } = credentials.parse(await (await fetch(`${first.origin}/sandbox/credentials`)).json())
    env.CHAIN_RPC_URL = chain.rpcUrl
    gateways.push(...(await Promise.all(Array.from({ length: GATEWAYS - 1 }, () => startGateway(env)))))
    database = await openPostgres({ url: created.url })
  }, 120_000)
  afterAll(async () => {
    for (const gateway of gateways.reverse())
      if (gateway.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
    await database?.close()
    await drop()
  }, 60_000)

  const createKey = async (person: Person, dailyMax: string, longer: object = {}): Promise<string> => {
    const policy = {
      perTransaction: { max: '1' },
      dailyBudget: { max: dailyMax },
      ...longer,
      categories: { allow: ['transfer'] },
    }
    const { body } = await person.send('POST', '/api/developer/keys', {
      name: 'Load',
      scopes: ['wallets:read', 'wallets:transfer'],
      policy,
    })
    return z.string().parse(body.key)
  }
  const send = async (
    index: number,
    key: string,
    amount: string,
    idempotencyKey: string,
  ): Promise<Outcome> => {
    try {
      const response = await postTransfer(chooseOrigin(index), key, { amount, idempotencyKey })
      return { status: response.status, body: answer.parse(await response.json()) }
    } catch {
      return { status: 'lost', body: {} }
    }
  }
  /** Repeats a request while its first call is still running. */
  const untilAnswered = async (request: () => Promise<Outcome>): Promise<Outcome> => {
    for (let attempt = 0; attempt < 300; attempt += 1) {
      const outcome = await request()
      if (outcome.body.code !== 'idempotency_in_progress') return outcome
      await pause(50)
    }
    throw new Error('the first call never ended')
  }
  /** Sends this many requests by {@link CLIENTS} clients, each waiting for its answer. */
  const load = async (count: number, request: (index: number) => Promise<Outcome>): Promise<Outcome[]> => {
    const outcomes: Outcome[] = []
    let next = 0
    const client = async () => {
      for (let index = next++; index < count; index = next++) outcomes.push(await request(index))
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
    return outcomes
  }
  const tally = (outcomes: readonly Outcome[]) => {
    const counts: Record<string, number> = {}
    for (const { status, body } of outcomes) {
      const name = [status, ...(body.code === undefined ? [] : [body.code])].join(' ')
      counts[name] = (counts[name] ?? 0) + 1
    }
    return counts
  }
  const readWallet = async (person: Person) => {
    const { body } = await person.send('GET', '/api/wallets')
    const { safeAddress, balances } = wallet.parse(body)
    const { amount, held } = balances.find(({ token }) => token === 'USDC') ?? { amount: '', held: '' }
    const { chain } = credentials.parse(await (await fetch(`${chooseOrigin(0)}/sandbox/credentials`)).json())
    const client = createPublicClient({ chain: baseSepolia, transport: http(chain.rpcUrl) })
    const onChain = await client.readContract({
      address: chain.tokens.USDC,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [safeAddress],
    })
    return { amount, held, onChain }
  }
  /** Waits until every spend of an account is final, and returns the count of each outcome. */
  const awaitOutcomes = async (accountId: string) => {
    for (let attempt = 0; attempt < 600; attempt += 1) {
      const rows = await database.kysely
        .selectFrom('reservation')
        .select(['status', (count) => count.fn.countAll<bigint>().as('count')])
        .where('account_id', '=', accountId)
        .groupBy('status')
        .execute()
      if (rows.every(({ status }) => status !== 'reserved'))
        return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]))
      await pause(50)
    }
    throw new Error('a reservation neither settled nor was released')
  }

  it('allow exactly what fits one budget: 142 of 1,000', async () => {
    const person = await newGuest(chooseOrigin(0))
    const key = await createKey(person, '1')
    const outcomes = await load(1_000, (index) => send(index, key, '0.007', `budget-${index}`))
    expect(tally(outcomes)).toEqual({ 200: 142, '403 policy_denied': 858 })
    expect(await awaitOutcomes(person.accountId)).toEqual({ settled: 142 })
    expect(await readWallet(person)).toEqual({ amount: '999.006', held: '0', onChain: 999_006_000n })
  }, 90_000)

  it('allow exactly what fits a week, or a month of all keys', async () => {
    const [one, two] = [await newGuest(chooseOrigin(0)), await newGuest(chooseOrigin(1))]
    const key = await createKey(one, '100', { weeklyBudget: { max: '1' }, monthlyBudget: { max: '90' } })
    const ofWeek = await load(300, (index) => send(index, key, '0.007', `week-${index}`))
    expect(tally(ofWeek)).toEqual({ 200: 142, '403 policy_denied': 158 })
    const keys = await Promise.all(Array.from({ length: 4 }, () => createKey(two, '100')))
    await capAccount(database, two.accountId, null, { month: 100_000n })
    const ofMonth = await load(100, (index) =>
      send(index, keys[(index + (index >> 2)) % 4] ?? '', '0.007', `month-${index}`),
    )
    expect(tally(ofMonth)).toEqual({ 200: 14, '403 policy_denied': 86 })
    expect(await awaitOutcomes(one.accountId)).toEqual({ settled: 142 })
  }, 90_000)

  it('answer 40 requests with one idempotency key with one transfer', async () => {
    const person = await newGuest(chooseOrigin(0))
    const key = await createKey(person, '1')
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, index) => untilAnswered(() => send(index, key, '0.5', 'once'))),
    )
    expect(tally(outcomes)).toEqual({ 200: 40 })
    expect(new Set(outcomes.map(({ body }) => body.transferId)).size).toBe(1)
    expect(await readWallet(person)).toMatchObject({ amount: '999.5', held: '0' })
  }, 60_000)

  it('enforce one owner cap over ten keys, and a lowered cap from the next spend on', async () => {
    const person = await newGuest(chooseOrigin(0))
    const keys = await Promise.all(Array.from({ length: 10 }, () => createKey(person, '1')))
    await capAccount(database, person.accountId, 100_000n)
    const spend = (index: number) => send(index, keys[index % 10] ?? '', '0.007', `cap-${index}`)
    expect(tally(await load(100, spend))).toEqual({ 200: 14, '403 policy_denied': 86 })
    await capAccount(database, person.accountId, 112_000n)
    expect(tally([await send(0, keys[0] ?? '', '0.007', 'raised-1')])).toEqual({ 200: 1 })
    await capAccount(database, person.accountId, 111_999n)
    const lowered = await Promise.all(
      gateways.map((_, index) => send(index, keys[index] ?? '', '0.007', `low-${index}`)),
    )
    expect(tally(lowered)).toEqual({ '403 policy_denied': GATEWAYS })
  }, 60_000)

  it('let 64 keys below one use its budget to the last unit, and one of them is killed meanwhile', async () => {
    const person = await newGuest(chooseOrigin(0))
    const policy = (max: string) => ({
      perTransaction: { max: '1' },
      dailyBudget: { max },
      categories: { allow: ['transfer'] },
    })
    const scopes = ['wallets:transfer', 'agents:delegate']
    const { body: root } = await person.send('POST', '/api/developer/keys', {
      name: 'Root',
      scopes,
      policy: policy('2'),
    })
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const delegate = async (parent: string, index: number): Promise<string> => {
      const response = await fetch(`${chooseOrigin(index)}/api/agents/delegations`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${parent}` },
        body: JSON.stringify({ name: 'Child', scopes, policy: policy('2'), expiresAt, bearer: true }),
      })
      return z.object({ key: z.string() }).parse(await response.json()).key
    }
    const keys: string[] = []
    let above = [z.string().parse(root.key)]
    for (const count of [4, 15, 44]) {
      const parents = above
      above = await Promise.all(
        Array.from({ length: count }, (_, index) => delegate(parents[index % parents.length] ?? '', index)),
      )
      keys.push(...above)
    }
    keys.push(await delegate(keys.at(-1) ?? '', 0))
    const amounts = ['0.011', '0.03', '0.007']
    const spend = (index: number) =>
      send(index, keys[index % keys.length] ?? '', amounts[index % amounts.length] ?? '', `tree-${index}`)
    const victim = gateways[GATEWAYS - 1]
    const running = load(300, spend)
    await pause(500)
    victim?.process.kill('SIGKILL')
    if (victim?.process.signalCode === null) await once(victim.process, 'exit')
    await running
    gateways[GATEWAYS - 1] = await startGateway(env)
    await load(300, (index) => untilAnswered(() => spend(index)))
    await load(64, (index) => send(index, keys[index % keys.length] ?? '', '0.001', `rest-${index}`))
    await awaitOutcomes(person.accountId)
    const { rows } = await sql<{ used: bigint; counted: bigint }>`
      select (select u.used_micros from budget_usage u where u.key_id = ${root.id}) as used,
        (select sum(r.usd_micros)::bigint from reservation r where r.account_id = ${person.accountId}
          and r.status <> 'released') as counted`.execute(database.kysely)
    expect(rows).toEqual([{ used: 2_000_000n, counted: 2_000_000n }])
    expect(await readWallet(person)).toEqual({ amount: '998', held: '0', onChain: 998_000_000n })
  }, 120_000)

  it('lose nothing and spend nothing twice when one of them is killed under load', async () => {
    const person = await newGuest(chooseOrigin(0))
    const key = await createKey(person, '1')
    const victim = gateways[GATEWAYS - 1]
    const ofLoad = (index: number) => send(index, key, '0.007', `killed-${index}`)
    const outcomes = load(400, ofLoad)
    await pause(700)
    victim?.process.kill('SIGKILL')
    if (victim?.process.signalCode === null) await once(victim.process, 'exit')
    const first = await outcomes
    expect(first.some(({ status }) => status === 'lost')).toBe(true)
    await awaitOutcomes(person.accountId)
    gateways[GATEWAYS - 1] = await startGateway(env)

    // Requests that lost their answer are repeated, with the same keys and at every gateway.
    const second = await load(400, (index) => untilAnswered(() => ofLoad(index)))
    const counts = tally(second)
    expect(Object.keys(counts).filter((name) => !/^(200|403 policy_denied|503 .*)$/.test(name))).toEqual([])
    const ends = await awaitOutcomes(person.accountId)
    const settled = BigInt(ends.settled ?? 0)
    expect(settled <= 142n).toBe(true)
    const answered = second.flatMap(({ status, body }) => (status === 200 ? [body.transferId] : []))
    expect(new Set(answered).size).toBe(answered.length)
    expect(BigInt(answered.length)).toBe(settled)
    const left = 1_000_000_000n - settled * 7_000n
    const { held, onChain } = await readWallet(person)
    expect({ held, onChain }).toEqual({ held: '0', onChain: left })
    const used = await database.kysely
      .selectFrom('budget_usage')
      .innerJoin('access_key', 'access_key.id', 'budget_usage.key_id')
      .select(['used_micros', 'count'])
      .where('access_key.account_id', '=', person.accountId)
      .executeTakeFirstOrThrow()
    expect(used).toEqual({ used_micros: settled * 7_000n, count: Number(settled) })
    expect(await trialBalance(database)).toMatchObject({ balanced: true, drifts: [] })
  }, 120_000)
})
