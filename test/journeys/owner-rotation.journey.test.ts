/**
 * The key that owns wallets is replaced in production, on two chains, while its gateway is killed again and again, another one still
 * has the former key alone, and people, agents and cards pay.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseAbi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { bursar } from '../commands/bursar.ts'
import { testServerUrl } from '../engines.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { askForApproval } from './card-request.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { type Mainnet, startMainnet } from './mainnet.ts'
import { type OnMainnet, type Owner, openOnMainnet, openPayer, treasury } from './on-mainnet.ts'
import { enrollMfa, type Person, requestJson } from './people.ts'

const SLOW = { timeout: 90_000, interval: 500 }
const METRICS_TOKEN = 'metrics-of-this-test'
const [former, next, stranger] = ['2', '3', '4'].map((digit) => `0x${digit.repeat(64)}` as const)
const hex = z.templateLiteral(['0x', z.string()])
const addressOf = (key: `0x${string}` | undefined) => privateKeyToAccount(key ?? '0x').address
const report = z.object({
  checks: z.array(z.object({ check: z.string(), status: z.string(), detail: z.string() })),
})
const rows = z.array(
  z.looseObject({ token: z.string(), chain: z.string(), amount: z.string(), held: z.string() }),
)
const safeAbi = parseAbi(['function getOwners() view returns (address[])'])

describe.skipIf(testServerUrl === undefined || !hasAnvil())('the key of owners in production', () => {
  const closing: (() => unknown)[] = []
  let base: Mainnet
  let arbitrum: Mainnet
  let scene: OnMainnet
  let ada: Person
  let adaSafe: `0x${string}`
  let apiKey: string
  let holder: Owner
  let late: Person
  let card: string

  beforeAll(async () => {
    base = await startMainnet('base')
    closing.push(base.close)
    arbitrum = await startMainnet('arbitrum', { hasOwnContracts: true })
    closing.push(arbitrum.close)
    const sponsor = privateKeyToAccount(`0x${'1'.repeat(64)}`).address
    for (const chain of [base, arbitrum]) await chain.giveGas(sponsor)
    scene = await openOnMainnet(base, {
      CHAINS: 'base,arbitrum',
      CHAIN_RPC_URL_ARBITRUM: arbitrum.url,
      METRICS_TOKEN,
    })
    closing.push(scene.close)
    ;({ person: ada, apiKey } = await openPayer(scene, base))
    adaSafe = hex.parse((await ada.send('GET', '/api/wallets')).body.safeAddress)
    await arbitrum.pay(adaSafe, 20_000_000n)
    holder = await scene.newOwner('holder@example.com')
    await base.pay(holder.safe, 100_000_000n)
    late = await scene.production.signIn('late@example.com')
    await enrollMfa(late)
    await arbitrum.request('anvil_mine', ['0x28'])
  }, 300_000)
  afterAll(async () => {
    for (const close of closing.reverse()) await close()
  }, 60_000)

  const amountOf = async (person: Person, chain = 'base') =>
    rows
      .parse((await person.send('GET', '/api/wallets')).body.balances)
      .find((row) => row.token === 'USDC' && row.chain === chain)?.amount
  const origin = () => scene.production.gateway().origin
  const newPayee = () => privateKeyToAccount(generatePrivateKey()).address
  const newOrder = (chain: 'base' | 'arbitrum' = 'base') => ({
    destination: newPayee(),
    chain,
    key: randomUUID(),
  })
  type Order = ReturnType<typeof newOrder>
  /** Repeats a payment until it is made, at whichever gateway answers. */
  const payAt = async (
    origins: readonly (() => string)[],
    { destination, chain, key }: Order,
    bearer = apiKey,
  ) => {
    for (let turn = 0; turn < 400; turn += 1) {
      const at = origins[turn % origins.length] ?? origin
      const answer = await requestJson(at(), 'POST', '/api/wallets/transfer', {
        body: { destination, amount: '1', chain },
        headers: { authorization: `Bearer ${bearer}`, 'Idempotency-Key': key },
      }).catch(() => null)
      if (answer?.status === 200) return
      // Gone, starting, or its outcome is not known yet. Nothing else, and never a refusal for good.
      if (answer !== null && answer.status !== 503 && answer.body.code !== 'idempotency_in_progress')
        throw new Error(`a payment was refused: ${answer.status} ${JSON.stringify(answer.body)}`)
      await sleep(250)
    }
    throw new Error('a payment was never made')
  }
  const nodeOf = (chain: string) => (chain === 'base' ? base : arbitrum)
  const ownersOf = (node: Mainnet, address: `0x${string}`) =>
    node.client.readContract({ address, abi: safeAbi, functionName: 'getOwners' })
  const doctor = async (more: Readonly<Record<string, string | undefined>>) => {
    const env = { ...scene.production.environment, ...more }
    const { out } = await bursar(
      ['doctor', '--json'],
      Object.fromEntries(
        Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
      ),
    )
    return report.parse(JSON.parse(out)).checks.find(({ check }) => check === 'owners')
  }
  const gauge = async () => {
    const answer = await fetch(`${origin()}/metrics`, {
      headers: { authorization: `Bearer ${METRICS_TOKEN}` },
    })
    const text = await answer.text()
    return [...text.matchAll(/^bursar_former_owner_safes\{chain="(\w+)"\} (\d+)$/gm)].map(
      ([, chain, count]) => `${chain} ${count}`,
    )
  }
  const readDatabase = async <Result>(
    read: (database: Awaited<ReturnType<typeof openPostgres>>) => Promise<Result>,
  ) => {
    const database = await openPostgres({ url: scene.production.databaseUrl })
    try {
      return await read(database)
    } finally {
      await database.close()
    }
  }
  const keys = { CHAIN_OWNER_KEY: next ?? '', CHAIN_OWNER_KEY_PREVIOUS: former ?? '' }

  it('pays a transfer on each chain and holds a card purchase, with the first key', async () => {
    await expect.poll(() => amountOf(ada, 'arbitrum'), SLOW).toBe('20')
    await expect.poll(() => amountOf(holder), SLOW).toBe('100')
    for (const chain of ['base', 'arbitrum'] as const) {
      const order = newOrder(chain)
      await payAt([origin], order)
      await expect.poll(() => nodeOf(chain).readBalance(order.destination), SLOW).toBe(1_000_000n)
      expect(await ownersOf(nodeOf(chain), adaSafe)).toEqual([addressOf(former)])
    }
    const intent = await holder.send('POST', '/api/wallets/allowances/intent', {
      agentId: 'cards',
      dailyMax: '50',
    })
    const signed = holder.sign(intent.body)
    await expect
      .poll(async () => (await holder.send('POST', '/api/wallets/allowances', signed)).status, SLOW)
      .toBe(200)
    expect(await holder.send('POST', '/api/cards', {})).toMatchObject({ status: 200 })
    card = scene.vendors.lastToken()
    expect(await gauge()).toEqual(['base 0', 'arbitrum 0'])
  }, 240_000)

  it('does not start with another key alone, or with a wrong one before it', async () => {
    const started = async (more: Readonly<Record<string, string>>) =>
      startGateway({ ...scene.production.environment, PORT: '0', ...more }).then(
        async (gateway) => {
          await gateway.stop()
          return 'it started'
        },
        (error: Error) => error.message,
      )
    expect(await started({ CHAIN_OWNER_KEY: next ?? '' })).toContain(
      'CHAIN_OWNER_KEY does not own the wallets of this database. Use the original key',
    )
    expect(
      await started({ CHAIN_OWNER_KEY: next ?? '', CHAIN_OWNER_KEY_PREVIOUS: stranger ?? '' }),
    ).toContain(
      `CHAIN_OWNER_KEY_PREVIOUS (${addressOf(stranger).toLowerCase()}) does not own the wallets of this database`,
    )
    expect(await started({ CHAIN_OWNER_KEY_PREVIOUS: former ?? '' })).toContain(
      'CHAIN_OWNER_KEY_PREVIOUS: must differ from CHAIN_OWNER_KEY',
    )
  }, 120_000)

  it('is replaced while payments and cards go on, and its gateway is killed', async () => {
    // Has the former key alone for as long as it runs.
    const old: Gateway = await startGateway({ ...scene.production.environment, PORT: '0' })
    closing.push(() => old.stop())
    const orders: Order[] = []
    let isOver = false
    const streams = [[origin], [() => old.local, origin]].flatMap((origins) =>
      (['base', 'arbitrum'] as const).map(async (chain) => {
        while (!isOver && orders.length < 24) {
          const order = newOrder(chain)
          orders.push(order)
          await payAt(origins, order)
          await sleep(500)
        }
      }),
    )
    const paid = Promise.all(streams)
    paid.catch(() => undefined)
    const purchase = askForApproval(card, 1_200)
    expect(await scene.tellLithic(purchase)).toMatchObject({ result: 'APPROVED' })
    for (const afterMs of [0, 1_500, 3_000]) {
      scene.production.gateway().process.kill('SIGKILL')
      await scene.production.start(keys)
      await sleep(afterMs)
    }
    const before = await base.readBalance(treasury)
    await scene.tellLithic({
      ...{
        event_type: 'card_transaction.updated',
        token: purchase.token,
        card_token: card,
        status: 'SETTLED',
      },
      events: [
        { token: `${purchase.token}-a`, type: 'AUTHORIZATION', amount: 1_200, result: 'APPROVED' },
        { token: `${purchase.token}-c`, type: 'CLEARING', amount: 1_200, result: 'APPROVED' },
      ],
    })
    scene.production.gateway().process.kill('SIGKILL')
    await scene.production.start(keys)
    await expect.poll(() => base.readBalance(treasury), SLOW).toBe(before + 12_000_000n)
    const isFinished = () =>
      readDatabase(async ({ kysely }) => {
        const row = await kysely.selectFrom('owner_rotation').select('finished_at').executeTakeFirst()
        return row !== undefined && row.finished_at !== null
      })
    await expect.poll(isFinished, { timeout: 240_000, interval: 1_000 }).toBe(true)
    isOver = true
    await paid
    for (const { destination, chain } of orders)
      await expect.poll(() => nodeOf(chain).readBalance(destination), SLOW).toBe(1_000_000n)
    expect(orders.length).toBeGreaterThan(8)
    for (const node of [base, arbitrum]) expect(await ownersOf(node, adaSafe)).toEqual([addressOf(next)])
    expect(await gauge()).toEqual(['base 0', 'arbitrum 0'])
    expect(await doctor(keys)).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/base 0, arbitrum 0; .*remove CHAIN_OWNER_KEY_PREVIOUS$/),
    })
    await old.stop()
  }, 580_000)

  it('pays without the former key, also from a wallet that is deployed only now', async () => {
    await scene.production.start({ CHAIN_OWNER_KEY: next ?? '' })
    for (const chain of ['base', 'arbitrum'] as const) await payAt([origin], newOrder(chain))
    const safe = hex.parse((await late.send('GET', '/api/wallets')).body.safeAddress)
    expect(await base.client.getCode({ address: safe })).toBeUndefined()
    await base.pay(safe, 10_000_000n)
    await expect.poll(() => amountOf(late), SLOW).toBe('10')
    const { body } = await late.send('POST', '/api/developer/keys', {
      name: 'Payer',
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '50' },
        categories: { allow: ['transfer'] },
      },
    })
    const order = newOrder()
    await payAt([origin], order, z.string().parse(body.key))
    await expect.poll(() => base.readBalance(order.destination), SLOW).toBe(1_000_000n)
    expect(await ownersOf(base, safe)).toEqual([addressOf(next)])
    expect(await doctor({ CHAIN_OWNER_KEY: next ?? '' })).toMatchObject({ status: 'ok' })
  }, 240_000)

  it('leaves books that are what the chains show', async () => {
    await readDatabase(async (database) => {
      const { kysely } = database
      const isQuiet = async () => {
        const open = await kysely
          .selectFrom('reservation')
          .select('decision_id')
          .where('status', '=', 'reserved')
          .execute()
        return open.length
      }
      await expect.poll(isQuiet, SLOW).toBe(0)
      expect(await trialBalance(database)).toMatchObject({ balanced: true, drifts: [] })
      expect(await kysely.selectFrom('alarm').select(['domain', 'reason']).execute()).toEqual([])
      const wallets = await kysely.selectFrom('wallet').select(['account_id', 'address', 'escrow']).execute()
      const booked = async (places: readonly string[]) => {
        const found = await kysely
          .selectFrom('balance')
          .select('units')
          .where('asset', '=', 'USDC')
          .where('account', 'in', places)
          .execute()
        return found.reduce((sum, { units }) => sum + units, 0n)
      }
      for (const { account_id: id, address, escrow } of wallets)
        for (const [chain, node] of [
          ['base', base],
          ['arbitrum', arbitrum],
        ] as const) {
          const at = (place: string) => [`${id}:${place}:available`, `${id}:${place}:held`]
          expect(await node.readBalance(hex.parse(address)), `${id} on ${chain}`).toBe(
            await booked(at(chain)),
          )
          if (escrow !== null)
            expect(await node.readBalance(hex.parse(escrow))).toBe(await booked(at(`escrow.${chain}`)))
        }
    })
  }, 120_000)
})
