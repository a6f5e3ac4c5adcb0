/** One proxy at a time counts an agent's budget. The lock is a socket, which a process that was killed no longer answers. */
import { rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'

/** @returns a function that unlocks. @throws Error if a running process has the lock. */
export async function lockFolder(folder: string): Promise<() => void> {
  const path = join(folder, 'lock')
  const taken = await tryListen(path)
  if (taken !== null) return unlock(taken)
  if (await answers(path)) throw new Error('Another bursar proxy of this key is running.')
  rmSync(path, { force: true })
  const retaken = await tryListen(path)
  if (retaken === null) throw new Error('Another bursar proxy of this key has just started.')
  return unlock(retaken)
}

function unlock(server: Server): () => void {
  return () => void server.close()
}

/** @returns null if the path is taken. */
function tryListen(path: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error) => {
      if ('code' in error && error.code === 'EADDRINUSE') resolve(null)
      else reject(error)
    })
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
