/**
 * A storm of purchases from honest and flaky sellers over four gateways, which are killed and restarted, while the node of one of
 * them fails for short whiles. Every purchase ends unpaid or paid once, repeated calls deliver what honest sellers sell, no budget of
 * a key or its owner is exceeded over REST, MCP, x402 and cards together, the seller has exactly what the books say, and no money
 * is held or lost. STORM_PURCHASES sets the size.
 */
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { createPublicClient, erc20Abi, http, parseAbiItem } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { toDecimal } from '../../../src/core/money/money.ts'
import { readPurseBalances } from '../../../src/rails/buying/purse-books.ts'
import type { Database } from '../../../src/storage/database.ts'
import { openPostgres } from '../../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import { type ChainProxy, startChainProxy } from '../../journeys/chain-proxy.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person, requestJson } from '../../journeys/people.ts'
import { expectRecomputed } from '../../records/decisions/verify-bundle.ts'
import { expectEventsOfEffects } from '../../records/events/effects.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { type FlakySellers, SELLER, startFlakySellers } from './flaky-sellers.ts'

const PURCHASES = Number(process.env.STORM_PURCHASES ?? 600)
const GATEWAYS = 4
const CLIENTS = 24
const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
/** Sellers that deliver in the end, in one of the calls with one idempotency key. */
const HONEST = ['honest', '504-once', 'drop-before', 'third', 'unsettled', 'unaware']
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
  'unsettled',
  'unaware',
  'forgotten',
]
/** In smallest units. What an FX quote costs, and a card pays: 0.01 USDC, and a cent. */
const QUOTE = 10_000n
const CENT = 10_000n
/** What two keys may spend together, and each: less than they try. Policies are in whole cents. */
const CAP_CENTS = BigInt(Math.floor(PURCHASES / 40))
const CAP = CAP_CENTS * CENT
const BUDGETS = [(CAP_CENTS / 2n) * CENT, ((CAP_CENTS * 3n) / 4n) * CENT] as const
const PAYEE = '0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc'
/** A gateway dies this often. */
const KILL_MS = 5_000
const MIN_KILLS = 4
/** The node of the last gateway fails this often, and so long. */
const OUTAGE = { everyMs: 7_000, forMs: 400 }

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

interface Key {
  readonly id: string
  readonly credential: string
}

const unset: Key = { id: '', credential: '' }

const mcpAnswer = z.object({
  result: z.object({ content: z.tuple([z.object({ text: z.string() })], z.unknown()) }),
})
const wallet = z.looseObject({
  safeAddress: z.templateLiteral(['0x', z.string()]),
  balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
})
const toUnits = (amount: string) => BigInt(Math.round(Number(amount) * 1e6))

/** Starts a gateway as a supervisor does: one that finds its node down ends, and is started again. */
async function restart(env: Record<string, string>): Promise<Gateway> {
  for (let left = 5; ; left -= 1) {
    const started = await startGateway(env).catch((error: unknown) => {
      if (left === 0) throw error
    })
    if (started !== undefined) return started
    await pause(500)
  }
}

function chooseKind(number: number): string {
  return KINDS[number % KINDS.length] ?? 'honest'
}

