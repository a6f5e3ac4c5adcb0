/**
 * An empty, migrated PGlite cluster cached as one file in `.cache/`, because creating one takes seconds. The file
 * name covers the versions of PGlite and of this program, and the SQL.
 *
 * The file is an uncompressed tar: its contents are used where they lie, and unpacking was half of a start. The published package
 * brings it compressed, for its first start.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip as unzip } from 'node:zlib'
import { PGlite } from '@electric-sql/pglite'
import { cachePath, storeInCache } from '../core/base/cache-files.ts'
import { VERSION } from '../core/base/version.ts'
import { databaseOnPool } from './database-on-pool.ts'
import { functions } from './functions.ts'
import { migrations } from './migrations.ts'
import { createSessionPool } from './pglite-sessions.ts'

const gunzip = promisify(unzip)

/** A file of the cluster, or a folder. @property path relative to the cluster. @property content null for a folder. */
export interface ClusterEntry {
  readonly path: string
  readonly content: Uint8Array<ArrayBuffer> | null
}

/** @property entries folders before their files; the caller owns the contents. */
export interface ClusterSnapshot {
  readonly entries: readonly ClusterEntry[]
  readonly origin: 'cached' | 'made'
}

/** Loads the snapshot from the cache, or creates and caches it. */
export async function clusterSnapshot(): Promise<ClusterSnapshot> {
  const name = snapshotName()
  const cached = await readFile(cachePath(name)).catch(() => undefined)
  if (cached !== undefined) return { entries: readTar(cached), origin: 'cached' }
  const packed = await readFile(cachePath(`${name}.gz`)).catch(() => undefined)
  const archive = packed === undefined ? await makeSnapshot() : new Uint8Array(await gunzip(packed))
  await storeInCache(name, archive, /^cluster-\w+\.tar$/)
  return { entries: readTar(archive), origin: packed === undefined ? 'made' : 'cached' }
}

const TAR_BLOCK = 512

/** Reads the members of an archive without copying them. @see https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html#tag_20_94_13_06 */
function readTar(archive: Uint8Array<ArrayBuffer>): ClusterEntry[] {
  const entries: ClusterEntry[] = []
  let at = 0
  while (at < archive.length) {
    const field = (start: number, length: number) => {
      const bytes = archive.subarray(at + start, at + start + length)
      const end = bytes.indexOf(0)
      return Buffer.from(end === -1 ? bytes : bytes.subarray(0, end)).toString('latin1')
    }
    const name = field(0, 100)
    // Two empty blocks end the archive.
    if (name === '') break
    const isFolder = field(156, 1) === '5'
    const size = isFolder ? 0 : Number.parseInt(field(124, 12), 8)
    const start = at + TAR_BLOCK
    entries.push({
      path: name.replace(/^\/|\/$/g, ''),
      content: isFolder ? null : archive.subarray(start, start + size),
    })
    at = start + Math.ceil(size / TAR_BLOCK) * TAR_BLOCK
  }
  return entries
}

// PostgreSQL's default of 128 MB is touched page by page and never released; a sandbox ledger is small.
// One process writes it without fsync, so that recycled and zeroed segments of the log would only cost time and space.
const settings = ['shared_buffers = 16MB', 'wal_recycle = off', 'wal_init_zero = off', 'min_wal_size = 32MB']

const templates = ['template0', 'template1']

async function makeSnapshot(): Promise<Uint8Array<ArrayBuffer>> {
  const pglite = await PGlite.create({ postgresqlconf: settings })
  try {
    await databaseOnPool('pglite', createSessionPool(pglite)).migrate()
    // The template databases are never used, but make up two thirds of the files to unpack at startup.
    await pglite.exec('UPDATE pg_database SET datistemplate = false')
    for (const template of templates) await pglite.exec(`DROP DATABASE ${template}`)
    // Leaves nothing in the log that every start would have to read and replay.
    for (const statement of ['CHECKPOINT', 'SELECT pg_switch_wal()', 'CHECKPOINT'])
      await pglite.exec(statement)
    return new Uint8Array(await (await pglite.dumpDataDir('none')).arrayBuffer())
  } finally {
    await pglite.close()
  }
}

function snapshotName(): string {
  const hash = createHash('sha256')
    .update(pgliteVersion())
    .update(JSON.stringify([VERSION, migrations, functions, settings, templates]))
    .digest('hex')
  return `cluster-${hash.slice(0, 16)}.tar`
}

/** The package.json of the embedded database, where the program's bundle holds it. */
declare const BUNDLED_PGLITE: string | undefined

function pgliteVersion(): string {
  if (typeof BUNDLED_PGLITE === 'string') return BUNDLED_PGLITE
  // The package does not export its package.json, which is two folders above the main file.
  const main = createRequire(import.meta.url).resolve('@electric-sql/pglite')
  return readFileSync(join(dirname(main), '..', 'package.json'), 'utf8')
}
