/**
 * Cost of a spend. (a) Many keys: our client through the queue against pgbench calling the same function with
 * parameters of the same distribution, with as many callers as connections and with as many as a gateway has. (b) One
 * hot key: the queue, which batches concurrent spends, against pgbench calling one by one, alternating. Times depend on
 * the machine; the ratios vary little. `npx tsx test/bench/spend.ts`, about 50 seconds, on TEST_DATABASE_URL or the
 * local server.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { createReserveQueue } from '../../src/books/spending/reserve-queue.ts'
import type { SpendRequest } from '../../src/books/spending/spend-request.ts'
import { newId, randomToken } from '../../src/core/base/ids.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'

const KEYS = 10_000
/** Odd: the round with the median ratio counts. */
const ROUNDS = 3
const PATH_ROUNDS = 5
const at = new Date('2026-11-20T12:00:00.000Z')

/** Distribution of a measurement's spends. @property lanes callers that wait for their answer before the next. */
interface Load {
  readonly name: string
  readonly keys: number
  readonly connections: number
  readonly lanes: number
  readonly seconds: number
}

const loads: readonly Load[] = [
  { name: 'many keys, 8 connections, 8 callers', keys: KEYS, connections: 8, lanes: 8, seconds: 2 },
  { name: 'many keys, 8 connections, 64 callers', keys: KEYS, connections: 8, lanes: 64, seconds: 2 },
  { name: 'many keys, 1 connection, 1 caller', keys: KEYS, connections: 1, lanes: 1, seconds: 1 },
  { name: 'one hot key, 8 connections, 64 callers', keys: 1, connections: 8, lanes: 64, seconds: 2 },
]

/** One measurement. @property ours and @property floor in spends a second; @property ratio ours to the floor. */
export interface SpendBenchLine {
  readonly name: string
  readonly ours: number
  readonly floor: number
  readonly ratio: number
}

/** Measures every load, alternating with pgbench so that a busy machine slows both. */
export async function benchSpend(): Promise<{ lines: readonly SpendBenchLine[] }> {
  const { url, drop } = await createTestDatabase(
    testServerUrl ?? 'postgres://postgres@127.0.0.1:5432/postgres',
  )
  try {
    const lines = []
    for (const load of loads) {
      const database = await openPostgres({ url, poolSize: load.connections })
      try {
        if (lines.length === 0) await prepare(database)
        await spendFor(database, { ...load, seconds: 0.5 })
        const rounds = []
        for (let round = 0; round < ROUNDS; round += 1)
          rounds.push({ ours: await spendFor(database, load), floor: await pgbench(url, load) })
        rounds.sort((left, right) => left.ours / left.floor - right.ours / right.floor)
        const { ours, floor } = rounds[(ROUNDS - 1) / 2] ?? { ours: 0, floor: 1 }
        lines.push({ name: load.name, ours, floor, ratio: ours / floor })
      } finally {
        await database.close()
      }
    }
    return { lines }
  } finally {
    await drop()
  }
}

/** Below this many keys of one account the hot root is spent from. */
const CHILDREN = 64
const DEPTH = 4
/** The same keys four generations below their account's root. */
const DEEP = 1_000

/**
 * What a path costs: spends of keys four generations below a root to those of roots, and of 64 keys below one root to those of one
 * hot key; alternating, through the same queue. `npx tsx test/bench/spend.ts --paths` measures only these.
 */
