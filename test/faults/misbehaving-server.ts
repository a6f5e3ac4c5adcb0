/** A server that misbehaves in a settable way, for any request. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'

const json = { 'content-type': 'application/json' }
const CHUNK = Buffer.alloc(64 * 1024, ' ')
/** Bytes that are sent at most to a client that keeps reading. */
const HUGE_BYTES = 48 * 1024 * 1024
const DRIP_MS = 40

type Answering = (response: ServerResponse) => void | Promise<void>

/** Every misbehaviour. Those that keep a connection open do so until it is closed by the client. */
export const misbehaviours = {
  'never answers': () => {},
  'closes the connection at once': (response) => void response.socket?.resetAndDestroy(),
  'closes the connection amid the body': async (response) => {
    response.writeHead(200, { ...json, 'content-length': '1000' }).write('{"id":"')
    await sleep(20)
    response.socket?.destroy()
  },
  'answers 500': (response) => void response.writeHead(500, json).end('{"message":"no"}'),
  'answers 404 in HTML': (response) => void response.writeHead(404).end('<html>not here</html>'),
  'answers HTML with 200': (response) =>
    void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>welcome</html>'),
  'answers nothing with 200': (response) => void response.writeHead(200, json).end(),
  'answers JSON of another shape': (response) =>
    void response.writeHead(200, json).end('{"data":[{"__proto__":{"x":1}},null,1e999]}'),
  'answers null': (response) => void response.writeHead(200, json).end('null'),
  'answers a list': (response) => void response.writeHead(200, json).end('[[]]'),
  'redirects elsewhere': (response) =>
    void response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
  'answers without an end': async (response) => {
    response.writeHead(200, json)
    for (let sent = 0; sent < HUGE_BYTES && !response.destroyed; sent += CHUNK.length)
      if (!response.write(CHUNK))
        await new Promise<void>((resolve) => {
          const go = () => {
            response.off('drain', go).off('close', go)
            resolve()
          }
          response.on('drain', go).on('close', go)
        })
  },
  'answers byte by byte': async (response) => {
    response.writeHead(200, json).write('{"id":"')
    while (!response.destroyed) {
      response.write('x')
      await sleep(DRIP_MS)
    }
  },
} as const satisfies Record<string, Answering>

export type Misbehaviour = keyof typeof misbehaviours

export const allMisbehaviours = Object.keys(misbehaviours).filter(
  (name): name is Misbehaviour => name in misbehaviours,
)

export interface MisbehavingServer {
  readonly url: string
  /** Sets the misbehaviour from now on. */
  misbehave(how: Misbehaviour): void
  /** Bytes sent on all connections, whether read or in flight. */
  readonly sentBytes: () => number
  readonly requestCount: () => number
  close(): Promise<void>
}

export async function startMisbehaving(first: Misbehaviour = 'never answers'): Promise<MisbehavingServer> {
  let how: Misbehaviour = first
  let sent = 0
  let asked = 0
  const server = createServer((request, response) => {
    asked += 1
    request.resume()
    const { socket } = request
    const before = socket.bytesWritten
    response.on('close', () => {
      sent += socket.bytesWritten - before
    })
    response.on('error', () => {})
    const answer: Answering = misbehaviours[how]
    void Promise.resolve(answer(response)).catch(() => response.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = z.object({ port: z.number() }).parse(server.address())
  return {
    url: `http://127.0.0.1:${port}`,
    misbehave: (next) => {
      how = next
    },
    sentBytes: () => sent,
    requestCount: () => asked,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
