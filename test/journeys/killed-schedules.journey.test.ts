/** Two gateways on one database, killed again and again while the calendar is set ahead: each due time is paid once or not at all. */
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

/** Due times of all schedules. */
const DUE_TIMES = Number(process.env.DUE_TIMES ?? 300)
const SCHEDULES = 20
const HOUR = 3_600
/** For runs that hang: a due time takes a tenth of a second on two processors. */
const MAX_MS = 120_000 + DUE_TIMES * 500
const payee = `0x${'00'.repeat(18)}beef`

describe.skipIf(testServerUrl === undefined)('schedules on gateways that are killed', () => {
  const gateways: Gateway[] = []
  let env: Record<string, string> = {}
  let owners: Person[] = []
  let database: Database
  let drop = async () => {}

  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = async () => {
      await database?.close()
      await created.drop()
    }
    database = await openPostgres({ url: created.url })
    env = {
      DATABASE_URL: created.url,
      RATE_MUTATIONS: '100000/60',
      RATE_GUESTS: '1000/60',
      LOG_LEVEL: 'error',
    }
    const first = await startGateway(env)
    gateways.push(first)
    const { chain } = z
      .object({ chain: z.object({ rpcUrl: z.string() }) })
      .parse((await requestJson(first.origin, 'GET', '/sandbox/credentials')).body)
    // The first has the chain and stays; the two others are killed.
    env = { ...env, CHAIN_RPC_URL: chain.rpcUrl }
    gateways.push(await startGateway(env), await startGateway(env))
    owners = await Promise.all(Array.from({ length: SCHEDULES }, () => newGuest(first.origin)))
  }, 120_000)
  afterAll(async () => {
    for (const gateway of gateways.reverse()) await gateway?.stop()
    await drop()
  }, 60_000)

  const advance = async (seconds: number) => {
    const { body } = await requestJson(gateways[0]?.origin ?? '', 'POST', '/sandbox/clock', {
      body: { advance: seconds },
    })
    return z.string().parse(body.now)
  }
  const count = async (
    ...statuses: readonly ('running' | 'completed' | 'failed' | 'denied' | 'missed')[]
  ) => {
    const { runs } = await database.kysely
      .selectFrom('schedule_run')
      .select(({ fn }) => fn.countAll<string>().as('runs'))
      .where('status', 'in', statuses)
      .executeTakeFirstOrThrow()
    return Number(runs)
  }
  const restart = async (index: number) => {
    const gateway = gateways[index]
    if (gateway === undefined) throw new Error('there is no such gateway')
    const exited = once(gateway.process, 'exit')
    gateway.process.kill('SIGKILL')
    await exited
    gateways[index] = await startGateway({ ...env, PORT: new URL(gateway.origin).port })
  }

  it(`pay at most once for each of ${DUE_TIMES} due times, and lose none`, { timeout: MAX_MS }, async () => {
    const each = DUE_TIMES / SCHEDULES
    for (const owner of owners)
      expect(
        await owner.send('POST', '/api/schedules', {
          operation: 'wallets.transfer',
          input: { destination: payee, amount: '1', token: 'USDC' },
          every: { unit: 'day' },
          graceHours: 720,
          count: each,
        }),
      ).toMatchObject({ status: 200 })
    let isOver = false
    let kills = 0
    const killing = (async () => {
      for (; !isOver; kills += 1) {
        await pause(700)
        await restart(1 + (kills % 2))
      }
    })()
    // Several gateways find the same times due, at the same second and late.
    for (let day = 0; day < each; day += 1) {
      await advance(24 * HOUR)
      // More than ten payments within ten minutes of the calendar would have to be reviewed.
      while ((await count('completed', 'failed', 'denied', 'missed')) < (day - 4) * SCHEDULES)
        await pause(100)
      await pause(100)
    }
    // A run of a killed gateway is another’s after ten seconds.
    while ((await count('completed', 'failed', 'denied', 'missed')) < DUE_TIMES) await pause(200)
    isOver = true
    await killing
    const others = database.kysely.selectFrom('schedule_run').selectAll().where('status', '<>', 'completed')
    expect(await others.execute()).toEqual([])
    const transfers = await database.kysely
      .selectFrom('transfer')
      .innerJoin('decision', 'decision.id', 'transfer.decision_id')
      .select('decision.facts')
      .where('decision.operation', '=', 'wallets.transfer')
      .execute()
    const names = transfers.map(({ facts }) => z.looseObject({ schedule: z.string() }).parse(facts).schedule)
    expect(names).toHaveLength(DUE_TIMES)
    expect(new Set(names).size).toBe(DUE_TIMES)
    process.stderr.write(
      `${DUE_TIMES} due times, ${kills} kills: ${new Set(names).size} ran once, ${await count('missed')} missed, ` +
        `${names.length - new Set(names).size} twice.\n`,
    )
    expect(await trialBalance(database)).toMatchObject({ balanced: true, drifts: [] })
    for (const owner of owners) {
      const { body } = await owner.send('GET', '/api/schedules')
      expect(body.schedules).toMatchObject([{ status: 'ended', left: 0 }])
    }
  })
})
