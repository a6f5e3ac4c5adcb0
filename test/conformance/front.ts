/**
 * A reverse proxy for one gateway or several: adds the API key for clients that cannot send one, forwards everything
 * else unchanged, including Host and Origin, and picks the next gateway for each request.
 */
import { once } from 'node:events'
import { request as ask, createServer } from 'node:http'
import { pipeline } from 'node:stream'

export interface ForwardProxy {
  readonly origin: string
  /** Sets the ports of the gateways, and the API key; null if clients send their own. */
  serve(behind: { readonly ports: readonly number[]; readonly apiKey: string | null }): void
  close(): void
}

/** Listens on a free port of this machine. */
export async function openProxy(): Promise<ForwardProxy> {
  let behind: Parameters<ForwardProxy['serve']>[0] = { ports: [], apiKey: null }
  let requests = 0
  const server = createServer((incoming, outgoing) => {
    const { apiKey, ports } = behind
    const port = ports[requests % ports.length]
    requests += 1
    if (port === undefined) return void outgoing.writeHead(503).end()
    const headers = [
      ...incoming.rawHeaders,
      ...(incoming.url === '/mcp' && apiKey !== null ? ['authorization', `Bearer ${apiKey}`] : []),
    ]
    const { method, url } = incoming
    const passed = ask({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      outgoing.flushHeaders()
      pipeline(answer, outgoing, () => {})
    })
    passed.on('error', () => outgoing.destroy())
    outgoing.on('close', () => passed.destroy())
    incoming.pipe(passed)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  return {
    origin: `http://127.0.0.1:${address.port}`,
    serve: (named) => {
      behind = named
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
