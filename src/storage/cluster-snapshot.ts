/**
 * An empty, migrated PGlite cluster cached as one file in `.cache/`, because creating one takes seconds. The file
 * name covers the versions of PGlite and of this program, and the SQL. It is written under a temporary name and
 * renamed, so it is never partial; without a writable directory, startup is only slower.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { PGlite } from '@electric-sql/pglite'
import { randomToken } from '../base/ids.ts'
import { projectRoot } from '../base/project-root.ts'
import { VERSION } from '../base/version.ts'
import { databaseOnPool } from './database-on-pool.ts'
import { functions } from './functions.ts'
import { migrations } from './migrations.ts'
import { sessionsOf } from './pglite-sessions.ts'

export interface ClusterSnapshot {
  readonly content: Blob
  readonly origin: 'cached' | 'made'
}

/** Loads the snapshot from the cache, or creates and caches it. */
export async function clusterSnapshot(): Promise<ClusterSnapshot> {
  const file = fileURLToPath(new URL(`.cache/${snapshotName()}`, projectRoot()))
  const cached = await readFile(file).catch(() => undefined)
  if (cached !== undefined) return { content: blobOf(cached), origin: 'cached' }
  const created = await makeSnapshot()
  // Without a writable directory, the next start creates it again.
  await store(file, created).catch(() => undefined)
  return { content: blobOf(created), origin: 'made' }
}

function blobOf(bytes: Uint8Array<ArrayBuffer>): Blob {
  return new Blob([bytes], { type: 'application/x-gzip' })
}

// PostgreSQL's default of 128 MB is touched page by page and never released; a sandbox ledger is small.
const settings = ['shared_buffers = 16MB']

const templates = ['template0', 'template1']

async function makeSnapshot(): Promise<Uint8Array<ArrayBuffer>> {
  const pglite = await PGlite.create({ postgresqlconf: settings })
  try {
    await databaseOnPool('pglite', sessionsOf(pglite)).migrate()
    // The template databases are never used, but make up two thirds of the files to unpack at startup.
    await pglite.exec('UPDATE pg_database SET datistemplate = false')
    for (const template of templates) await pglite.exec(`DROP DATABASE ${template}`)
    const dump = await pglite.dumpDataDir('none')
    // Level 1 compresses to an eighth, and takes less time than writing the uncompressed file.
    return Uint8Array.from(await promisify(gzip)(await dump.arrayBuffer(), { level: 1 }))
  } finally {
    await pglite.close()
  }
}

async function store(file: string, bytes: Uint8Array): Promise<void> {
  const directory = dirname(file)
  await mkdir(directory, { recursive: true })
  const draft = `${file}.${randomToken(9)}`
  try {
    const handle = await open(draft, 'wx')
    try {
      await handle.writeFile(bytes)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(draft, file)
  } finally {
    await rm(draft, { force: true })
  }
  const outdated = (await readdir(directory)).filter(
    (name) => /^cluster-\w+\.tar\.gz$/.test(name) && join(directory, name) !== file,
  )
  await Promise.all(outdated.map((name) => rm(join(directory, name), { force: true })))
}

function snapshotName(): string {
  const hash = createHash('sha256')
    .update(pgliteVersion())
    .update(JSON.stringify([VERSION, migrations, functions, settings, templates]))
    .digest('hex')
  return `cluster-${hash.slice(0, 16)}.tar.gz`
}

function pgliteVersion(): string {
  // The package does not export its package.json, which is two folders above the main file.
  const main = createRequire(import.meta.url).resolve('@electric-sql/pglite')
  return readFileSync(join(dirname(main), '..', 'package.json'), 'utf8')
}
