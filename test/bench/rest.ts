/** A gateway at rest: start time, statements per second, and memory, with few and with many wallets; and the embedded sandbox. */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { createTestDatabase } from '../engines.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'

/** Until jobs rest after the last write. */
const UNTIL_REST_MS = 65_000
const MEASURED_MS = 30_000

/**
 * @property firstStartMs with every migration. @property startMs on a database that has them. @property activePerSecond in the minute
 * after the last write.
 */
export interface RestFigures {
  readonly wallets: number
  readonly firstStartMs: number
  readonly startMs: number
  readonly activePerSecond: number
  readonly statementsPerSecond: number
  readonly memoryMb: number
}

/** Measures a gateway on PostgreSQL. @param wallets number of guest accounts, each with a wallet. */
export async function benchRest(serverUrl: string, wallets: number): Promise<RestFigures> {
  const { url, drop } = await createTestDatabase(serverUrl)
  const client = new pg.Client({ connectionString: serverUrl })
  await client.connect()
  const start = async () => {
    const startedAt = performance.now()
    const gateway = await startGateway({
      DATABASE_URL: url,
      RATE_GUESTS: '100000/60',
      RATE_MUTATIONS: '100000/60',
    })
    return { gateway, ms: performance.now() - startedAt }
  }
  const first = await start()
  await first.gateway.stop()
  const { gateway, ms: startMs } = await start()
  try {
    for (let done = 0; done < wallets; done += 16)
      await Promise.all(
        Array.from({ length: Math.min(16, wallets - done) }, async () => {
          const { status } = await fetch(`${gateway.origin}/api/auth/guest`, { method: 'POST' })
          if (status !== 200) throw new Error(`a guest was answered ${status}`)
        }),
      )
    const name = new URL(url).pathname.slice(1)
    const written = await transactions(client, name)
    await pause(UNTIL_REST_MS)
    const before = await transactions(client, name)
    await pause(MEASURED_MS)
    const after = await transactions(client, name)
    return {
      wallets,
      firstStartMs: first.ms,
      startMs,
      activePerSecond: ((before - written) * 1_000) / UNTIL_REST_MS,
      statementsPerSecond: ((after - before) * 1_000) / MEASURED_MS,
      memoryMb: readMemory(gateway),
    }
  } finally {
    await gateway.stop()
    await client.end()
    await drop()
  }
}

/** Measures the sandbox with its database and chain inside, in megabytes, with the settings of its service and its image. */
export async function benchEmbedded(): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'bursar-rest-'))
  const gateway = await startGateway({
    DATA_DIR: directory,
    NODE_OPTIONS: '--v8-pool-size=1',
    MALLOC_ARENA_MAX: '1',
    MALLOC_MMAP_THRESHOLD_: '32768',
  })
  try {
    await pause(UNTIL_REST_MS)
    return readMemory(gateway)
  } finally {
    await gateway.stop()
    await rm(directory, { recursive: true })
  }
}

/** Resident megabytes of a gateway's process. */
function readMemory({ process: { pid } }: Gateway): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / 1_024
}

/** Transactions of a database so far. A statement outside a transaction is one. */
async function transactions(client: pg.Client, name: string): Promise<number> {
  const { rows } = await client.query<{ count: string }>(
    'select xact_commit + xact_rollback as count from pg_stat_database where datname = $1',
    [name],
  )
  return Number(rows[0]?.count ?? 0)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.stdout.write(`embedded: ${(await benchEmbedded()).toFixed(0)} MB\n`)
  for (const wallets of [1, 1_000])
    process.stdout.write(`${JSON.stringify(await benchRest(process.env.TEST_DATABASE_URL ?? '', wallets))}\n`)
}
