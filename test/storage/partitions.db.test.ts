/** Tables by month: what is made ahead, where rows land, and what may never happen to them. */
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/core/base/clock.ts'
import { firstIdAt, newId } from '../../src/core/base/ids.ts'
import { silentLog } from '../../src/core/base/log.ts'
import type { Connection } from '../../src/storage/database.ts'
import { migrations } from '../../src/storage/migrations.ts'
import { keepPartitions } from '../../src/storage/partitions.ts'
import { openPglite } from '../../src/storage/pglite.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createEmptyDatabase, onBothEngines, testServerUrl } from '../engines.ts'

const ARCHIVE = '0157-archive'

async function run<Row>({ kysely }: Connection, text: string): Promise<readonly Row[]> {
  return (await sql.raw<Row>(text).execute(kysely)).rows
}

function insertDecision(at: Date, id = newId('dec', at)) {
  return `insert into decision (id, at, account_id, operation, facts, verdict, violations)
    values ('${id}', '${at.toISOString()}', 'acct_1', 'wallets.transfer', '{}', 'allow', '[]')`
}

async function listPlaces(database: Connection): Promise<Readonly<Record<string, number>>> {
  const rows = await run<{ place: string; count: number }>(
    database,
    'select tableoid::regclass::text as place, count(*)::int as count from decision group by 1 order by 1',
  )
  return Object.fromEntries(rows.map(({ place, count }) => [place, count]))
}

const hash = (digit: string) => digit.repeat(64)

function insertSeal(sequence: number, previous: string, own: string, table = 'decision_seal') {
  return `insert into ${table} (sequence, decision_id, previous, hash, receipt, sealed_at)
    values (${sequence}, '${newId('dec', new Date('2031-03-05T00:00:00Z'))}', '${previous}', '${own}', 'r', now())`
}

onBothEngines('partitions by month', (database) => {
  it('has the bounds of ids', async () => {
    const at = new Date('2031-01-31T23:59:59.999Z')
    const [row] = await run<{ first: string }>(
      database(),
      `select first_id_at('dec', '${at.toISOString()}') as first`,
    )
    expect(row?.first).toBe(firstIdAt('dec', at))
  })

  it('makes the month and the next two, and moves what the default partition caught', async () => {
    const edges = ['2031-01-31T23:59:59.999Z', '2031-02-01T00:00:00.000Z', '2031-03-31T23:59:59.999Z']
    for (const at of edges) await run(database(), insertDecision(new Date(at)))
    expect(await listPlaces(database())).toEqual({ decision_default: 3 })
    await keepPartitions(database(), new Date('2031-01-15T00:00:00Z'))
    await keepPartitions(database(), new Date('2031-01-15T00:00:00Z'))
    expect(await listPlaces(database())).toEqual({
      decision_2031_01: 1,
      decision_2031_02: 1,
      decision_2031_03: 1,
    })
    await run(database(), insertDecision(new Date('2031-02-28T12:00:00Z')))
    await run(database(), insertDecision(new Date('2031-04-01T00:00:00Z')))
    expect(await listPlaces(database())).toMatchObject({ decision_2031_02: 2, decision_default: 1 })
  })

  it.each([
    'delete from decision',
    'delete from decision_2031_01',
    'delete from decision_default',
    'truncate decision',
    'truncate decision_2031_01',
    'truncate decision_default',
    `update decision_2031_01 set operation = 'other'`,
  ])('refuses: %s', async (text) => {
    await expect(run(database(), text)).rejects.toThrow(/append-only/)
  })

  it('adds seals only where the chain ends, whatever the partition', async () => {
    await expect(run(database(), insertSeal(2, hash('0'), hash('b')))).rejects.toThrow(/do not continue/)
    await run(database(), insertSeal(1, hash('0'), hash('a')))
    await expect(run(database(), insertSeal(1, hash('0'), hash('b')))).rejects.toThrow(/do not continue/)
    await expect(run(database(), insertSeal(2, hash('0'), hash('b')))).rejects.toThrow(/do not continue/)
    const direct = insertSeal(1, hash('0'), hash('c'), 'decision_seal_2031_03')
    await expect(run(database(), direct)).rejects.toThrow(/do not continue/)
    await run(database(), insertSeal(2, hash('a'), hash('b')))
    expect(await run(database(), 'select sequence, hash from decision_head')).toEqual([
      { sequence: 2n, hash: hash('b') },
    ])
    await expect(run(database(), 'delete from decision_seal')).rejects.toThrow(/append-only/)
    await expect(run(database(), 'truncate decision_seal_2031_03')).rejects.toThrow(/append-only/)
    await expect(run(database(), 'delete from decision_head')).rejects.toThrow(/append-only/)
  })
})

