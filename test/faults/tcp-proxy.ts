/** A TCP proxy whose connections can be cut, refused or silenced, for any protocol. */
import { once } from 'node:events'
import { createServer, connect as dial, type Socket } from 'node:net'
import { z } from 'zod'

/** A proxy for a server. A new mode affects open connections too. */
export interface TcpProxy {
  readonly port: number
  /** Forwards everything again; held bytes arrive late. */
  pass(): void
  /** Closes every connection, and each new one at once. */
  refuse(): void
  /** Holds all bytes in both directions without closing. New connections are accepted and stay silent. */
  hold(): void
  /** Silences the currently open connections permanently, as after a lost route; new ones work. */
  forget(): void
  /** Forwards the first request that contains this text, and closes its connection instead of answering. */
  loseAnswerTo(text: string): Promise<void>
  close(): Promise<void>
}

type Mode = 'pass' | 'refuse' | 'hold'

/** Starts a proxy for a server on this machine. */
export async function startTcpProxy(targetPort: number, targetHost = '127.0.0.1'): Promise<TcpProxy> {
  let mode: Mode = 'pass'
  let losing: { text: string; done: () => void } | undefined
  const sockets = new Set<Socket>()
  const silent = new WeakSet<Socket>()
  const server = createServer((client) => {
    if (mode === 'refuse') return void client.resetAndDestroy()
    const target = dial(targetPort, targetHost)
    let isLost: (() => void) | undefined
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(from)
      from.setNoDelay(true)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      from.on('data', (bytes: Buffer) => {
        if (from === client && losing !== undefined && bytes.includes(losing.text)) {
          isLost = losing.done
          losing = undefined
        }
        if (from === target && isLost !== undefined) {
          isLost()
          client.resetAndDestroy()
          return
        }
        to.write(bytes)
      })
      if (mode === 'hold') from.pause()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = z.object({ port: z.number() }).parse(server.address())
  return {
    port,
    pass: () => {
      mode = 'pass'
      for (const socket of sockets) if (!silent.has(socket)) socket.resume()
    },
    refuse: () => {
      mode = 'refuse'
      for (const socket of sockets) socket.resetAndDestroy()
    },
    hold: () => {
      mode = 'hold'
      for (const socket of sockets) socket.pause()
    },
    forget: () => {
      for (const socket of sockets) {
        silent.add(socket)
        socket.pause()
      }
    },
    loseAnswerTo: (text) =>
      new Promise((done) => {
        losing = { text, done }
      }),
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** The URL of a server, through a proxy. */
export function through(proxy: TcpProxy, url: string): string {
  const changed = new URL(url)
  changed.hostname = '127.0.0.1'
  changed.port = String(proxy.port)
  return changed.href
}