describe.skipIf(testServerUrl === undefined || !hasAnvil())('a storm of purchases', () => {
  let node: AnvilProcess
  let databaseUrl = ''
  let database: Database
  let sellers: FlakySellers
  let drop = async () => {}
  const gateways: Gateway[] = []
  const envs: Record<string, string>[] = []
  let proxy: ChainProxy
  let isNodeDown = false
  let owner: Person
  let bounded: Person
  let ample = ''
  let tight: readonly [Key, Key] = [unset, unset]
  let cardId = ''

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    const created = await createTestDatabase(testServerUrl ?? '')
    databaseUrl = created.url
    drop = created.drop
    proxy = await startChainProxy(() => {
      if (isNodeDown) throw new Error('the node is down')
      return node.url
    })
    const shared = {
      DATABASE_URL: created.url,
      CHAIN_RPC_URL: node.url,
      RATE_FX: '1000000/60',
      RATE_MUTATIONS: '1000000/60',
      RATE_ACCOUNT: '1000000/60',
      RATE_SPONSORED: '1000000/86400',
      LOG_LEVEL: 'error',
    }
    for (let at = 0; at < GATEWAYS; at += 1) {
      const env = at === GATEWAYS - 1 ? { ...shared, CHAIN_RPC_URL: proxy.url } : { ...shared }
      gateways.push(await startGateway(env))
      // A gateway restarts on its first port: its clients have no other address.
      envs.push({ ...env, PORT: new URL(gateways[at]?.origin ?? '').port })
    }
    sellers = await startFlakySellers(node.url)
    database = await openPostgres({ url: created.url })
    const [first] = gateways
    owner = await newGuest(first?.origin ?? '')
    bounded = await newGuest(first?.origin ?? '')
    const keyWith = async (person: Person, max: string): Promise<Key> => {
      const { body } = await person.send('POST', '/api/developer/keys', {
        name: 'Storm',
        scopes: ['purchases:pay', 'wallets:read', 'wallets:transfer'],
        policy: {
          perTransaction: { max: '0.01' },
          dailyBudget: { max },
          categories: { allow: ['x402', 'transfer', 'card'] },
        },
      })
      const { id, key } = z.looseObject({ id: z.string(), key: z.string() }).parse(body)
      return { id, credential: `Bearer ${key}` }
    }
    const inUsd = (units: bigint) => toDecimal({ asset: 'USDC', units })
    ample = (await keyWith(owner, '1000')).credential
    tight = [await keyWith(bounded, inUsd(BUDGETS[0])), await keyWith(bounded, inUsd(BUDGETS[1]))]
    const capped = await bounded.send('PUT', '/api/agents/policy', { dailyBudget: { max: inUsd(CAP) } })
    expect(capped.status).toBe(200)
    const card = await bounded.send('POST', '/api/cards', { agentId: tight[0].id, limits: { daily: '100' } })
    cardId = z.looseObject({ id: z.string() }).parse(card.body).id
  }, 120_000)
  afterAll(async () => {
    for (const gateway of gateways)
      if (gateway.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
    await database?.close()
    await sellers?.close()
    await proxy?.close()
    await node?.stop()
    await drop()
  }, 60_000)

  /** Who pays: an ample budget, two tight ones, or a person, whose money goes to the purse purchase by purchase. */
  const choosePayer = (number: number) =>
    number % 4 === 0
      ? tight[number % 8 === 0 ? 0 : 1].credential
      : number % 10 === 9
        ? `Bearer ${owner.token}`
        : ample
  const isTight = (number: number) => number % 4 === 0

  const untilOver = async (
    { number, first }: { number: number; first: number },
    isOpen: (body: Answer) => boolean,
    send: Send,
  ): Promise<Answer> => {
    const until = Date.now() + 300_000
    for (let attempt = first; ; attempt += 1) {
      // A session belongs to the origin that issued it.
      const at = choosePayer(number).endsWith(owner.token) ? 0 : attempt % GATEWAYS
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
    const kind = chooseKind(number)
    const url = `${sellers.origin}/${kind}/${number}`
    const headers = { authorization: choosePayer(number), 'idempotency-key': `storm-${number}` }
    return untilOver(
      { number, first },
      (body) =>
        isUnknown(body) ||
        body.status === 'settlement_pending' ||
        (HONEST.includes(kind) && body.status === 'undelivered'),
      (origin) =>
        // Sessions do not speak MCP.
        number % 16 < 8 || choosePayer(number).endsWith(owner.token)
          ? requestJson(origin, 'POST', '/api/purchases', { body: { url, maxAmount: '0.01' }, headers })
          : buyOverMcp(origin, number, url),
    )
  }

  const buyOverMcp = async (origin: string, number: number, url: string) => {
    const params = {
      name: 'purchases_buy',
      arguments: { url, maxAmount: '0.01', idempotency_key: `storm-${number}` },
    }
    const { body } = await requestJson(origin, 'POST', '/mcp', {
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
      headers: { authorization: choosePayer(number), accept: 'application/json, text/event-stream' },
    })
    return { body: JSON.parse(mcpAnswer.parse(body).result.content[0].text) as unknown }
  }

  /** Buys what the gateways themselves sell by x402. */
  const buyQuote = (number: number): Promise<Answer> => {
    const url = `${gateways[number % GATEWAYS]?.origin}/api/x402/fx?from=USD&to=EUR&amount=${number + 1}`
    return untilOver(
      { number, first: number + 1 },
      (body) => isUnknown(body) || body.status === 'settlement_pending',
      (origin) =>
        requestJson(origin, 'POST', '/api/purchases', {
          body: { url, maxAmount: '0.01' },
          headers: { authorization: tight[0].credential, 'idempotency-key': `storm-quote-${number}` },
        }),
    )
  }

  /** Pays a cent by card. Without an answer, it may have been approved. */
  const swipe = async (number: number): Promise<string> => {
    const origin = gateways[number % GATEWAYS]?.origin ?? ''
    const sent = requestJson(origin, 'POST', '/sandbox/authorizations', { body: { cardId, amount: '0.01' } })
    return sent.then(
      ({ body }) => String(body.result ?? body.code),
      () => 'lost',
    )
  }

  /** A transfer of a purchase's price under the tight budget. */
  const transfer = (number: number): Promise<Answer> =>
    untilOver({ number, first: number }, isUnknown, (origin) =>
      requestJson(origin, 'POST', '/api/wallets/transfer', {
        body: { amount: '0.001', token: 'USDC', destination: PAYEE },
        headers: { authorization: tight[1].credential, 'idempotency-key': `storm-transfer-${number}` },
      }),
    )

  it('ends every purchase unpaid or paid once, wherever a gateway dies', async () => {
    const startedAt = performance.now()
    let kills = 0
    let seconds = 0
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
        gateways[at] = await restart(envs[at] ?? {})
      }
    })()
    const failing = (async () => {
      while (!isOver) {
        await pause(OUTAGE.everyMs)
        isNodeDown = !isOver
        await pause(OUTAGE.forMs)
        isNodeDown = false
      }
    })()
    const answers: Answer[] = []
    const quotes: Answer[] = []
    const swipes: string[] = []
    let next = 0
    const buying = Promise.all(
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
          if (number % 64 !== 0) continue
          const [quote, swiped] = await Promise.all([buyQuote(number), swipe(number)])
          quotes.push(quote)
          swipes.push(swiped)
        }
      }),
    ).finally(() => {
      isOver = true
      seconds = Math.round((performance.now() - startedAt) / 1000)
    })
    // A gateway that does not come back ends the storm at once.
    await Promise.all([buying, killing, failing])
    await vi.waitFor(
      async () => {
        const open = await database.kysely
          .selectFrom('purchase')
          .select('id')
          .where('state', 'in', ['reserved', 'signed'])
          .execute()
        const held = await database.kysely
          .selectFrom('reservation')
          .innerJoin('decision', 'decision.id', 'reservation.decision_id')
          .select(['decision.id', 'decision.operation'])
          .where('reservation.status', '=', 'reserved')
          // The sandbox's clearing of a card's purchase dies with its gateway: the hold stays, as for a shop that never clears.
          .where('decision.operation', 'not like', 'cards.%')
          .execute()
        const sold = await database.kysely
          .selectFrom('payment')
          .select('id')
          .where('state', 'in', ['taking', 'pending'])
          .execute()
        expect({ open, held, sold }).toEqual({ open: [], held: [], sold: [] })
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
    const readBalance = (address: `0x${string}`) =>
      client.readContract({ address: USDC, abi: erc20Abi, functionName: 'balanceOf', args: [address] })
    const counts = [...new Set(answers.map(({ status, code }) => String(code ?? status)))].map(
      (name) => `${name} ${answers.filter(({ status, code }) => String(code ?? status) === name).length}`,
    )
    const unpaid = purchases.length - settled.length
    process.stdout.write(
      `${PURCHASES} purchases in ${seconds} s, ${kills} kills: ${settled.length} paid, ${unpaid} not; ${counts.join(', ')}\n`,
    )
    // What the chain shows is what the books say: each payment belongs to one purchase, and each purchase has one.
    // A purse that rests returns its money by an authorization too.
    const swept = await database.kysely.selectFrom('purse_sweep').select('nonce').execute()
    const returns = new Set<string | undefined>(swept.map(({ nonce }) => nonce))
    const payments = used
      .filter(({ args }) => !returns.has(args.nonce))
      .map(({ args }) => `${args.authorizer?.toLowerCase()} ${args.nonce}`)
    expect(payments.toSorted()).toEqual(settled.map(({ payer, nonce }) => `${payer} ${nonce}`).toSorted())
    expect(new Set(payments).size).toBe(payments.length)
    const sumPaidTo = (payee: string) =>
      settled.reduce((sum, row) => (row.pay_to === payee.toLowerCase() ? sum + row.units : sum), 0n)
    expect(await readBalance(SELLER)).toBe(sumPaidTo(SELLER))
    // Each quote that was paid for was sold, once.
    const bought = settled.filter(({ units }) => units === QUOTE)
    const sales = await database.kysely
      .selectFrom('payment')
      .select(['payer', 'nonce'])
      .where('state', '=', 'settled')
      .execute()
    const inOrder = (rows: readonly { readonly payer: string; readonly nonce: string }[]) =>
      rows.map(({ payer, nonce }) => `${payer} ${nonce}`).toSorted()
    expect(inOrder(sales)).toEqual(inOrder(bought))
    // What callers were told was charged is what was paid. A seller may deliver without ever taking its payment.
    const paid = new Set(settled.map(({ id }) => id))
    for (const { purchaseId, charged } of [...answers, ...quotes])
      if (purchaseId != null)
        expect([purchaseId, charged !== undefined && charged !== '0']).toEqual([
          purchaseId,
          paid.has(purchaseId),
        ])
    for (const { address, asset, available, held } of await readPurseBalances(database, null))
      expect([asset, await readBalance(address), held]).toEqual([asset, available, 0n])
    expect(await trialBalance(database)).toMatchObject({ balanced: true, drifts: [] })
    await expectEventsOfEffects(database)
    const readUsdc = async (person: Person) => {
      const { safeAddress, balances } = wallet.parse((await person.send('GET', '/api/wallets')).body)
      const { amount = '', held = '' } = balances.find(({ token }) => token === 'USDC') ?? {}
      return { units: toUnits(amount), held: toUnits(held), onChain: await readBalance(safeAddress) }
    }
    const own = await readUsdc(owner)
    expect([own.held, own.onChain]).toEqual([0n, own.units])
    // A card's purchase is held until its clearing comes, which a killed gateway may have lost.
    const theirs = await readUsdc(bounded)
    expect(theirs.onChain).toBe(theirs.units + theirs.held)
    // Honest sellers deliver, unless the budget is used up.
    const honest = answers.flatMap((body, number) =>
      HONEST.includes(chooseKind(number)) && body.code !== 'policy_denied' ? [{ number, ...body }] : [],
    )
    const missed = honest.filter(({ status }) => status !== 'delivered')
    process.stdout.write(`${honest.length} honest, not delivered: ${JSON.stringify(missed)}\n`)
    expect(missed.length).toBeLessThanOrEqual(honest.length / 1000)
    expect(
      answers.flatMap(({ code }, number) => (code === 'policy_denied' && !isTight(number) ? [number] : [])),
    ).toEqual([])
    const swiped = await database.kysely
      .selectFrom('card_authorization')
      .select(['key_id', 'approved'])
      .where('status', '<>', 'declined')
      .execute()
    const spentBy = ({ id }: Key) => [
      ...settled.flatMap(({ key_id, units }) => (key_id === id ? [units] : [])),
      ...swiped.flatMap(({ key_id, approved }) => (key_id === id ? [approved * CENT] : [])),
    ]
    const sumUnits = (units: readonly bigint[]) => units.reduce((sum, each) => sum + each, 0n)
    const spent = [
      sumUnits(spentBy(tight[0])),
      sumUnits(spentBy(tight[1])) + (await readBalance(PAYEE)),
    ] as const
    const total = spent[0] + spent[1]
    process.stdout.write(
      `the budgets ${BUDGETS.join(', ')} and the cap ${CAP} were used by ${spent.join(', ')} and ${total}: ` +
        `${bought.length} of ${quotes.length} quotes, ${swiped.length} of ${swipes.length} card payments\n`,
    )
    expect(spent[0]).toBeLessThanOrEqual(BUDGETS[0])
    expect(spent[1]).toBeLessThanOrEqual(BUDGETS[1])
    expect(total).toBeLessThanOrEqual(CAP)
    expect(total).toBeGreaterThan((CAP * 3n) / 4n)
    expect([bought.length, swiped.length].every((count) => count > 0)).toBe(true)
    await expectRecomputed({ DATABASE_URL: databaseUrl })
  }, 1_800_000)
})
