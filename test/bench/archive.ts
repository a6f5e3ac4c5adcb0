/**
 * Decisions that grow: a transfer on a database with millions of decisions in thirteen months against one on an empty database, and the
 * waits of transfers while the oldest month is archived. `npx tsx test/bench/archive.ts [--decisions 10000000] [--archived 200000]
 * [--on URL]`, on
 * TEST_DATABASE_URL or the local server; ten million take about twenty minutes and 15 GB, which it gives back.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { archiveMonth } from '../../src/records/decisions/archive-month.ts'
import { createSealRound } from '../../src/records/decisions/seal-decisions.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { insertDecisions, never, sealingDependencies, settings } from '../records/decisions/scene.ts'
import { openTransfers } from './transfer.ts'

const MONTHS = 13
const ROUNDS = 5
const CALLERS = 8
const RUN = 600

const {
  decisions: asked = '10000000',
  archived = '200000',
  on,
} = parseArgs({
  options: { decisions: { type: 'string' }, archived: { type: 'string' }, on: { type: 'string' } },
}).values
const print = (text: string) => process.stdout.write(`${text}\n`)
const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0
const serverUrl = testServerUrl ?? 'postgres://postgres@127.0.0.1:5432/postgres'

/** The first of a month, so many months ago. */
function monthAgo(count: number): Date {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - count, 1))
}

/** The oldest month with true seals, each later one with rows of the same size. */
async function fill(url: string): Promise<void> {
  const database = await openPostgres({ url, isPatient: true })
  await database.migrate()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (let ago = MONTHS; ago >= 0; ago -= 1)
    for (const parent of ['decision', 'decision_seal'])
      await client.query('select partition_make($1, $2, $3)', [parent, 'dec', monthAgo(ago)])
  // Sealed as they are made: late ones raise alarms.
  let now = monthAgo(MONTHS)
  const round = createSealRound(sealingDependencies(database, () => now))
  for (let made = 0; made < Number(archived); made += 5_000) {
    now = new Date(monthAgo(MONTHS).getTime() + 60_000 + made)
    await insertDecisions(database, 5_000, {}, now)
    await round(never)
  }
  print(`${archived} decisions of ${monthAgo(MONTHS).toISOString().slice(0, 7)} are sealed`)
  await client.query('alter table decision_seal disable trigger user')
  const count = Math.ceil(Number(asked) / (MONTHS - 1))
  for (let ago = MONTHS - 1; ago > 0; ago -= 1) {
    const from = monthAgo(ago)
    await client.query(
      `insert into decision (id, at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict, violations, mac, written_by)
        select first_id_at('dec', $1::timestamptz + d * interval '1 day') || lpad(n::text, 16, '0'), $1::timestamptz + d * interval '1 day',
          'acct_01h455vb4pex5vsknk0' || lpad((n % 1000)::text, 5, '0'), 'key_01h455vb4pex5vsknk0' || lpad((n % 1000)::text, 5, '0'), 1,
          repeat('a', 64), 'wallets.transfer', jsonb_build_object('category', 'transfer', 'amount', '0.001', 'asset', 'USDC', 'usdMicros',
            '1000', 'chain', 'base-sepolia', 'counterparty', '0x000000000000000000000000000000000000dead', 'note', repeat('x', 200)),
          'allow', '[]', repeat('b', 64), '3'
        from generate_series(0, 27) d cross join generate_series(1, $2::int / 28) n`,
      [from, count],
    )
    await client.query(
      `insert into decision_seal (sequence, decision_id, previous, hash, receipt, sealed_at, issuer)
        select h.sequence + row_number() over (order by d.id), d.id, repeat('c', 64), repeat('c', 64), repeat('r', 180), $1, 'https://bursar.example'
        from decision d cross join decision_head h where d.id >= first_id_at('dec', $1) and d.id < first_id_at('dec', $2)`,
      [from, monthAgo(ago - 1)],
    )
    await client.query(
      `update decision_head set hash = repeat('c', 64), sequence = (select max(s.sequence) from decision_seal s where s.decision_id >= first_id_at('dec', $1))`,
      [from],
    )
    print(`${from.toISOString().slice(0, 7)} is filled`)
  }
  await client.query('alter table decision_seal enable trigger user')
  await client.query('vacuum analyze decision, decision_seal')
  const { rows } = await client.query(
    'select (select count(*) from decision) as count, pg_size_pretty(pg_database_size(current_database())) as size',
  )
  print(`${rows[0].count} decisions, ${rows[0].size}`)
  await client.end()
  await database.close()
}

