/** A gateway that is killed while it sends payouts: each is paid once or not at all, and the repeated call says which. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { external } from '../../src/books/ledger/accounts.ts'
import { balanceOfSystem } from '../../src/books/ledger/balances.ts'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

const PAYOUTS = 12
/** Milliseconds after the first request: from before the reservation to after the provider's answer. */
const KILLED_AFTER = [10, 40, 90, 180]
const recipient = {
  currency: 'USD',
  name: 'Grace Hopper',
  country: 'US',
  account: { routingNumber: '021000021', accountNumber: '123456789' },
}
const payout = z.looseObject({ id: z.string(), status: z.string(), amount: z.string(), asset: z.string() })

describe.skipIf(testServerUrl === undefined)('payouts of a gateway that is killed', () => {
  let gateway: Gateway
  let owner: Person
  let recipientId = ''
  let env: Record<string, string> = {}
  let database: Database
  let drop = async () => {}

  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = async () => {
      await database?.close()
      await created.drop()
    }
    database = await openPostgres({ url: created.url })
    env = { DATABASE_URL: created.url, CHAIN: 'simulated', RATE_MUTATIONS: '100000/60', LOG_LEVEL: 'error' }
    gateway = await startGateway(env)
    env = { ...env, PORT: new URL(gateway.origin).port }
    owner = await newGuest(gateway.origin)
    recipientId = String((await owner.send('POST', '/api/banking/recipients', recipient)).body.id)
  }, 60_000)
  afterAll(async () => {
    await gateway?.stop()
    await drop()
  }, 60_000)

  const restart = async () => {
    const exited = once(gateway.process, 'exit')
    gateway.process.kill('SIGKILL')
    await exited
    gateway = await startGateway(env)
  }
  const send = (key: string) =>
    owner
      .send('POST', '/api/banking/payouts', { recipientId, amount: '5' }, { 'idempotency-key': key })
      .catch(() => null)
  const paidUnits = () => balanceOfSystem(database, external('bank'), 'USD')
  /** Repeats a call until the gateway says what became of it. */
  const awaitOutcome = async (key: string) => {
    for (;;) {
      const answer = await send(key)
      const isOpen = answer === null || answer.status >= 500 || answer.body.code === 'idempotency_in_progress'
      if (!isOpen) return answer
      await sleep(200)
    }
  }

  it.each(KILLED_AFTER)(
    'are sent once each, %i ms after the first',
    async (ms) => {
      const keys = Array.from({ length: PAYOUTS }, (_, index) => `killed-${ms}-${index}`)
      const paidBefore = await paidUnits()
      const sent = keys.map((key) => send(key))
      await sleep(ms)
      await restart()
      await Promise.all(sent)
      const answers = await Promise.all(keys.map(awaitOutcome))
      const payouts = answers.filter(({ status }) => status === 200).map(({ body }) => payout.parse(body))
      // A call that ended before its payout was written says that nothing was sent.
      for (const { body } of answers.filter(({ status }) => status !== 200))
        expect(body).toMatchObject({ code: 'payout_rejected' })
      expect(new Set(payouts.map(({ id }) => id)).size).toBe(payouts.length)
      const statuses = async () =>
        Promise.all(
          payouts.map(async ({ id }) => (await owner.send('GET', `/api/banking/payouts/${id}`)).body.status),
        )
      await expect.poll(statuses, { timeout: 30_000, interval: 250 }).toEqual(payouts.map(() => 'paid'))
      expect((await paidUnits()) - paidBefore).toBe(BigInt(payouts.length) * 500n)
      expect(await trialBalance(database)).toMatchObject({ balanced: true, drifts: [] })
      const held = database.kysely
        .selectFrom('reservation')
        .select('decision_id')
        .where('status', '=', 'reserved')
      expect(await held.execute()).toEqual([])
    },
    90_000,
  )
})
