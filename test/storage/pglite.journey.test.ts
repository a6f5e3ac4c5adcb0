import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { openPglite } from '../../src/storage/pglite.ts'

const root = mkdtempSync(join(tmpdir(), 'bursar-pglite-'))
let count = 0
const newDirectory = () => join(root, String(count++))
const open = (directory: string) => openPglite({ directory, now: systemClock, log: silentLog })
const readRows = async (directory: string) => {
  const database = await open(directory)
  const rows = await database.kysely.selectFrom('sandbox_secret').select('name').execute()
  await database.close()
  return rows.map(({ name }) => name)
}

/** A process that owns a directory. @property said its lines so far. @property ended resolves when it exits. */
interface Owner {
  readonly child: ChildProcessWithoutNullStreams
  readonly lines: string[]
  readonly first: Promise<string>
  readonly ended: Promise<void>
}

const children: ChildProcessWithoutNullStreams[] = []

function startOwner(directory: string): Owner {
  const script = join(import.meta.dirname, 'pglite-owner.ts')
  const child = spawn(process.execPath, ['--import', 'tsx', script, directory])
  children.push(child)
  const printed: string[] = []
  const lines = createInterface({ input: child.stdout })
  // Its output closes a moment before it exits; only then is its directory free.
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const first = new Promise<string>((resolve) => {
    lines.on('line', (line) => {
      printed.push(line)
      resolve(line)
    })
    lines.on('close', () => resolve('nothing'))
  })
  return { child, lines: printed, first, ended }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10))
}

afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(root, { recursive: true, force: true })
})

describe('PGlite on a directory', () => {
  it('keeps its rows from one opening to the next', async () => {
    const directory = newDirectory()
    const database = await open(directory)
    await database.migrate()
    await database.kysely.insertInto('sandbox_secret').values({ name: 'kept', value: '1' }).execute()
    await database.close()
    expect(await readRows(directory)).toEqual(['kept'])
  })

  it('rejects a second opening in the same process', async () => {
    const directory = newDirectory()
    const database = await open(directory)
    await expect(open(directory)).rejects.toThrow(`in use by process ${process.pid}`)
    await database.close()
    await (await open(directory)).close()
  })

  it('rejects another process, with directory, owner and remedy, and opens after the owner has closed', async () => {
    const directory = newDirectory()
    const owner = startOwner(directory)
    expect(await owner.first).toBe('open')
    const refusal = await open(directory).then(
      () => 'opened',
      (error: Error) => error.message,
    )
    expect(refusal).toContain(directory)
    expect(refusal).toContain(`process ${owner.child.pid}`)
    expect(refusal).toContain('DATA_DIR')
    owner.child.stdin.end()
    await owner.ended
    expect(await readRows(directory)).toEqual(owner.lines.slice(1))
  })

  it('opens after its owner was killed, with every acknowledged row', async () => {
    const directory = newDirectory()
    const acknowledged: string[] = []
    for (const rows of [5, 60]) {
      const owner = startOwner(directory)
      await until(() => owner.lines.length > rows)
      owner.child.kill('SIGKILL')
      await owner.ended
      acknowledged.push(...owner.lines.slice(1))
    }
    const found = await readRows(directory)
    expect(acknowledged.filter((name) => !found.includes(name))).toEqual([])
    expect(acknowledged.length).toBeGreaterThan(60)
  })

  it('is opened by one of several processes that find the owner dead', async () => {
    const directory = newDirectory()
    const dead = startOwner(directory)
    await dead.first
    dead.child.kill('SIGKILL')
    await dead.ended
    const owners = Array.from({ length: 4 }, () => startOwner(directory))
    const answers = await Promise.all(owners.map(({ first }) => first))
    expect(answers.filter((answer) => answer === 'open')).toHaveLength(1)
    expect(answers.filter((answer) => answer.startsWith('refused'))).toHaveLength(3)
    for (const { child } of owners) child.kill('SIGKILL')
    await Promise.all(owners.map(({ ended }) => ended))
  })

  it('is created anew after an interrupted creation', async () => {
    const directory = newDirectory()
    mkdirSync(join(directory, 'cluster'), { recursive: true })
    writeFileSync(join(directory, 'cluster', 'PG_VERSION'), '18\n')
    writeFileSync(join(directory, 'cluster.unfinished'), '')
    const database = await open(directory)
    expect(await database.pendingMigrations()).toEqual([])
    await database.close()
    expect(readdirSync(directory)).not.toContain('cluster.unfinished')
  })
})

describe('PGlite’s one session', () => {
  it('is waited for with a time limit while a transaction holds it', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const database = await open('memory')
      const stuck = database.transaction(async () => {
        const other = database.kysely.selectFrom('account').selectAll().execute()
        await Promise.all([other, vi.advanceTimersByTimeAsync(10_000)])
      })
      await expect(stuck).rejects.toMatchObject({ code: 'provider_unavailable' })
      expect(await database.kysely.selectFrom('account').selectAll().execute()).toEqual([])
      await database.close()
    } finally {
      vi.useRealTimers()
    }
  })
})