/** Waits until a gateway has read all decisions once, which is how it begins. */
async function waitForSeals(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const begun = performance.now()
  for (;;) {
    const { rows } = await client.query(
      "select exists (select from decision d where d.id >= first_id_at('dec', now() - interval '1 hour') and not decision_is_sealed(d.id)) as waits",
    )
    if (!rows[0].waits) break
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
  await client.end()
  return (performance.now() - begun) / 1000
}

/** The longest wait for a lock on a table that a statement shows, in milliseconds, read every two. */
async function watchWaits(url: string): Promise<() => Promise<{ longest: number; reads: number }>> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  let isOver = false
  let longest = 0
  let reads = 0
  const watching = (async () => {
    while (!isOver) {
      // The archive itself waits too, and is not counted.
      const { rows } = await client.query(
        `select coalesce(max(extract(epoch from clock_timestamp() - l.waitstart)), 0) * 1000 as ms from pg_locks l
          where not l.granted and l.locktype = 'relation' and l.mode <> 'AccessExclusiveLock'`,
      )
      longest = Math.max(longest, Number(rows[0].ms))
      reads += 1
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  })()
  return async () => {
    isOver = true
    await watching
    await client.end()
    return { longest, reads }
  }
}

const empty = await createTestDatabase(serverUrl)
// A database that an earlier run has filled is measured again, and stays.
const full = on === undefined ? await createTestDatabase(serverUrl) : { url: on, drop: async () => {} }
const directory = mkdtempSync(join(tmpdir(), 'bursar-bench-archive-'))
try {
  if (on === undefined) await fill(full.url)
  const [small, large] = [
    await openTransfers({ DATABASE_URL: empty.url }, CALLERS),
    await openTransfers({ DATABASE_URL: full.url }, CALLERS),
  ]
  try {
    await small.run(RUN)
    await large.run(RUN)
    print(`after its start the gateway read all decisions for ${(await waitForSeals(full.url)).toFixed(0)} s`)
    const lines = []
    for (let round = 0; round < ROUNDS; round += 1)
      lines.push({ small: await small.run(RUN), large: await large.run(RUN) })
    for (const name of ['p50', 'databaseMs', 'gatewayMs'] as const) {
      const ratio = median(lines.map((line) => line.large[name] / line.small[name]))
      const [one, other] = [lines.map((line) => line.small[name]), lines.map((line) => line.large[name])]
      print(
        `${name}: ${median(one).toFixed(2)} ms empty, ${median(other).toFixed(2)} ms full, median of ratios ${ratio.toFixed(3)}`,
      )
    }
    const month = monthAgo(MONTHS).toISOString().slice(0, 7)
    const database = await openPostgres({ url: full.url, isPatient: true })
    let isArchived = false
    const load = (async () => {
      const spans = []
      while (!isArchived) spans.push(await large.run(200))
      return spans
    })()
    const stop = await watchWaits(full.url)
    const begun = performance.now()
    await archiveMonth({
      ...{ database, issuer: settings.origin, key: settings.receiptKey, dataKey: settings.dataKey, month },
      ...{ out: join(directory, month), keep: MONTHS, now: new Date(), progress: () => {} },
      step: (step) => print(`${step} after ${((performance.now() - begun) / 1000).toFixed(1)} s`),
    })
    const { longest, reads } = await stop()
    isArchived = true
    const during = await load
    await database.close()
    print(`longest wait for a lock on a table: ${longest.toFixed(1)} ms in ${reads} reads`)
    print(
      `transfers meanwhile: p50 ${median(during.map(({ p50 }) => p50))} ms, worst p99 ${Math.max(...during.map(({ p99 }) => p99))} ms`,
    )
  } finally {
    await small.stop()
    await large.stop()
  }
} finally {
  rmSync(directory, { recursive: true, force: true })
  await empty.drop()
  await full.drop()
}
