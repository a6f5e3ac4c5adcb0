/**
 * A million spends through random trees of keys, by processes that are killed meanwhile. What was spent is then added up from the
 * reservations alone, without the counters: no key, and none below it, may have spent more than it was given.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import { type Policy, spendPolicy } from '../../policies/policy.ts'
import { formatUsd, toUsdMicros } from '../../policies/usd.ts'
import { newId } from '../../src/core/base/ids.ts'
import type { AccessKey } from '../../src/core/base/principal.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { delegateKey } from '../../src/people/identity/keys/delegations.ts'
import { findIssuedKey, insertKey } from '../../src/people/identity/store.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { noon, openAccount } from '../books/spending/scene.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'

const ACCOUNTS = 24
const KEYS = 24
const PROCESSES = 3
const KILL_MS = 5_000
const DAYS = 4
const CENT = 10_000n

/** A key as a process needs it to spend. @property path ids above it, root first. */
export interface TreeKey {
  readonly id: string
  readonly accountId: string
  readonly path: readonly string[]
  readonly policy: Policy
}

const progress = z.object({ decided: z.int() })

/** @returns true if no budget was exceeded and the counters are the sum of the reservations. */
export async function crashBudgets(spends: number): Promise<boolean> {
  const server = testServerUrl ?? 'postgres://postgres@127.0.0.1:5432/postgres'
  const { url, drop } = await createTestDatabase(server)
  const database = await openPostgres({ url, poolSize: 2 })
  const processes: ChildProcess[] = []
  try {
    await database.migrate()
    const scale = Math.max(spends / (ACCOUNTS * DAYS), 40)
    const keys = (
      await Promise.all(Array.from({ length: ACCOUNTS }, () => plantTree(database, Math.round(scale))))
    ).flat()
    const deepest = Math.max(...keys.map(({ path }) => path.length))
    say(`${keys.length} keys of ${ACCOUNTS} accounts, up to ${deepest} below another, ${PROCESSES} processes`)

    const started = performance.now()
    let decided = 0
    let kills = 0
    const begin = () => {
      const child = fork(new URL('spender.ts', import.meta.url), {
        execArgv: ['--import', 'tsx'],
        serialization: 'advanced',
      })
      child.on('message', (message) => {
        decided += progress.parse(message).decided
      })
      child.send({ url, keys, from: decided, spends })
      processes.push(child)
    }
    for (let count = 0; count < PROCESSES; count += 1) begin()
    let killedAt = started
    let toldAt = started
    while (decided < spends) {
      await sleep(100)
      const now = performance.now()
      if (processes.some(({ exitCode }) => exitCode !== null && exitCode !== 0))
        throw new Error('a process of the test failed')
      if (now - toldAt > 10_000) {
        say(
          `${decided} decided, ${kills} killed, ${Math.round(decided / ((now - started) / 1_000))} a second`,
        )
        toldAt = now
      }
      if (now - killedAt < KILL_MS) continue
      const victim = processes.shift()
      victim?.kill('SIGKILL')
      kills += 1
      killedAt = now
      begin()
    }
    await Promise.all(processes.splice(0).map(end))
    await awaitQuiet(database)
    return await judge(database, keys, { kills, seconds: (performance.now() - started) / 1_000 })
  } finally {
    for (const one of processes) one.kill('SIGKILL')
    await database.close()
    await drop()
  }
}

const say = (line: string) => process.stdout.write(`${line}\n`)

function end(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once('exit', () => resolve())
    child.kill('SIGKILL')
  })
}

/** Waits until the database has ended what killed processes had asked of it: both sums are to be of the same moment. */
async function awaitQuiet(database: Database): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const { rows } = await sql<{ count: bigint }>`
      select count(*) as count from pg_stat_activity
      where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`.execute(
      database.kysely,
    )
    if (rows[0]?.count === 0n) return
    await sleep(50)
  }
  throw new Error('a killed process still works')
}

