/**
 * Cost of history and of other accounts: the same transfer through the whole gateway (PostgreSQL, simulated chain) with
 * ever more past transfers and ever more keys, as a ratio to the first measurement of the same run; and memory after
 * 100,000 requests. `npx tsx test/bench/scaling.ts`, about five minutes; TRANSFERS and KEYS choose other steps.
 */
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import autocannon from 'autocannon'
import pg from 'pg'
import { z } from 'zod'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { requestJson } from '../journeys/people.ts'

const TRANSFERS = numbers(process.env.TRANSFERS) ?? [1_000, 100_000, 1_000_000]
const KEYS = numbers(process.env.KEYS) ?? [10, 1_000, 100_000]
const MEMORY_REQUESTS = 100_000
/** Sent one after another: this measures the cost of one, not concurrency. */
const SAMPLE = 300

/** One step. @property ratio its median to the first step's. */
export interface ScalingLine {
  readonly name: string
  readonly p50: number
  readonly p99: number
  readonly ratio: number
}

export interface MemoryLine {
  readonly before: number
  readonly after: number
  readonly requests: number
}

export async function benchScaling(
  serverUrl: string,
  progress: (text: string) => void,
): Promise<{ transfers: readonly ScalingLine[]; keys: readonly ScalingLine[]; memory: MemoryLine }> {
  const { url, drop } = await createTestDatabase(serverUrl)
  const client = new pg.Client({ connectionString: url })
  let gateway: Gateway | undefined
  try {
    gateway = await startGateway({ DATABASE_URL: url, CHAIN: 'simulated', RATE_MUTATIONS: '1000000/60' })
    await client.connect()
    const key = await newKey(gateway.origin)
    const send = sender(gateway.origin, key)
    for (let count = 0; count < 100; count += 1) await send()
    const keys = await steps(KEYS, 'keys', { send, progress, fill: (count) => fillKeys(client, count) })
    const transfers = await steps(TRANSFERS, 'past transfers', {
      send,
      progress,
      fill: (count) => fillTransfers(client, count),
    })
    progress(`${MEMORY_REQUESTS} requests`)
    return { keys, transfers, memory: await measureMemory(gateway, key) }
  } finally {
    await client.end()
    await gateway?.stop()
    await drop()
  }
}

async function steps(
  counts: readonly number[],
  of: string,
  parts: {
    fill: (count: number) => Promise<void>
    send: () => Promise<void>
    progress: (text: string) => void
  },
): Promise<readonly ScalingLine[]> {
  const lines: ScalingLine[] = []
  for (const count of counts) {
    parts.progress(`${count} ${of}`)
    await parts.fill(count)
    for (let warm = 0; warm < 50; warm += 1) await parts.send()
    const taken: number[] = []
    for (let sample = 0; sample < SAMPLE; sample += 1) {
      const start = performance.now()
      await parts.send()
      taken.push(performance.now() - start)
    }
    taken.sort((left, right) => left - right)
    const at = (share: number) => taken[Math.floor(share * SAMPLE)] ?? 0
    const first = lines[0]?.p50 ?? at(0.5)
    lines.push({ name: `${count} ${of}`, p50: at(0.5), p99: at(0.99), ratio: at(0.5) / first })
  }
  return lines
}

async function newKey(origin: string): Promise<string> {
  const { body: guest } = await requestJson(origin, 'POST', '/api/auth/guest', { body: {} })
  const { body } = await requestJson(origin, 'POST', '/api/developer/keys', {
    body: {
      name: 'Bench',
      scopes: ['wallets:read', 'wallets:transfer'],
      policy: {
        perTransaction: { max: '1' },
        dailyBudget: { max: '1000000' },
        categories: { allow: ['transfer'] },
      },
    },
    headers: { authorization: `Bearer ${guest.sessionToken}` },
  })
  return z.string().parse(body.key)
}

function sender(origin: string, key: string): () => Promise<void> {
  return async () => {
    const { status, body } = await requestJson(origin, 'POST', '/api/wallets/transfer', {
      body: {
        destination: '0x000000000000000000000000000000000000dEaD',
        amount: '0.0001',
        signature: 'sandbox',
      },
      headers: { authorization: `Bearer ${key}` },
    })
    if (status !== 200) throw new Error(`a transfer failed: ${JSON.stringify(body)}`)
  }
}

/**
 * Copies the last transfer with all its rows, one for each past minute, for the same account and key. Without triggers: the
 * events of a million past transfers would be published while the next ones are measured.
 */
