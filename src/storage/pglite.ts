/**
 * The embedded database: PGlite, the sandbox's engine. One connection, no server, no fsync: committed data survives
 * the end of the process, but not a power loss. Our own lock allows one process per directory.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MemoryFS, PGlite } from '@electric-sql/pglite'
import type { Clock } from '../core/base/clock.ts'
import type { Log } from '../core/base/log.ts'
import { makePrivate } from '../core/base/private-directory.ts'
import { type ClusterEntry, clusterSnapshot } from './cluster-snapshot.ts'
import type { Database } from './database.ts'
import { databaseOnPool } from './database-on-pool.ts'
import { lockDirectory } from './directory-lock.ts'
import { createSessionPool } from './pglite-sessions.ts'
import { createFreeSpaceCheck } from './require-free-space.ts'

export interface PgliteOptions {
  /** Directory, created if needed; `memory` stores nothing. */
  readonly directory: string
  readonly now: Clock
  readonly log: Pick<Log, 'info'>
}

/**
 * Opens the embedded database, creating it from a snapshot if needed. @throws Error naming directory and pid when
 * another process has the directory.
 */
export async function openPglite({ directory, now, log }: PgliteOptions): Promise<Database> {
  const start = now()
  if (directory === 'memory') {
    const { pglite, origin } = await openInMemory()
    log.info(
      { directory, snapshot: origin, ms: now().getTime() - start.getTime() },
      'embedded database opened',
    )
    return databaseOnPool('pglite', createSessionPool(pglite))
  }
  makePrivate(directory)
  const unlock = lockDirectory(directory, start)
  try {
    const requireRoom = createFreeSpaceCheck(directory)
    requireRoom()
    const { pglite, origin } = await openCluster(directory)
    makePrivate(directory)
    log.info(
      { directory, snapshot: origin, ms: now().getTime() - start.getTime() },
      'embedded database opened',
    )
    const sessions = createSessionPool(pglite)
    return databaseOnPool('pglite', {
      ...sessions,
      acquire: async () => {
        requireRoom()
        return sessions.acquire()
      },
      end: async () => {
        await sessions.end()
        unlock()
      },
    })
  } catch (error) {
    unlock()
    throw error
  }
}

/** Opens a directory's cluster. A cluster whose creation was interrupted is discarded; it never held committed data. */
async function openCluster(directory: string): Promise<{ pglite: PGlite; origin: string }> {
  const cluster = join(directory, 'cluster')
  const unfinished = join(directory, 'cluster.unfinished')
  if (existsSync(cluster) && !existsSync(unfinished)) {
    return { pglite: await PGlite.create({ dataDir: cluster }), origin: 'none: reopened' }
  }
  writeFileSync(unfinished, '')
  rmSync(cluster, { recursive: true, force: true })
  mkdirSync(cluster)
  const { entries, origin } = await clusterSnapshot()
  for (const { path, content } of entries) {
    if (content === null) mkdirSync(join(cluster, path), { recursive: true })
    else writeFileSync(join(cluster, path), content)
  }
  const pglite = await PGlite.create({ dataDir: cluster })
  rmSync(unfinished)
  return { pglite, origin }
}

/** Opens a copy of the snapshot in memory. */
export async function openInMemory(): Promise<{ pglite: PGlite; origin: string }> {
  const { entries, origin } = await clusterSnapshot()
  const files = new MemoryFS()
  const init = files.init.bind(files)
  files.init = async (pglite, options) => {
    files.initialSyncFs = async () => placeFiles(pglite.Module.FS, entries)
    return init(pglite, options)
  }
  return { pglite: await PGlite.create({ fs: files }), origin }
}

function placeFiles(fs: PGlite['Module']['FS'], entries: readonly ClusterEntry[]): void {
  const root = PGlite.paths.PGDATA
  fs.mkdirTree(root)
  for (const { path, content } of entries) {
    if (content === null) fs.mkdirTree(`${root}/${path}`)
    // The file system takes the bytes over instead of copying them.
    else fs.writeFile(`${root}/${path}`, content, { canOwn: true })
  }
}
