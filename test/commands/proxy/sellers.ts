/** Origins of the proxy's tests: stock x402 sellers beside free routes, over HTTP and HTTPS, and what is hard to pass on. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { paymentMiddleware, x402ResourceServer } from '@x402/hono'
import { Hono } from 'hono'
import { connectRpcChain } from '../../../src/chain/rpc.ts'
import { silentLog } from '../../../src/core/base/log.ts'

const PAYEE = '0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc'
export const PRICE = 1_000n

export interface TestOrigins {
  readonly http: string
  readonly https: string
  /** PEM file of the authority of the HTTPS origin. */
  readonly ca: string
  /** Paid answers of a route so far. */
  readonly delivered: (path: string) => number
  readonly received: () => bigint | Promise<bigint>
  /** Bytes that have left `/big?parts=` so far, a megabyte a part. */
  readonly sent: () => number
  close(): Promise<void>
}

/** Makes an authority and a certificate of localhost, with the machine's OpenSSL. */
export function makeCertificates(): { ca: string; key: string; cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-origin-'))
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const key = (name: string) => [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-keyout',
    name,
  ]
  openssl('req', '-x509', ...key('ca.key'), '-out', 'ca.pem', '-days', '2', '-subj', '/CN=Origins')
  openssl('req', ...key('leaf.key'), '-out', 'leaf.csr', '-subj', '/CN=localhost')
  execFileSync('sh', ['-c', 'echo subjectAltName=DNS:localhost,IP:127.0.0.1 > names'], { cwd: folder })
  openssl(
    ...['x509', '-req', '-in', 'leaf.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'],
    ...['-out', 'leaf.pem', '-days', '2', '-extfile', 'names'],
  )
  const path = (name: string) => join(folder, name)
  return {
    ca: path('ca.pem'),
    key: readFileSync(path('leaf.key'), 'utf8'),
    cert: readFileSync(path('leaf.pem'), 'utf8'),
  }
}

const MB = Buffer.alloc(1024 * 1024, 7)
export const BIG_BYTES = 50 * MB.length

/** Starts the origins. @param rpcUrl the gateway's chain; null: nothing is sold. */
export async function startOrigins(
  certificates: ReturnType<typeof makeCertificates>,
  rpcUrl: string | null,
): Promise<TestOrigins> {
  const counts = new Map<string, number>()
  const shop = rpcUrl === null ? null : await startShop(rpcUrl, counts)
  let sent = 0
  const free: Readonly<Record<string, (request: IncomingMessage, response: ServerResponse) => unknown>> = {
    '/free': (_request, response) => response.end('free\n'),
    '/echo': async (request, response) => {
      const hash = createHash('sha256')
      let bytes = 0
      for await (const chunk of request) {
        hash.update(chunk)
        bytes += chunk.length
      }
      const { headers, rawHeaders } = request
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ bytes, hash: hash.digest('hex'), headers, rawHeaders }))
    },
    '/big': async (request, response) => {
      sent = 0
      response.setMaxListeners(0)
      const parts = Number(new URL(request.url ?? '', 'http://x').searchParams.get('parts') ?? 50)
      for (let part = 0; part < parts && !response.destroyed; part += 1) {
        sent += MB.length
        if (!response.write(MB)) await Promise.race([once(response, 'drain'), once(response, 'close')])
      }
      response.end()
    },
    '/events': async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let event = 0; event < 5; event += 1) {
        response.write(`data: ${Date.now()}\n\n`)
        await pause(60)
      }
      response.end()
    },
    '/gigabyte': async (_request, response) => {
      response.writeHead(402, { 'content-type': 'application/json' })
      response.setMaxListeners(0)
      for (let part = 0; part < 1024 && !response.destroyed; part += 1)
        if (!response.write(MB)) await Promise.race([once(response, 'drain'), once(response, 'close')])
      response.end()
    },
    '/other-402': (_request, response) => {
      response.writeHead(402, { 'x-own': 'kept' })
      response.end('pay by cheque')
    },
    // Names a payment in a header, and then sends without an end.
    '/long-challenge': (_request, response) => {
      response.writeHead(402, { 'www-authenticate': 'Payment id="x"' })
      response.end(Buffer.alloc(200_000, 'a'))
    },
    '/cut': (_request, response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('half')
      setTimeout(() => response.destroy(), 50)
    },
  }
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const handle = free[new URL(request.url ?? '/', 'http://x').pathname]
    if (handle !== undefined) void handle(request, response)
    else if (shop === null) response.writeHead(404).end()
    else void shop.listener(request, response)
  }
  const plain = createServer(serve)
  const secure = createSecureServer({ key: certificates.key, cert: certificates.cert }, serve)
  for (const server of [plain, secure])
    server.on('upgrade', (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      socket.on('error', () => undefined).pipe(socket)
    })
  const [http, https] = await Promise.all([listen(plain), listen(secure)])
  return {
    http: `http://127.0.0.1:${http}`,
    https: `https://localhost:${https}`,
    ca: certificates.ca,
    delivered: (path) => counts.get(path) ?? 0,
    received: () => shop?.received() ?? 0n,
    sent: () => sent,
    close: async () => {
      for (const server of [plain, secure]) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
      await shop?.close()
    },
  }
}

async function listen(server: Server | ReturnType<typeof createSecureServer>): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** Sells `/report` and `/slow` for 0.001 USDC, `/dear` for 0.5. */
async function startShop(rpcUrl: string, counts: Map<string, number>) {
  const chain = await connectRpcChain({
    name: 'base-sepolia',
    url: rpcUrl,
    log: silentLog,
    clock: () => new Date(),
  })
  const facilitator = registerExactEvmScheme(new x402Facilitator(), {
    signer: toFacilitatorEvmSigner(chain.signer),
    networks: 'eip155:84532',
  })
  const server = new x402ResourceServer({
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported() as never,
  }).register('eip155:84532', new ExactEvmScheme())
  const sell = (price: string) => ({
    accepts: { scheme: 'exact', network: 'eip155:84532', price, payTo: PAYEE } as const,
    description: 'A report',
  })
  const app = new Hono()
  app.use(
    paymentMiddleware(
      {
        'GET /report': sell('$0.001'),
        'POST /report': sell('$0.001'),
        'PUT /report': sell('$0.001'),
        'GET /slow': sell('$0.001'),
        'GET /dear': sell('$0.5'),
        'GET /long': sell('$0.001'),
      },
      server,
    ),
  )
  app.all('*', async (c, next) => {
    await next()
    counts.set(c.req.path, (counts.get(c.req.path) ?? 0) + 1)
  })
  app.get('/report', (c) => c.json({ report: 'sunny', by: c.req.header('user-agent') ?? null }))
  app.on(['POST', 'PUT'], '/report', async (c) => {
    const body = Buffer.from(await c.req.arrayBuffer())
    return c.json({ bytes: body.length, hash: createHash('sha256').update(body).digest('hex') })
  })
  app.get('/slow', async (c) => {
    await pause(1_500)
    return c.json({ report: 'slow' })
  })
  app.get('/dear', (c) => c.json({ report: 'dear' }))
  app.get('/long', (c) => c.body('x'.repeat(1_000_000)))
  return {
    listener: getRequestListener(app.fetch),
    received: () => chain.readBalance('USDC', PAYEE),
    close: () => chain.close(),
  }
}
