/**
 * One proxy at a time counts an agent's budget. A lock is a socket, which a process that was killed no longer answers. Each process
 * opens one of its own, and then looks for others: of two, the later to look sees the other, so that both may give up, but never both
 * go on.
 */
import { readdirSync, rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { randomToken } from '../../core/base/ids.ts'
import { random } from '../../core/base/random.ts'
import { timers } from '../../core/base/timers.ts'

/** For two that start at once, and give way to each other. */
const TRIES = 3
const LONGEST_PAUSE_MS = 100

/** @returns a function that unlocks. @throws Error if a running process has the lock. */
export async function lockFolder(folder: string): Promise<() => void> {
  for (let tries = 1; ; tries += 1) {
    // Paths of sockets are short.
    const name = `lock-${randomToken(3)}`
    const server = await listen(join(folder, name))
    if (await isAlone(folder, name)) return () => void server.close()
    server.close()
    if (tries === TRIES) throw new Error('Another bursar proxy of this key is running.')
    await timers.sleep(random.below(LONGEST_PAUSE_MS))
  }
}

/** Removes the locks of processes that were killed: a name is never used again. @returns false if another process has a lock. */
async function isAlone(folder: string, own: string): Promise<boolean> {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith('lock') || name === own) continue
    const path = join(folder, name)
    if (await answers(path)) return false
    rmSync(path, { force: true })
  }
  return true
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', reject)
    server.listen(path, () => {
      server.unref()
      resolve(server)
    })
  })
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
