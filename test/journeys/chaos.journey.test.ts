/**
 * Kills the chain or the gateway at every step of a transfer, under a load of 120 transfers. Afterwards every transfer
 * has one final outcome that does not change; ledger and chain agree to the last unit, and no money moved twice or was
 * lost.
 */
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { createPublicClient, erc20Abi, http } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { expectEventsOfEffects } from '../records/events/effects.ts'
import { type ChainProxy, type Step, startChainProxy } from './chain-proxy.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

const TRANSFERS = 120
const CLIENTS = 24
/**
 * Minimum of confirmed transfers. A reservation without a written transfer is released when a gateway dies, and its
 * client gets an error: at most one per client.
 */
const MIN_CONFIRMED = TRANSFERS - CLIENTS
const UNITS = 10_000n
const STEPS: readonly Step[] = ['before broadcast', 'after broadcast', 'at the receipt']
/** The transaction hit by the fault, in the middle of the load. */
const NTH = 6

const hex = z.templateLiteral(['0x', z.string()])
const wallet = z.object({
  safeAddress: hex,
  balances: z.array(z.object({ token: z.string(), amount: z.string(), held: z.string() })),
})
const answer = z.looseObject({
  status: z.union([z.string(), z.number()]).optional(),
  code: z.string().optional(),
  transferId: z.string().optional(),
})
type Answer = z.output<typeof answer>

const binary = (() => {
  try {
    return findAnvil(process.env.ANVIL_BIN)
  } catch {
    return undefined
  }
})()

