/** Fetches of URLs that strangers choose, over real connections; 127.0.0.2 plays a public address. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createPublicFetch,
  fetchPublic,
  isPublicFetchError,
  type PublicFetch,
  type PublicRequest,
} from '../../src/providers/public-fetch.ts'
import { addressIsPublic } from '../../src/providers/public-url.ts'
import { issueCertificate } from './certificate.ts'
import { startNameServer } from './name-server.ts'

const servers: { close(): unknown; closeAllConnections?(): void }[] = []
const certificate = issueCertificate('seller.test')
let nameServers: string[]
let fetchSeller: PublicFetch

beforeAll(async () => {
  const nameServer = await startNameServer({
    'seller.test': ['127.0.0.2'],
    'other.test': ['127.0.0.2'],
    'silent-first.test': ['127.0.0.3', '127.0.0.2'],
    'nowhere-up.test': ['127.0.0.3', '127.0.0.4'],
    'private.test': ['10.0.0.5'],
    'metadata.test': ['169.254.169.254'],
    'mixed.test': ['127.0.0.2', '127.0.0.1'],
    'six.test': ['64:ff9b::7f00:1'],
    'mixed-six.test': ['127.0.0.2', '::1'],
    'silent.test': 'silent',
  })
  nameServers = nameServer.servers
  servers.push(nameServer)
  fetchSeller = createPublicFetch({
    servers: nameServers,
    ca: certificate.cert,
    permits: (address) => /^127\.0\.0\.[234]$/.test(address) || addressIsPublic(address),
  })
})
afterAll(() => {
  for (const server of servers) {
    server.close()
    server.closeAllConnections?.()
  }
})

async function readPort(server: Server): Promise<number> {
  servers.push(server)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
/** A seller on loopback. @returns its URL. */
const serve = async (listener: RequestListener) =>
  `http://127.0.0.1:${await readPort(createServer(listener).listen(0, '127.0.0.1'))}/`
/** A server that speaks no HTTP of its own accord. @returns its URL. */
const serveRaw = async (listener: (socket: Socket) => void) => {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    listener(socket)
  })
  return `http://127.0.0.1:${await readPort(server.listen(0, '127.0.0.1'))}/`
}
/** The same, with TLS and the certificate of seller.test, at the address that plays a public one. */
const serveSecurely = (listener: RequestListener, port = 0, host = '127.0.0.2') =>
  readPort(createSecureServer(certificate, listener).listen(port, host))

const request = (url: string, changes: Partial<PublicRequest> = {}): PublicRequest => ({
  url,
  method: 'GET',
  headers: {},
  maxBytes: 1_000,
  timeoutMs: 5_000,
  loopback: true,
  ...changes,
})
const toText = ({ body }: { body: Uint8Array }) => Buffer.from(body).toString()
const readProblem = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!isPublicFetchError(error)) throw new Error('no PublicFetchError', { cause: error })
  return { problem: error.problem, sent: error.sent }
}