export async function benchPaths(): Promise<{ lines: readonly SpendBenchLine[] }> {
  const { url, drop } = await createTestDatabase(
    testServerUrl ?? 'postgres://postgres@127.0.0.1:5432/postgres',
  )
  try {
    const preparing = await openPostgres({ url, poolSize: 1 })
    await prepare(preparing)
    await prepareBelow(preparing)
    await preparing.close()
    const many = { connections: 8, lanes: 64, seconds: 2 }
    const one = { connections: 1, lanes: 1, seconds: 2 }
    const pairs = [
      {
        name: 'four generations below a root, one caller',
        below: { ...one, name: '', keys: DEEP },
        flat: { ...one, name: '', keys: DEEP },
        build: (index: number) => buildDeep(index),
      },
      {
        name: 'four generations below a root, 64 callers of many accounts',
        below: { ...many, name: '', keys: DEEP },
        flat: { ...many, name: '', keys: DEEP },
        build: (index: number) => buildDeep(index),
      },
      {
        name: `${CHILDREN} keys below one hot root`,
        below: { ...many, name: '', keys: CHILDREN },
        flat: { ...many, name: '', keys: 1 },
        build: (index: number) => buildChild(index),
      },
    ]
    const lines: SpendBenchLine[] = []
    for (const { name, below, flat, build } of pairs) {
      const database = await openPostgres({ url, poolSize: below.connections })
      try {
        // Every session has made its plans, and the first writes of each page after a checkpoint are over.
        await spendFor(database, { ...below, seconds: 2 }, build)
        await spendFor(database, { ...flat, seconds: 2 })
        const rounds = []
        for (let round = 0; round < PATH_ROUNDS; round += 1)
          rounds.push({ ours: await spendFor(database, below, build), floor: await spendFor(database, flat) })
        rounds.sort((left, right) => left.ours / left.floor - right.ours / right.floor)
        const { ours, floor } = rounds[(PATH_ROUNDS - 1) / 2] ?? { ours: 0, floor: 1 }
        lines.push({ name, ours, floor, ratio: ours / floor })
      } finally {
        await database.close()
      }
    }
    return { lines }
  } finally {
    await drop()
  }
}

/** Chains below the roots of the first accounts, and many children of another root. */
async function prepareBelow(database: Database): Promise<void> {
  const insert = (name: string, text: string) => database.call({ name, text }, [])
  for (let depth = 1; depth <= DEPTH; depth += 1)
    await insert(
      `bench_depth_${depth}`,
      `insert into access_key (id, account_id, kind, name, scopes, created_at, path)
      select 'key_' || i || '_${depth}', 'acct_' || i, 'agent', 'bench', '{}', now(),
        array['key_' || i] || array(select 'key_' || i || '_' || d from generate_series(1, ${depth - 1}) d)
      from generate_series(1, ${DEEP}) i`,
    )
  await insert(
    'bench_children',
    `insert into access_key (id, account_id, kind, name, scopes, created_at, path)
    select 'key_child_' || i, 'acct_${KEYS}', 'agent', 'bench', '{}', now(), array['key_${KEYS}'] from generate_series(1, ${CHILDREN}) i`,
  )
  await insert(
    'bench_below_usage',
    `insert into budget_usage (key_id, day) select k.id, '2026-11-20' from access_key k where k.path <> '{}'`,
  )
  await insert('bench_below_analyze', 'analyze')
}

const day = {
  rule: 'daily_budget',
  period: 'day',
  maxMicros: 1_000_000_000_000n,
  maxCount: null,
} as const

function below(spend: SpendRequest, keyId: string, path: readonly string[]): SpendRequest {
  if (spend.key === null) throw new Error('a key spends')
  const above = path.map((id) => ({ id, policyVersion: 1, budgets: [day], cooldownSeconds: null }))
  return {
    ...spend,
    key: { ...spend.key, id: keyId, path: above },
    idempotency: { principal: keyId, key: randomToken(16), fingerprint: 'fingerprint' },
  }
}

function buildDeep(index: number): SpendRequest {
  const path = Array.from({ length: DEPTH }, (_, depth) =>
    depth === 0 ? `key_${index}` : `key_${index}_${depth}`,
  )
  return below(buildSpend(index), `key_${index}_${DEPTH}`, path)
}