/** A random tree. @param spends about how many spends of a day its account will see. */
async function plantTree(database: Database, spends: number): Promise<TreeKey[]> {
  const accountId = await openAccount(database, BigInt(spends) * 10_000_000n)
  const random = (below: number) => Math.floor(Math.random() * below)
  const scopes = ['wallets:transfer', 'agents:delegate'] as const
  const draw = (share: number): Policy => {
    const cents = BigInt(Math.max(25, Math.round(spends * 13 * share * (0.3 + Math.random()))))
    return spendPolicy.parse({
      perTransaction: { max: '0.25' },
      dailyBudget: {
        max: formatUsd(cents * CENT),
        ...(random(4) === 0 ? { maxCount: 1 + random(spends) } : {}),
      },
      ...(random(2) === 0 ? { totalBudget: { max: formatUsd(cents * 2n * CENT) } } : {}),
      categories: { allow: ['transfer'] },
    })
  }
  const policy = draw(1.2)
  const root: AccessKey = {
    id: newId('key', noon),
    kind: 'agent',
    name: 'root',
    thumbprint: null,
    publicKey: null,
    scopes: [...scopes],
    status: 'active',
    policy,
    policyVersion: 1,
    policyHash: null,
    createdAt: noon,
    expiresAt: null,
  }
  await insertKey(database, accountId, { ...root, secretHash: null })
  const keys: TreeKey[] = [{ id: root.id, accountId, path: [], policy }]
  for (let tries = 0; keys.length < KEYS && tries < KEYS * 4; tries += 1) {
    const parent = keys[random(keys.length)]
    if (parent === undefined || parent.path.length === 4) continue
    const own = draw(0.9 / (parent.path.length + 1))
    const made = await delegateKey(
      { database, newId },
      {
        accountId,
        parent: (await findIssuedKey(database, { id: parent.id })).key,
        name: 'child',
        scopes: [...scopes],
        policy: own,
        expiresAt: new Date('2100-01-01T00:00:00Z'),
        credential: { secret: newId('key', noon) },
        isEarmarked: own.totalBudget !== undefined && random(2) === 0,
        task: null,
        at: noon,
      },
    ).catch((error: unknown) => {
      // Wider than its parent, or more than that has left.
      if (error instanceof Failure) return undefined
      throw error
    })
    if (made !== undefined)
      keys.push({ id: made.id, accountId, path: [...parent.path, parent.id], policy: own })
  }
  return keys
}

/** Adds up what was spent below each key, and compares it with what the key was given. */
async function judge(
  database: Database,
  keys: readonly TreeKey[],
  { kills, seconds }: { kills: number; seconds: number },
): Promise<boolean> {
  const { rows: verdicts } = await sql<{ verdict: string; count: bigint }>`
    select verdict, count(*) as count from decision group by 1 order by 1`.execute(database.kysely)
  const { rows: spent } = await sql<{ id: string; day: string; micros: bigint; count: bigint }>`
    select k.id, r.day::text as day, sum(r.usd_micros)::bigint as micros, count(*) as count
    from access_key k join access_key s on s.id = k.id or s.path @> array[k.id] and s.path <> '{}'
      join reservation r on r.key_id = s.id and r.status <> 'released'
    group by 1, 2`.execute(database.kysely)
  const { rows: counted } = await sql<{ id: string; day: string; micros: bigint; count: bigint }>`
    select key_id as id, day::text as day, used_micros as micros, count from budget_usage where count > 0`.execute(
    database.kysely,
  )
  const { rows: aside } = await sql<{ holder: string; key: string; micros: bigint }>`
    select e.holder_id as holder, e.key_id as key, k.earmark_micros as micros from earmark e join access_key k on k.id = e.key_id`.execute(
    database.kysely,
  )
  const write = (rows: typeof spent) =>
    rows
      .map(({ id, day, micros, count }) => `${id} ${day} ${micros} ${count}`)
      .sort()
      .join('\n')
  const isCounted = write(spent) === write(counted)
  if (!isCounted) {
    const [ours, theirs] = [new Set(write(spent).split('\n')), new Set(write(counted).split('\n'))]
    for (const line of [...ours].filter((one) => !theirs.has(one)).slice(0, 10)) say(`reservations: ${line}`)
    for (const line of [...theirs].filter((one) => !ours.has(one)).slice(0, 10)) say(`counters:     ${line}`)
  }
  const total = new Map<string, bigint>()
  for (const { id, micros } of spent) total.set(id, (total.get(id) ?? 0n) + micros)
  let over = 0n
  let full = 0
  const exceed = (by: bigint) => {
    if (by > 0n) over += by
  }
  for (const { id, policy } of keys) {
    const days = spent.filter((row) => row.id === id)
    const most = toUsdMicros(policy.dailyBudget.max)
    for (const { micros, count } of days) {
      exceed(micros - most)
      exceed(policy.dailyBudget.maxCount === undefined ? 0n : count - BigInt(policy.dailyBudget.maxCount))
      if (most - micros < CENT) full += 1
    }
    if (policy.totalBudget === undefined) continue
    // What is set aside and not spent belongs to the keys below.
    const kept = aside
      .filter(({ holder }) => holder === id)
      .reduce((sum, { key, micros }) => {
        const left = micros - (total.get(key) ?? 0n)
        return sum + (left > 0n ? left : 0n)
      }, 0n)
    exceed((total.get(id) ?? 0n) + kept - toUsdMicros(policy.totalBudget.max))
  }
  const { rows: drift } = await sql<{ count: bigint }>`
    select count(*) as count from balance b where b.account like '%:held' and b.units <> (
      select coalesce(sum(r.units), 0) from reservation r where r.held = b.account and r.asset = b.asset and r.status = 'reserved')`.execute(
    database.kysely,
  )
  const differing = drift[0]?.count ?? 0n
  say(`${verdicts.map(({ verdict, count }) => `${count} ${verdict}`).join(', ')} in ${Math.round(seconds)} s`)
  say(`${kills} processes killed, ${full} budgets of a day used to the last cent`)
  say(`over any budget: ${formatUsd(over)} USD`)
  say(`counters that differ from the reservations: ${isCounted ? 'none' : 'SOME'}`)
  say(`holds that differ from the reservations: ${differing}`)
  return over === 0n && isCounted && differing === 0n
}
