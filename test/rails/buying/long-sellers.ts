/** Sellers of long answers and of what needs a login or a body. They remember the paid requests that they got. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connectTaker, SELLER } from './flaky-sellers.ts'

export const TOKEN = 'seller-login-3f9a1c7be2'
export const COOKIE = 'session=cookie-7d21ab90ff'
export const API_KEY = 'api-key-55e0c3d1a8'

export interface PaidRequest {
  readonly method: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** Bytes that are no text, and differ everywhere. */
export function longBytes(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at + 4 <= length; at += 4) bytes.writeUInt32LE((at * 2_654_435_761) >>> 0, at)
  return bytes
}

/**
 * Serves `/long/{bytes}`, `/broken-once/{bytes}`, which hangs up in the middle of its first answer, `/login`, which wants the token,
 * the cookie and the API key, and `/echo`. @property taken payments that were settled.
 */
export async function startLongSellers(rpcUrl: string) {
  const { take, challenge, close } = await connectTaker(rpcUrl)
  const paid: PaidRequest[] = []
  const unpaid: PaidRequest[] = []
  const settled = new Set<string>()
  let broken = 0

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', headers, url = '' } = request
    const seen = { method, headers, body: Buffer.concat(chunks) }
    const [, kind, size = '0'] = url.split('/')
    const isLoggedIn =
      headers.authorization === `Bearer ${TOKEN}` &&
      headers.cookie === COOKIE &&
      headers['x-api-key'] === API_KEY
    if (kind === 'login' && !isLoggedIn) return response.writeHead(401).end()
    const header = headers['payment-signature']
    if (typeof header !== 'string') {
      unpaid.push(seen)
      const terms = { payTo: SELLER, amount: kind === 'login' ? '20000' : '1000' }
      return response.writeHead(402, { 'payment-required': challenge(`http://x${url}`, terms) }).end('pay')
    }
    paid.push(seen)
    if (!settled.has(header) && !(await take(header))) return response.writeHead(402).end()
    settled.add(header)
    const body = kind === 'login' || kind === 'echo' ? seen.body : longBytes(Number(size))
    response.writeHead(200, { 'content-type': 'application/x-goods', 'content-length': String(body.length) })
    if (kind === 'broken-once' && broken++ === 0) {
      response.write(body.subarray(0, body.length / 2))
      setTimeout(() => request.socket.destroy(), 300)
      return
    }
    const left = new AbortController()
    response.once('close', () => left.abort())
    for (let at = 0; at < body.length && !response.destroyed; at += 65_536) {
      const part = body.subarray(at, at + 65_536)
      if (!response.write(part)) await once(response, 'drain', { signal: left.signal })
    }
    response.end()
  }
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paid,
    unpaid,
    taken: () => settled.size,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await close()
    },
  }
}