function buildChild(index: number): SpendRequest {
  return below(buildSpend(KEYS), `key_child_${index}`, [`key_${KEYS}`])
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

/** The spend that every load repeats. */
function buildSpend(index: number): SpendRequest {
  const keyId = `key_${index}`
  return {
    decisionId: newId('dec', at),
    accountId: `acct_${index}`,
    key: {
      id: keyId,
      policyVersion: 1,
      limits: { dailyMaxMicros: 1_000_000_000_000n, dailyMaxCount: 1_000_000 },
    },
    policyHash: 'hash',
    operation: 'wallets.transfer',
    facts: { category: 'transfer', destination: '0xabc' },
    violations: [],
    money: { asset: 'USDC', units: 1_000_000n },
    usdMicros: 1_000_000n,
    counterparty: '0xabc',
    cooldownSeconds: null,
    needsApproval: false,
    isApproved: false,
    place: 'bench',
    idempotency: { principal: keyId, key: randomToken(16), fingerprint: 'fingerprint' },
    at,
  }
}

async function spendFor(
  database: Database,
  { keys, lanes, seconds }: Load,
  build: (index: number) => SpendRequest = buildSpend,
): Promise<number> {
  const reserve = createReserveQueue(database)
  const start = performance.now()
  const end = start + seconds * 1_000
  let spends = 0
  const lane = async (first: number): Promise<void> => {
    for (let turn = first; performance.now() < end; turn += 1) {
      // A stride that is coprime to the number of keys visits all of them, evenly and out of order.
      const { verdict } = await reserve(build(1 + ((turn * 7_919) % keys)))
      if (verdict !== 'allow') throw new Error(`the bench expected allow and got ${verdict}`)
      spends += 1
    }
  }
  await Promise.all(Array.from({ length: lanes }, (_, index) => lane(index * 1_000)))
  return (spends * 1_000) / (performance.now() - start)
}

/** The same call from pgbench. Its ids are as long as ours and as random. */
async function pgbench(url: string, { keys, connections, seconds }: Load): Promise<number> {
  // pgbench reads a colon and a letter as a variable, within quotes too.
  const script = `\\set index random(1, ${keys})
\\set high random(1, 9000000000000000000)
\\set low random(1, 9000000000000000000)
select * from operation_reserve(jsonb_build_array(jsonb_build_object('decision', 'dec_' || lpad(to_hex(:high::bigint) || to_hex(:low::bigint), 26, '0'),
  'account', 'acct_' || :index::text, 'key', 'key_' || :index::text, 'policy_version', 1, 'policy_hash', 'hash', 'operation', 'wallets.transfer',
  'facts', '{"category":"transfer","destination":"0xabc"}'::jsonb, 'violations', '[]'::jsonb, 'asset', 'USDC', 'units', 1000000,
  'usd_micros', 1000000, 'daily_max', 1000000000000, 'daily_count', 1000000, 'counterparty', '0xabc', 'needs_approval', false, 'is_approved', false,
  'source', 'acct_' || :index::text || U&'\\003abench\\003aavailable', 'held', 'acct_' || :index::text || U&'\\003abench\\003aheld',
  'principal', 'key_' || :index::text, 'idempotency_key', to_hex(:high::bigint) || to_hex(:low::bigint), 'fingerprint', 'fingerprint',
  'at', '20261120T120000Z')));
`
  const directory = await mkdtemp(join(tmpdir(), 'bursar-bench-'))
  try {
    const file = join(directory, 'spend.sql')
    await writeFile(file, script)
    const options = ['-n', '-M', 'prepared', '-T', String(seconds), '-f', file]
    const lanes = ['-c', String(connections), '-j', String(Math.min(connections, 2))]
    const { stdout } = await promisify(execFile)('pgbench', [...options, ...lanes, url])
    const rate = Number(/tps = ([\d.]+) \(without initial/.exec(stdout)?.[1])
    if (!(rate > 0)) throw new Error(`pgbench said no rate: ${stdout}`)
    return rate
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

export function spendBenchText({ name, ours, floor, ratio }: SpendBenchLine): string {
  return `${name}: ${ours.toFixed(0)} spends/s, to ${floor.toFixed(0)}, ratio ${ratio.toFixed(2)}`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const line of process.argv.includes('--paths')
    ? (await benchPaths()).lines
    : [...(await benchSpend()).lines, ...(await benchPaths()).lines])
    process.stdout.write(`${spendBenchText(line)}\n`)
