/**
 * What the way through `pg` costs a spend: spends a second of `reserveSpend` against pgbench calling the same function with
 * parameters of the same distribution, in turns. Times depend on the machine; the ratio does not
 * much. `npx tsx test/bench/spend.ts`, about 25 seconds, on TEST_DATABASE_URL or the local server.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { newId, randomToken } from '../../src/ids.ts'
import { reserveSpend } from '../../src/spending/reserve.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'

const KEYS = 10_000
/** Odd: the round with the median ratio counts. */
const ROUNDS = 3
const at = new Date('2026-11-20T12:00:00.000Z')

/** One measurement. @property ours and @property floor in spends a second; @property ratio ours to the floor. */
export interface SpendBenchLine {
  readonly connections: number
  readonly ours: number
  readonly floor: number
  readonly ratio: number
}

/** Measures with 8 connections and with 1, in turns so that a busy machine slows both. */
export async function benchSpend(): Promise<{ lines: readonly SpendBenchLine[] }> {
  const { url, drop } = await createTestDatabase(
    testServerUrl ?? 'postgres://postgres@127.0.0.1:5432/postgres',
  )
  try {
    const lines = []
    for (const [connections, seconds] of [
      [8, 2],
      [1, 1],
    ] as const) {
      const database = await openPostgres({ url, poolSize: connections })
      try {
        if (lines.length === 0) await prepare(database)
        await spendFor(database, connections, 0.5)
        const rounds = []
        for (let round = 0; round < ROUNDS; round += 1)
          rounds.push({
            ours: await spendFor(database, connections, seconds),
            floor: await pgbench(url, connections, seconds),
          })
        rounds.sort((left, right) => left.ours / left.floor - right.ours / right.floor)
        const { ours, floor } = rounds[(ROUNDS - 1) / 2] ?? { ours: 0, floor: 1 }
        lines.push({ connections, ours, floor, ratio: ours / floor })
      } finally {
        await database.close()
      }
    }
    return { lines }
  } finally {
    await drop()
  }
}

/** Ten thousand owners, each with a key and enough money. */
async function prepare(database: Database): Promise<void> {
  await database.migrate()
  const run = (name: string, text: string) => database.call({ name, text }, [])
  await run(
    'bench_accounts',
    `insert into account (id, display_name, created_at)
    select 'acct_' || i, 'bench', now() from generate_series(1, ${KEYS}) i`,
  )
  await run(
    'bench_keys',
    `insert into access_key (id, account_id, kind, name, scopes, created_at)
    select 'key_' || i, 'acct_' || i, 'agent', 'bench', '{}', now() from generate_series(1, ${KEYS}) i`,
  )
  await run(
    'bench_money',
    `select ledger_post('bench', 'deposit', 'bench', now(), array_agg('external:bench'::text),
    array_agg('acct_' || i || U&'\\003abench\\003aavailable'), array_agg('USDC'::text), array_agg(1000000000000)) from generate_series(1, ${KEYS}) i`,
  )
  await run(
    'bench_usage',
    `insert into budget_usage (key_id, day) select 'key_' || i, '2026-11-20' from generate_series(1, ${KEYS}) i`,
  )
  await run('bench_analyze', 'analyze')
}

async function spendFor(database: Database, connections: number, seconds: number): Promise<number> {
  const start = performance.now()
  const end = start + seconds * 1_000
  let spends = 0
  const lane = async (first: number): Promise<void> => {
    for (let turn = first; performance.now() < end; turn += 1) {
      // A stride that is prime to the number of keys goes through all of them, evenly and out of order.
      const index = 1 + ((turn * 7_919) % KEYS)
      const keyId = `key_${index}`
      const { verdict } = await reserveSpend(database, {
        decisionId: newId('dec', at),
        accountId: `acct_${index}`,
        key: {
          id: keyId,
          policyVersion: 1,
          limits: { dailyMaxMicros: 1_000_000_000_000n, dailyMaxCount: 1_000_000, ownerDailyMaxMicros: null },
        },
        policyHash: 'hash',
        operation: 'wallets.transfer',
        facts: { category: 'transfer', destination: '0xabc' },
        violations: [],
        money: { asset: 'USDC', units: 1_000_000n },
        usdMicros: 1_000_000n,
        place: 'bench',
        idempotency: { principal: keyId, key: randomToken(16), fingerprint: 'fingerprint' },
        at,
      })
      if (verdict !== 'allow') throw new Error(`the bench expected allow and got ${verdict}`)
      spends += 1
    }
  }
  await Promise.all(Array.from({ length: connections }, (_, index) => lane(index * 1_000)))
  return (spends * 1_000) / (performance.now() - start)
}

/** The same call from pgbench. Its ids are as long as ours and as random. */
async function pgbench(url: string, connections: number, seconds: number): Promise<number> {
  // pgbench takes a colon and a letter for a variable, within quotes too.
  const script = `\\set index random(1, ${KEYS})
\\set high random(1, 9000000000000000000)
\\set low random(1, 9000000000000000000)
select * from spend_reserve('dec_' || lpad(to_hex(:high::bigint) || to_hex(:low::bigint), 26, '0'), 'acct_' || :index::text, 'key_' || :index::text,
  1, 'hash', 'wallets.transfer', '{"category":"transfer","destination":"0xabc"}', '[]', 'USDC', 1000000, 1000000,
  1000000000000, 1000000, null, 'acct_' || :index::text || U&'\\003abench\\003aavailable', 'acct_' || :index::text || U&'\\003abench\\003aheld',
  'key_' || :index::text, to_hex(:high::bigint) || to_hex(:low::bigint), 'fingerprint', '20261120T120000Z');
`
  const directory = await mkdtemp(join(tmpdir(), 'bursar-bench-'))
  try {
    const file = join(directory, 'spend.sql')
    await writeFile(file, script)
    const { stdout } = await promisify(execFile)('pgbench', [
      '-n',
      '-M',
      'prepared',
      '-c',
      String(connections),
      '-j',
      String(Math.min(connections, 2)),
      '-T',
      String(seconds),
      '-f',
      file,
      url,
    ])
    const rate = Number(/tps = ([\d.]+) \(without initial/.exec(stdout)?.[1])
    if (!(rate > 0)) throw new Error(`pgbench said no rate: ${stdout}`)
    return rate
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { lines } = await benchSpend()
  for (const { connections, ours, floor, ratio } of lines)
    process.stdout.write(
      `spend_reserve, ${connections} connections: ${ours.toFixed(0)} spends/s, pgbench ${floor.toFixed(0)}, ratio ${ratio.toFixed(2)}\n`,
    )
}
