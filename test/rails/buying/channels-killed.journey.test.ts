/** Two gateways on one channel that are killed again and again: no voucher is charged twice, and the books end as the chain. */
import { once } from 'node:events'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import type { Database } from '../../../src/storage/database.ts'
import { openPostgres } from '../../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { newGuest } from '../../journeys/people.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { type ChannelSeller, connectSellers, PRICE, startChannelSeller } from './channel-sellers.ts'

const PURCHASES = 80
const answer = z.looseObject({ status: z.unknown().optional(), code: z.string().optional() })

describe.skipIf(testServerUrl === undefined || !hasAnvil())('gateways on one channel', () => {
  let node: AnvilProcess
  let chain: Chain
  let gateways: Gateway[] = []
  let envs: Record<string, string>[] = []
  let seller: ChannelSeller
  let gone: ChannelSeller
  let database: Database
  let bearer = ''
  let drop = async () => {}

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = async () => {
      await database.close()
      await created.drop()
    }
    database = await openPostgres({ url: created.url })
    const env = {
      DATABASE_URL: created.url,
      CHAIN_RPC_URL: node.url,
      LOG_LEVEL: 'error',
      RATE_MUTATIONS: '100000/60',
    }
    const first = await startGateway(env)
    gateways = [first, await startGateway(env)]
    envs = gateways.map(({ origin }) => ({ ...env, PORT: new URL(origin).port }))
    chain = await connectSellers(node.url)
    seller = await startChannelSeller(chain, { delayMs: 200 })
    gone = await startChannelSeller(chain)
    const owner = await newGuest(first.origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['purchases:pay', 'wallets:read'],
      policy: {
        perTransaction: { max: '0.05' },
        dailyBudget: { max: '5' },
        categories: { allow: ['x402'] },
      },
    })
    bearer = `Bearer ${String(body.key)}`
  }, 120_000)
  afterAll(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    await seller?.close()
    await gone?.close().catch(() => undefined)
    await chain?.close()
    await node?.stop()
    await drop()
  }, 60_000)

  const send = async (at: number, method: string, path: string, body?: object, key?: string) => {
    const { origin } = gateways[at % gateways.length] ?? { origin: '' }
    const response = await fetch(`${origin}${path}`, {
      method,
      headers: {
        authorization: bearer,
        'content-type': 'application/json',
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    })
    return answer.parse(await response.json())
  }
  const kill = async (at: number) => {
    const gateway = gateways[at]
    const env = envs[at]
    if (gateway === undefined || env === undefined) return
    const exited = once(gateway.process, 'exit')
    gateway.process.kill('SIGKILL')
    await exited
    gateways[at] = await startGateway(env)
  }
  /** Kills one gateway after the other while some work goes on. */
  const whileKilled = async (work: Promise<unknown>, pauseMs: number) => {
    let isOver = false
    const ended = work.finally(() => {
      isOver = true
    })
    for (let n = 0; !isOver; n += 1) {
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, pauseMs + (n % 5) * 170))])
      if (!isOver) await kill(n % 2)
    }
    await ended
  }
  /** Repeats a purchase at either gateway until it is certain. */
  const buy = async (from: ChannelSeller, n: number): Promise<string> => {
    const key = `${new URL(from.origin).port}-${n}`
    const body = { url: `${from.origin}/call/${key}`, maxAmount: '0.01' }
    for (let tries = 0; ; tries += 1) {
      const said = await send(n + tries, 'POST', '/api/purchases', body, key).catch(() => null)
      if (said?.status === 'delivered' || said?.status === 'undelivered') return String(said.status)
      // It was given up before anything was signed.
      if (said?.code === 'provider_unavailable' && 'isFinal' in said) return 'failed'
      if (said?.code === 'seller_failed') return 'failed'
      if (tries > 200) throw new Error(`${key}: ${JSON.stringify(said)}`)
      await new Promise((resolve) => setTimeout(resolve, 400))
    }
  }
  const buyAll = async (from: ChannelSeller, count: number) => {
    const ends: string[] = []
    const lanes = Array.from({ length: 4 }, async (_, lane) => {
      for (let n = lane; n < count; n += 4) ends.push(await buy(from, n))
    })
    await Promise.all(lanes)
    return ends
  }
  const readChannels = async () =>
    database.kysely.selectFrom('channel').selectAll().orderBy('opened_at').execute()
  const closeAll = async () => {
    for (const { id, status } of await readChannels())
      if (status === 'open')
        for (let n = 0; n < 50; n += 1)
          if (
            (await send(n, 'POST', `/api/channels/${id}/close`, {}).catch(() => null))?.status !== undefined
          )
            break
  }
  /** Money of the account by the books: beside that of the world, all of it. */
  const readOutside = async () => {
    const { rows } = await sql<{ units: bigint }>`
      select coalesce(sum(case when p.destination = 'external:base-sepolia' then p.units else -p.units end), 0)::bigint as units
      from posting p join ledger_transaction t on t.id = p.transaction_id
      where 'external:base-sepolia' in (p.source, p.destination) and t.kind <> 'deposit' and p.asset = 'USDC'`.execute(
      database.kysely,
    )
    return rows[0]?.units ?? 0n
  }
  const sum = (values: Iterable<bigint>) => [...values].reduce((total, each) => total + each, 0n)

  it('charge each purchase once, and end with the chain when they are closed together', async () => {
    const ends: string[] = []
    await whileKilled(
      buyAll(seller, PURCHASES).then((all) => void ends.push(...all)),
      7_000,
    )
    const charged = sum((await seller.charged()).values())
    const paid = BigInt(ends.filter((end) => end !== 'failed').length) * PRICE
    expect(ends).toHaveLength(PURCHASES)
    expect(ends.filter((end) => end === 'delivered').length).toBeGreaterThan(PURCHASES / 4)
    expect(charged).toBeLessThanOrEqual(paid)
    await closeAll()
    const isClosed = async () => (await readChannels()).map(({ status }) => status)
    const closed = expect
      .poll(isClosed, { timeout: 240_000, interval: 500 })
      .toSatisfy((all: string[]) => all.every((status) => status === 'closed'))
    await whileKilled(closed, 8_000)
    const claimed = sum((await readChannels()).map((channel) => channel.claimed))
    expect(claimed).toBe(charged)
    expect(await readOutside()).toBe(claimed)
  }, 500_000)

  it('come back without a seller that is gone', async () => {
    const before = await readOutside()
    await buyAll(gone, 4)
    expect((await readOutside()) - before).toBe(4n * PRICE)
    await gone.close()
    await closeAll()
    const isExiting = async () => (await readChannels()).at(-1)?.withdrawable_at ?? null
    await whileKilled(expect.poll(isExiting, { timeout: 200_000, interval: 500 }).not.toBe(null), 4_000)
    await fetch(node.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'evm_increaseTime', params: [901] }),
    })
    const isClosed = async () => (await readChannels()).at(-1)?.status
    await whileKilled(expect.poll(isClosed, { timeout: 200_000, interval: 500 }).toBe('closed'), 4_000)
    expect(await readOutside()).toBe(before)
  }, 500_000)
})
