/**
 * Money back in a storm: purchases from the sandbox's sellers, most of whom lie, over gateways that are killed and started again. What can
 * be recovered is back without a person, what was delivered is not taken back without the owner, and the books are the chain's.
 * STORM_PURCHASES and STORM_CLIENTS set the size, STORM_SECONDS when nothing more is bought; the figures are printed.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { connectRpcChain } from '../../src/chain/rpc.ts'
import { silentLog } from '../../src/core/base/log.ts'
import type { Chain } from '../../src/providers/chain/port.ts'
import { readPurseBalances } from '../../src/rails/buying/purse-books.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const PURCHASES = Number(process.env.STORM_PURCHASES ?? 60)
const BUYING_MS = Number(process.env.STORM_SECONDS ?? 600) * 1_000
const GATEWAYS = 3
const CLIENTS = Number(process.env.STORM_CLIENTS ?? 8)
const KILL_MS = 2_000
const SELLERS = [
  'refunds',
  'weather',
  'times-out',
  'refunds',
  'redirects-inward',
  'refuses-refund',
  'refunds',
  'stumbling',
  'charges-again',
  'refunds',
  'settles-late',
  'hangs-up',
] as const
const answer = z.looseObject({
  status: z.union([z.string(), z.number()]).optional(),
  code: z.string().optional(),
  purchaseId: z.string().nullish(),
  recourseId: z.string().optional(),
})
type Answer = z.output<typeof answer>
const OPEN = new Set(['idempotency_in_progress', 'internal', 'provider_unavailable', 'settlement_pending'])

describe.skipIf(testServerUrl === undefined || !hasAnvil())('a storm of recourse', () => {
  let node: AnvilProcess
  let chain: Chain
  let database: Database
  let drop = async () => {}
  let owner: Person
  let key = ''
  const gateways: Gateway[] = []
  const envs: Record<string, string>[] = []

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
      gateways.push(await startGateway(shared))
      envs.push({ ...shared, PORT: new URL(gateways[at]?.origin ?? '').port })
    }
    database = await openPostgres({ url: created.url })
    chain = await connectRpcChain({
      name: 'base-sepolia',
      url: node.url,
      log: silentLog,
      clock: () => new Date(),
    })
    owner = await newGuest(gateways[0]?.origin ?? '')
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Storm',
      scopes: ['purchases:pay', 'wallets:read'],
      policy: {
        perTransaction: { max: '1' },
        dailyBudget: { max: '100' },
        categories: { allow: ['x402'] },
      },
    })
    key = `Bearer ${z.looseObject({ key: z.string() }).parse(body).key}`
  }, 180_000)
  afterAll(async () => {
    for (const gateway of gateways)
      if (gateway.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
    await chain?.close()
    await database?.close()
    await node?.stop()
    await drop()
  }, 60_000)

  /** Calls gateways in turn until one gives an answer that is final. */
  const call = async (
    path: string,
    body: object,
    { idempotencyKey, first }: { idempotencyKey?: string; first: number },
  ): Promise<Answer> => {
    for (let tries = 0; tries < 200; tries += 1) {
      const { origin } = gateways[(first + tries) % GATEWAYS] ?? { origin: '' }
      const headers = {
        authorization: key,
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      }
      const said = await requestJson(origin, 'POST', path, { body, headers }).catch(() => undefined)
      const read = said === undefined ? undefined : answer.parse(said.body)
      const isOpen = read === undefined || OPEN.has(String(read.code ?? read.status))
      if (!isOpen || (read?.code === 'provider_unavailable' && read.purchaseId != null)) return read
      await pause(300)
    }
    return {}
  }

  const killing = async (isOver: () => boolean) => {
    let kills = 0
    while (!isOver()) {
      await pause(KILL_MS)
      // The first one serves the sellers.
      const at = 1 + (kills % (GATEWAYS - 1))
      const ended = gateways[at]
      if (ended === undefined || isOver()) break
      ended.process.kill('SIGKILL')
      gateways[at] = await startGateway(envs[at])
      kills += 1
    }
    return kills
  }

  it('brings back what can come back', { timeout: 900_000 }, async () => {
    const asked: { seller: string; purchaseId: string; recourse: Answer }[] = []
    let next = 0
    let withoutYes = 0
    let unbought = 0
    let purchases = 0
    const until = performance.now() + BUYING_MS
    const client = async () => {
      for (let number = next++; number < PURCHASES && performance.now() < until; number = next++) {
        purchases += 1
        const seller = SELLERS[number % SELLERS.length] ?? 'refunds'
        const url = `${gateways[0]?.origin}/sandbox/sellers/${seller}`
        const bought = await call(
          '/api/purchases',
          { url, maxAmount: '0.05' },
          { idempotencyKey: `buy-${number}`, first: number },
        )
        if (bought.purchaseId == null) {
          unbought += 1
          continue
        }
        const object = { kind: 'purchase', id: bought.purchaseId }
        // A payment has one recourse: a repeated call needs no key, which a killed gateway would keep for two minutes.
        const recourse = await call('/api/recourse', { object, reason: 'not_delivered' }, { first: number })
        if (bought.status === 'delivered' && recourse.recourseId !== undefined) withoutYes += 1
        if (bought.status !== 'delivered') asked.push({ seller, purchaseId: bought.purchaseId, recourse })
      }
    }
    let isOver = false
    const killed = killing(() => isOver)
    await Promise.all(Array.from({ length: CLIENTS }, client))
    isOver = true
    const kills = await killed
    const read = () =>
      database.kysely
        .selectFrom('recourse')
        .select(['object_id', 'status', 'route', 'recovered', 'claimed'])
        .execute()
    for (let left = 120; left > 0; left -= 1) {
      const open = (await read()).filter(({ status }) => status === 'open')
      if (open.length === 0) break
      await pause(1_000)
    }
    const ended = new Map((await read()).map((row) => [row.object_id, row]))
    const ends: Record<string, number> = {}
    let recoverable = 0
    let recovered = 0
    for (const { seller, purchaseId, recourse } of asked) {
      const end = ended.get(purchaseId)
      const name = `${seller}: ${end === undefined ? (recourse.code ?? 'none') : `${end.status} by ${end.route}`}`
      ends[name] = (ends[name] ?? 0) + 1
      // The others have taken the money and declare no refunds, or refuse them.
      const isRecoverable =
        seller === 'refunds' || end?.route === 'cancel_authorization' || end?.route === 'present_again'
      if (!isRecoverable) continue
      recoverable += 1
      if (end?.status === 'recovered') recovered += 1
    }
    process.stdout.write(
      `${JSON.stringify({ purchases, unbought, kills, recourse: asked.length, recoverable, recovered, ends })}\n`,
    )
    expect(withoutYes).toBe(0)
    expect(recoverable).toBeGreaterThan(0)
    expect(recovered / recoverable).toBeGreaterThanOrEqual(0.95)
    expect([...ended.values()].filter(({ status }) => status === 'open')).toEqual([])
    expect((await trialBalance(database)).balanced).toBe(true)
    for (const { address, asset, available, held } of await readPurseBalances(database, null))
      expect(await chain.readBalance(asset, address)).toBe(available + held)
  })
})