async function fillTransfers(client: pg.Client, count: number): Promise<void> {
  const { rows } = await client.query('select count(*)::int as count from transfer')
  const [{ count: present }] = z.tuple([z.object({ count: z.int() })]).parse(rows)
  const id = (prefix: string) => `'${prefix}_00' || lpad(i::text, 24, '0')`
  const before = (column: string) => `${column} - i * interval '1 minute'`
  const series = `generate_series(${present + 1}, ${count}) i`
  await client.query(`
    set session_replication_role = replica;
    create temporary table example on commit preserve rows as
      select t.id as transfer_id, t.decision_id from transfer t where state = 'confirmed' order by id desc limit 1;
    insert into decision (id, at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict, violations, available_units)
      select ${id('dec')}, ${before('at')}, account_id, key_id, policy_version, policy_hash, operation, facts, verdict, violations, available_units
      from decision d join example e on d.id = e.decision_id, ${series};
    insert into decision_seal (sequence, decision_id, previous, hash, receipt, issuer, sealed_at)
      select sequence + 1000000 + i, ${id('dec')}, previous, md5(i::text) || md5('seal' || i), receipt, issuer, ${before('sealed_at')}
      from (select * from decision_seal order by sequence desc limit 1) s, ${series};
    insert into reservation (decision_id, account_id, key_id, day, usd_micros, source, held, asset, units, status, reserved_at, resolved_at, taken)
      select ${id('dec')}, account_id, key_id, (${before('reserved_at')})::date, usd_micros, source, held, asset, units, status,
        ${before('reserved_at')}, ${before('resolved_at')}, taken
      from reservation r join example e on r.decision_id = e.decision_id, ${series};
    insert into transfer (id, account_id, decision_id, token, units, destination, chain, state, transaction_hash, created_at, updated_at, authorized, signer, valid_until)
      select ${id('tx')}, account_id, ${id('dec')}, token, units, destination, chain, state, transaction_hash,
        ${before('created_at')}, ${before('updated_at')}, authorized, signer, ${before('valid_until')}
      from transfer t join example e on t.id = e.transfer_id, ${series};
    insert into posting (transaction_id, ordinal, source, destination, asset, units, kind, reference, at)
      select ${id('lt')}, ordinal, source, destination, asset, units, kind, ${id('tx')}, ${before('at')}
      from (select * from posting order by at desc nulls last limit 1) p, ${series};
    drop table example;
    set session_replication_role = origin;`)
  await client.query('vacuum analyze')
  await client.query('checkpoint')
}

/** Other accounts, each with a key that was used today. */
async function fillKeys(client: pg.Client, count: number): Promise<void> {
  const id = (prefix: string) => `'${prefix}_00' || lpad(i::text, 24, '0')`
  await client.query(`
    insert into account (id, display_name, created_at)
      select ${id('acct')}, 'Somebody', now() from generate_series(1, ${count}) i on conflict do nothing;
    insert into access_key (id, account_id, kind, name, secret_hash, scopes, policy, policy_hash, created_at)
      select ${id('key')}, ${id('acct')}, kind, name, sha256(i::text::bytea), scopes, policy, policy_hash, now()
      from (select * from access_key order by id desc limit 1) k, generate_series(1, ${count}) i on conflict do nothing;
    insert into budget_usage (key_id, day, used_micros, count)
      select ${id('key')}, current_date, 1000, 1 from generate_series(1, ${count}) i on conflict do nothing;`)
  await client.query('analyze')
}

async function measureMemory(gateway: Gateway, key: string): Promise<MemoryLine> {
  const before = residentMb(gateway)
  await new Promise<void>((resolve, reject) => {
    autocannon(
      {
        url: `${gateway.origin}/api/wallets`,
        connections: 16,
        amount: MEMORY_REQUESTS,
        headers: { authorization: `Bearer ${key}` },
      },
      (error, { non2xx, errors }) =>
        error === null && non2xx + errors === 0
          ? resolve()
          : reject(error ?? new Error(`${non2xx + errors} of the requests failed`)),
    )
  })
  return { before, after: residentMb(gateway), requests: MEMORY_REQUESTS }
}

/** Memory of the process, in MB. */
function residentMb({ process: { pid } }: Gateway): number {
  const [, kilobytes = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kilobytes) / 1024)
}

function numbers(text: string | undefined): readonly number[] | undefined {
  return text?.split(',').map(Number)
}

export function scalingText({ name, p50, p99, ratio }: ScalingLine): string {
  return `${name}: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ratio ${ratio.toFixed(2)}`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const report = (text: string) => process.stderr.write(`… ${text}\n`)
  const serverUrl = testServerUrl ?? 'postgres://postgres@127.0.0.1:5432/postgres'
  const { keys, transfers, memory } = await benchScaling(serverUrl, report)
  for (const line of [...keys, ...transfers]) process.stdout.write(`${scalingText(line)}\n`)
  process.stdout.write(`memory: ${memory.before} → ${memory.after} MB after ${memory.requests} requests\n`)
}
