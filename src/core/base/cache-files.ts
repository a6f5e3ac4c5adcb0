/**
 * Files in the program's `.cache/` that are costly to make and can always be made again. Each is written under a
 * temporary name and renamed, so it is never partial; without a writable directory, it is made at every start.
 */
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { randomToken } from './ids.ts'
import { projectRoot } from './project-root.ts'

/** Path of a cache file, which may not exist. */
export function cachePath(name: string): string {
  return fileURLToPath(new URL(`.cache/${name}`, projectRoot()))
}

/** Writes a cache file and removes those that it replaces. @param outdated matches names of its earlier versions. */
export async function storeInCache(
  name: string,
  content: string | Uint8Array,
  outdated: RegExp,
): Promise<void> {
  const directory = cachePath('')
  const draft = cachePath(`${name}.${randomToken(9)}`)
  try {
    await mkdir(directory, { recursive: true })
    const handle = await open(draft, 'wx')
    try {
      await handle.writeFile(content)
      // Every user who may run the program may read its prepared files, whatever the umask.
      await handle.chmod(0o644)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(draft, cachePath(name))
    const old = (await readdir(directory)).filter((file) => outdated.test(file) && file !== name)
    await Promise.all(old.map((file) => rm(join(directory, file), { force: true })))
  } catch {
    // Without a writable directory, the next start makes it again.
  } finally {
    await rm(draft, { force: true }).catch(() => undefined)
  }
}