describe.skipIf(testServerUrl === undefined)('partitions beside transactions', () => {
  it('are made while others write, and are given up rather than waited for', async () => {
    const { url, drop } = await createEmptyDatabase(testServerUrl ?? '')
    const database = await openPostgres({ url })
    try {
      await database.migrate()
      await database.transaction(async (writer) => {
        await run(writer, 'lock table decision_default in access share mode')
        const begun = performance.now()
        const made = run(database, `select partition_make('decision', 'dec', '2031-01-15T00:00:00Z')::text`)
        await expect(made).rejects.toMatchObject({ cause: { code: '55P03' } })
        expect(performance.now() - begun).toBeLessThan(2_000)
      })
      const now = new Date()
      await keepPartitions(database, now)
      await database.transaction(async (writer) => {
        await run(writer, insertDecision(now))
        await run(database, `select partition_make('decision', 'dec', '2031-02-15T00:00:00Z')::text`)
      })
      expect(await run(database, `select to_regclass('decision_2031_02')::text as made`)).toEqual([
        { made: 'decision_2031_02' },
      ])
    } finally {
      await database.close()
      await drop()
    }
  })
})

describe('the migration to partitions', () => {
  const names = Object.keys(migrations)
  const before = names.slice(0, names.indexOf(ARCHIVE))
  const dates = ['2024-12-31T23:59:59.999Z', '2025-01-01T00:00:00.000Z', '2025-06-15T00:00:00.000Z']

  async function check(database: Connection): Promise<void> {
    for (const name of before) await run(database, migrations[name] ?? '')
    for (const [place, text] of dates.entries()) {
      const id = newId('dec', new Date(text))
      await run(database, insertDecision(new Date(text), id))
      await run(
        database,
        `insert into decision_seal (sequence, decision_id, previous, hash, receipt, sealed_at)
          values (${place + 1}, '${id}', '${hash(`${place}`)}', '${hash(`${place + 1}`)}', 'r', now())`,
      )
    }
    await run(database, insertDecision(new Date(), 'dec_other'))
    const [old] = await run<{ rows: string }>(
      database,
      'select json_agg(d order by id)::text as rows from decision d',
    )
    await run(database, migrations[ARCHIVE] ?? '')
    const [now] = await run<{ rows: string }>(
      database,
      'select json_agg(d order by id)::text as rows from decision d',
    )
    expect(now).toEqual(old)
    expect(await listPlaces(database)).toEqual({
      decision_2024_12: 1,
      decision_2025_01: 1,
      decision_2025_06: 1,
      decision_default: 1,
    })
    expect(await run(database, 'select sequence, hash from decision_head')).toEqual([
      { sequence: 3n, hash: hash('3') },
    ])
  }

  it('keeps every decision on PGlite', async () => {
    const database = await openPglite({ directory: 'memory', now: systemClock, log: silentLog })
    // A new one is a copy of a migrated cluster.
    await run(database, 'drop schema public cascade')
    await run(database, 'create schema public')
    await check(database)
    await database.close()
  })

  it.skipIf(testServerUrl === undefined)('keeps every decision on PostgreSQL', async () => {
    const { url, drop } = await createEmptyDatabase(testServerUrl ?? '')
    const database = await openPostgres({ url })
    await check(database)
    await database.close()
    await drop()
  })
})
