/**
 * An empty, migrated PGlite cluster as one file in `.cache/`, because making one anew takes seconds. It belongs to one
 * version of PGlite and of this program and to its SQL, all of which are in its name. Written to the side and renamed, so that a
 * name is never half a file; where it cannot be written it is only slower.
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

/** A snapshot and where it came from. */
export interface ClusterSnapshot {
  readonly content: Blob
  readonly origin: 'cached' | 'made'
}

/** The snapshot for this program: from `.cache/` of the project, or made now and put there for the next start. */
export async function clusterSnapshot(): Promise<ClusterSnapshot> {
  const file = fileURLToPath(new URL(`.cache/${snapshotName()}`, projectRoot()))
  const cached = await readFile(file).catch(() => undefined)
  if (cached !== undefined) return { content: blobOf(cached), origin: 'cached' }
  const made = await makeSnapshot()
  // Without a writable directory the next start makes it again.
  await store(file, made).catch(() => undefined)
  return { content: blobOf(made), origin: 'made' }
}

function blobOf(bytes: Uint8Array<ArrayBuffer>): Blob {
  return new Blob([bytes], { type: 'application/x-gzip' })
}

// PostgreSQL's default of 128 MB is touched page by page and never given back; the books of a sandbox are small.
const settings = ['shared_buffers = 16MB']

const templates = ['template0', 'template1']

async function makeSnapshot(): Promise<Uint8Array<ArrayBuffer>> {
  const pglite = await PGlite.create({ postgresqlconf: settings })
  try {
    await databaseOnPool('pglite', sessionsOf(pglite)).migrate()
    // Two of three databases are templates for others that nobody makes: two thirds of the files to be laid out at a start.
    await pglite.exec('UPDATE pg_database SET datistemplate = false')
    for (const template of templates) await pglite.exec(`DROP DATABASE ${template}`)
    const dump = await pglite.dumpDataDir('none')
    // Level 1: an eighth of the size, and faster to make than to write out whole.
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
  // The package does not export its package.json; it lies two folders above the main file.
  const main = createRequire(import.meta.url).resolve('@electric-sql/pglite')
  return readFileSync(join(dirname(main), '..', 'package.json'), 'utf8')
}