describe.skipIf(testServerUrl === undefined || binary === undefined)('a load of transfers', () => {
  let node: AnvilProcess
  let proxy: ChainProxy
  let database: Database
  let drop = async () => {}
  let env: Record<string, string>
  let gateway: Gateway
  let payer: Person
  let payee: Person

  beforeAll(async () => {
    node = await spawnAnvil(binary ?? '', 0, 10_000)
    proxy = await startChainProxy(() => node.url)
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    env = {
      DATABASE_URL: created.url,
      CHAIN_RPC_URL: proxy.url,
      RATE_MUTATIONS: '100000/60',
      LOG_LEVEL: 'error',
    }
    gateway = await startGateway(env)
    // The gateway restarts on its first port: its clients have no other address.
    env.PORT = new URL(gateway.origin).port
    database = await openPostgres({ url: created.url })
    ;[payer, payee] = [await newGuest(gateway.origin), await newGuest(gateway.origin)]
  }, 120_000)
  afterAll(async () => {
    if (gateway?.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
    await database?.close()
    await proxy?.close()
    await node?.stop()
    await drop()
  }, 60_000)

  /** Stops the node and restarts it empty on the same port. */
  const killNode = async () => {
    await node.stop()
    node = await spawnAnvil(binary ?? '', node.port, 10_000)
  }
  const killGateway = async () => {
    const exited = once(gateway.process, 'exit')
    gateway.process.kill('SIGKILL')
    await exited
  }
  const hasExited = () => gateway.process.signalCode !== null

  const readUsdc = async (person: Person) => {
    const { safeAddress, balances } = wallet.parse((await person.send('GET', '/api/wallets')).body)
    const { amount = '0', held = '0' } = balances.find(({ token }) => token === 'USDC') ?? {}
    const client = createPublicClient({ chain: baseSepolia, transport: http(node.url) })
    const onChain = await client.readContract({
      address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [safeAddress],
    })
    return { safeAddress, units: BigInt(Math.round(Number(amount) * 1e6)), held, onChain }
  }

  const send = async (destination: string, idempotencyKey: string): Promise<Answer | 'lost'> => {
    try {
      const { body } = await payer.send(
        'POST',
        '/api/wallets/transfer',
        { destination, amount: '0.01', signature: 'sandbox' },
        { 'idempotency-key': idempotencyKey },
      )
      return answer.parse(body)
    } catch {
      return 'lost'
    }
  }
  /** True for a final outcome: the transfer is confirmed, or its error does not suggest a retry. */
  const isFinal = (result: Answer) =>
    result.status === 'confirmed' ||
    (result.code === 'provider_unavailable' && result.retryAfter === undefined)
  /** Repeats a call until its outcome is final. */
  const transferUntilFinal = async (destination: string, idempotencyKey: string): Promise<Answer> => {
    for (let attempt = 0; attempt < 300; attempt += 1) {
      const result = await send(destination, idempotencyKey)
      if (result !== 'lost' && isFinal(result)) return result
      await pause(200)
    }
    throw new Error(`no final outcome for ${idempotencyKey}`)
  }
  const transferAllUntilFinal = async (destination: string, name: string): Promise<Answer[]> => {
    const answers: Answer[] = []
    let next = 0
    const client = async () => {
      for (let index = next++; index < TRANSFERS; index = next++)
        answers[index] = await transferUntilFinal(destination, `${name.replaceAll(' ', '-')}-${index}`)
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
    return answers
  }

  /** Restarts the gateway after the fault has killed it. */
  const keepUp = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      if (hasExited()) gateway = await startGateway(env)
      await pause(50)
    }
  }

  const survive = async (name: string, begin: () => void | Promise<void>) => {
    const [from, to] = [await readUsdc(payer), await readUsdc(payee)]
    const stopping = new AbortController()
    const keeping = keepUp(stopping.signal)
    const loading = transferAllUntilFinal(to.safeAddress, name)
    await begin()
    const answers = await loading
    stopping.abort()
    await keeping

    const confirmed = answers.filter(({ status }) => status === 'confirmed')
    const moved = BigInt(confirmed.length) * UNITS
    await expect.poll(async () => (await readUsdc(payer)).held, { timeout: 20_000 }).toBe('0')
    const [payerNow, payeeNow] = [await readUsdc(payer), await readUsdc(payee)]
    expect(payerNow.units).toBe(from.units - moved)
    expect(payeeNow.units).toBe(to.units + moved)
    expect(payerNow.onChain).toBe(payerNow.units)
    expect(payeeNow.onChain).toBe(payeeNow.units)
    expect(new Set(confirmed.map(({ transferId }) => transferId)).size).toBe(confirmed.length)
    expect(await trialBalance(database)).toMatchObject({ balanced: true, drifts: [] })
    await expectEventsOfEffects(database)
    // All at once: what a busy gateway answers with a time to retry is repeated.
    const again = await Promise.all(
      answers.map((_, index) => transferUntilFinal(to.safeAddress, `${name.replaceAll(' ', '-')}-${index}`)),
    )
    const result = ({ status, code, transferId }: Answer) => [status, code, transferId]
    expect(again.map(result)).toEqual(answers.map(result))
    return confirmed.length
  }

  for (const step of STEPS) {
    it(`survives a node killed ${step}`, async () => {
      const confirmed = await survive(`node ${step}`, () => proxy.cut(step, NTH, killNode))
      expect(confirmed).toBe(TRANSFERS)
    }, 120_000)

    it(`survives a gateway killed ${step}`, async () => {
      const confirmed = await survive(`gateway ${step}`, () => proxy.cut(step, NTH, killGateway))
      expect(confirmed).toBeGreaterThanOrEqual(MIN_CONFIRMED)
    }, 120_000)
  }

  it('survives a gateway killed between reserving money and writing the transfer', async () => {
    const confirmed = await survive('gateway reserved', async () => {
      await pause(300)
      await database.transaction(async ({ call }) => {
        await call({ name: 'chaos_lock', text: 'lock table transfer in share row exclusive mode' }, [])
        await pause(300)
        await killGateway()
      })
    })
    expect(confirmed).toBeGreaterThanOrEqual(MIN_CONFIRMED)
  }, 120_000)
})
