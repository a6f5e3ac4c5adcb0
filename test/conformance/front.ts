/**
 * What stands before the gateway: adds the key that the suite cannot send, and passes everything else on as it came, Host
 * and Origin too.
 */
import { once } from 'node:events'
import { request as ask, createServer } from 'node:http'
import { pipeline } from 'node:stream'

/** A front that listens. */
export interface Front {
  readonly origin: string
  /** Names the gateway behind it, and the key. */
  serve(behind: { readonly port: number; readonly apiKey: string }): void
  close(): void
}

/** Listens on a free port of this machine. */
export async function openFront(): Promise<Front> {
  let behind: { readonly port: number; readonly apiKey: string } | null = null
  const server = createServer((incoming, outgoing) => {
    if (behind === null) return void outgoing.writeHead(503).end()
    const { apiKey, port } = behind
    const headers = [
      ...incoming.rawHeaders,
      ...(incoming.url === '/mcp' ? ['authorization', `Bearer ${apiKey}`] : []),
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
  if (address === null || typeof address === 'string') throw new Error('the front has no port')
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