describe('an answer', () => {
  it('has status, every header and the body', async () => {
    const url = await serve((incoming, outgoing) => {
      outgoing.writeHead(402, { 'X-Price': '1', 'Set-Cookie': ['a=1', 'b=2'] })
      outgoing.end(`${incoming.method} ${incoming.url} ${incoming.headers['x-mine']}`)
    })
    const answer = await fetchPublic(request(`${url}report?b=2&a=1`, { headers: { 'X-Mine': 'yes' } }))
    expect(answer).toMatchObject({ status: 402, truncated: false, bytes: 23 })
    expect(toText(answer)).toBe('GET /report?b=2&a=1 yes')
    expect(answer.headers).toContainEqual(['x-price', '1'])
    expect(answer.headers.filter(([name]) => name === 'set-cookie')).toHaveLength(2)
    // Cookies are not kept.
    expect(toText(await fetchPublic(request(url, { headers: {} })))).toBe('GET / undefined')
  })

  it('an answer to a body counts its bytes', async () => {
    const url = await serve((incoming, outgoing) => {
      incoming.pipe(outgoing.writeHead(200, { 'x-length': incoming.headers['content-length'] ?? 'none' }))
    })
    for (const body of ['größe', new TextEncoder().encode('größe')]) {
      const answer = await fetchPublic(request(url, { method: 'POST', body }))
      expect(toText(answer)).toBe('größe')
      expect(answer.headers).toContainEqual(['x-length', '7'])
    }
  })

  it('never asks for compression', async () => {
    const url = await serve((incoming, outgoing) => outgoing.end(incoming.headers['accept-encoding']))
    expect(toText(await fetchPublic(request(url, { headers: { 'Accept-Encoding': 'gzip' } })))).toBe(
      'identity',
    )
  })

  it('may be a redirect, which is not followed', async () => {
    let calls = 0
    const url = await serve((_incoming, outgoing) => {
      calls += 1
      outgoing.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data' }).end()
    })
    const answer = await fetchPublic(request(url))
    expect(answer.status).toBe(302)
    expect(answer.headers).toContainEqual(['location', 'http://169.254.169.254/latest/meta-data'])
    expect(calls).toBe(1)
  })

  it('is cut off at the limit, and the rest is not read', async () => {
    let isClosed = (_closed: unknown) => {}
    const closed = new Promise((resolve) => {
      isClosed = resolve
    })
    const url = await serve((_incoming, outgoing) => {
      outgoing.on('close', () => isClosed(true))
      const chunk = Buffer.alloc(65_536, 'x')
      const write = () => {
        while (!outgoing.destroyed && outgoing.write(chunk));
      }
      outgoing.on('drain', write)
      write()
    })
    const answer = await fetchPublic(request(url))
    expect(answer).toMatchObject({ status: 200, truncated: true, bytes: 1_000 })
    expect(answer.body).toHaveLength(1_000)
    expect(await closed).toBe(true)
  })

  it('an answer of exactly the limit is whole', async () => {
    const url = await serve((_incoming, outgoing) => outgoing.end('x'.repeat(1_000)))
    expect(await fetchPublic(request(url))).toMatchObject({ truncated: false, bytes: 1_000 })
  })

  it('an answer without a length ends with the connection', async () => {
    const url = await serveRaw((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nto the end'))
    expect(toText(await fetchPublic(request(url)))).toBe('to the end')
  })

  it('comes over one connection while it is kept, and over a new one when it was closed', async () => {
    let connections = 0
    const server = createServer((incoming, outgoing) => {
      if (incoming.url === '/last') outgoing.setHeader('connection', 'close')
      outgoing.end('ok')
    }).on('connection', () => {
      connections += 1
    })
    const url = `http://127.0.0.1:${await readPort(server.listen(0, '127.0.0.1'))}/`
    for (const path of ['one', 'two', 'last', 'three']) await fetchPublic(request(`${url}${path}`))
    expect(connections).toBe(2)
  })
})

describe('a deadline', () => {
  it('leaves an answer more time than an idle connection is kept', async () => {
    const url = await serve((_incoming, outgoing) => setTimeout(() => outgoing.end('late'), 300))
    expect(toText(await createPublicFetch({ idleMs: 50 })(request(url)))).toBe('late')
  })

  it('covers a server that says nothing', async () => {
    const url = await serve(() => {})
    expect(await readProblem(fetchPublic(request(url, { timeoutMs: 200 })))).toEqual({
      problem: 'timeout',
      sent: true,
    })
  })

  it('covers a body that trickles', async () => {
    let isOpen = true
    const url = await serve((_incoming, outgoing) => {
      const timer = setInterval(() => outgoing.write('x'), 20)
      outgoing.on('close', () => {
        isOpen = false
        clearInterval(timer)
      })
    })
    expect(await readProblem(fetchPublic(request(url, { timeoutMs: 300 })))).toEqual({
      problem: 'timeout',
      sent: true,
    })
    await expect.poll(() => isOpen).toBe(false)
  })

  it('covers a name server that says nothing', async () => {
    expect(await readProblem(fetchSeller(request('https://silent.test/', { timeoutMs: 200 })))).toEqual({
      problem: 'timeout',
      sent: false,
    })
    const startedAt = performance.now()
    const impatient = createPublicFetch({ servers: nameServers, timeoutMs: 300 })
    expect(await readProblem(impatient(request('https://silent.test/', { timeoutMs: 30_000 })))).toEqual({
      problem: 'unreachable',
      sent: false,
    })
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  it('covers a handshake that stands still, and nothing was sent', async () => {
    const received: Buffer[] = []
    const server = createTcpServer((socket) =>
      socket.on('error', () => {}).on('data', (data) => received.push(data)),
    )
    const port = await readPort(server.listen(0, '127.0.0.2'))
    const secret = request(`https://seller.test:${port}/`, {
      timeoutMs: 300,
      headers: { 'x-payment': 'secret' },
    })
    expect(await readProblem(fetchSeller(secret))).toEqual({ problem: 'timeout', sent: false })
    expect(Buffer.concat(received).toString('latin1')).not.toContain('secret')
  })
})

describe('a broken connection', () => {
  it('was not sent if nobody listens', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1')
    const port = await readPort(server)
    server.close()
    expect(await readProblem(fetchPublic(request(`http://127.0.0.1:${port}/`)))).toEqual({
      problem: 'unreachable',
      sent: false,
    })
  })

  it.each<[string, (socket: Socket) => void]>([
    ['before the answer', (socket) => socket.once('data', () => socket.destroy())],
    ['by a reset', (socket) => socket.once('data', () => socket.resetAndDestroy())],
    [
      'within the body',
      (socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')),
    ],
    ['by other than HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n')],
    [
      'by a switch of protocols',
      (socket) =>
        socket.once('data', () =>
          socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
        ),
    ],
    [
      'by endless headers',
      (socket) => socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n`)),
    ],
  ])('%s may have been sent', async (_when, listener) => {
    expect(await readProblem(fetchPublic(request(await serveRaw(listener))))).toEqual({
      problem: 'protocol',
      sent: true,
    })
  })

  it('was not sent if a header cannot be written', async () => {
    const url = await serve((_incoming, outgoing) => outgoing.end())
    expect(await readProblem(fetchPublic(request(url, { headers: { 'x-a': 'a\r\nx-b: b' } })))).toEqual({
      problem: 'protocol',
      sent: false,
    })
  })
})

describe('names', () => {
  it('are reached at the judged address, with the certificate of the name', async () => {
    const port = await serveSecurely((incoming, outgoing) => outgoing.end(`for ${incoming.headers.host}`))
    const answer = await fetchSeller(request(`https://seller.test:${port}/`, { loopback: false }))
    expect(toText(answer)).toBe(`for seller.test:${port}`)
    // The same address with a certificate for another name: nothing is sent.
    expect(await readProblem(fetchSeller(request(`https://other.test:${port}/`)))).toEqual({
      problem: 'unreachable',
      sent: false,
    })
    // The same name, from a caller that does not trust the certificate.
    const strict = createPublicFetch({ servers: nameServers, permits: () => true })
    expect(await readProblem(strict(request(`https://seller.test:${port}/`)))).toEqual({
      problem: 'unreachable',
      sent: false,
    })
  })

  it('names with several addresses are reached at the next one while nothing was sent', async () => {
    const own = issueCertificate('silent-first.test')
    const port = await readPort(
      createSecureServer(own, (_incoming, outgoing) => outgoing.end('second')).listen(0, '127.0.0.2'),
    )
    const fetchSecond = createPublicFetch({
      servers: nameServers,
      ca: own.cert,
      permits: (address) => /^127\.0\.0\.[23]$/.test(address),
    })
    expect(toText(await fetchSecond(request(`https://silent-first.test:${port}/`)))).toBe('second')
    expect(await readProblem(fetchSeller(request(`https://nowhere-up.test:${port}/`)))).toEqual({
      problem: 'unreachable',
      sent: false,
    })
  })

  it.each(['private.test', 'metadata.test', 'mixed.test', 'six.test', 'mixed-six.test'])(
    '%s is refused for its addresses',
    async (name) => {
      expect(await readProblem(fetchSeller(request(`https://${name}/`)))).toEqual({
        problem: 'refused-url',
        sent: false,
      })
    },
  )

  it('names that are unknown are unreachable', async () => {
    expect(await readProblem(fetchSeller(request('https://nowhere.test/')))).toEqual({
      problem: 'unreachable',
      sent: false,
    })
  })

  it('names that are rebound after they were judged are reached where they were judged', async () => {
    const port = await serveSecurely((_incoming, outgoing) => outgoing.end('judged'))
    await serveSecurely((_incoming, outgoing) => outgoing.end('rebound'), port, '127.0.0.1')
    const rebinding = await startNameServer({
      'seller.test': (asked) => [asked === 1 ? '127.0.0.2' : '127.0.0.1'],
    })
    servers.push(rebinding)
    const fetchRebound = createPublicFetch({
      servers: rebinding.servers,
      ca: certificate.cert,
      permits: (address) => address === '127.0.0.2',
    })
    const rebound = request(`https://seller.test:${port}/`)
    expect(toText(await fetchRebound(rebound))).toBe('judged')
    expect(await readProblem(fetchRebound(rebound))).toEqual({ problem: 'refused-url', sent: false })
  })

  it('names of other users of a connection share nothing', async () => {
    const port = await serveSecurely((_incoming, outgoing) => outgoing.end('ok'))
    await fetchSeller(request(`https://seller.test:${port}/`))
    // The kept connection belongs to seller.test; other.test must not ride on it.
    expect(await readProblem(fetchSeller(request(`https://other.test:${port}/`)))).toMatchObject({
      sent: false,
    })
  })
})

describe('a URL that is refused', () => {
  it.each([
    'http://seller.test/',
    'https://10.0.0.1/',
    'https://2130706433/',
    'http://10.0.0.1/',
    'nonsense',
  ])('%s is not fetched', async (url) => {
    expect(await readProblem(fetchSeller(request(url)))).toEqual({ problem: 'refused-url', sent: false })
  })

  it('includes loopback unless it is permitted', async () => {
    const url = await serve((_incoming, outgoing) => outgoing.end())
    expect(await readProblem(fetchPublic(request(url, { loopback: false })))).toEqual({
      problem: 'refused-url',
      sent: false,
    })
    expect(await fetchPublic(request(url.replace('127.0.0.1', 'localhost')))).toMatchObject({ status: 200 })
  })
})
