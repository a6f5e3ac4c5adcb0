/** What passes through `bursar proxy` unread: streams, sockets, other protocols, and what must not pass. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sharedGateway } from '../../journeys/gateway.ts'
import {
  curl,
  get,
  newBuyer,
  openSecure,
  openTunnel,
  type ProxyAgent,
  type RunningProxy,
  startTestProxy,
} from './scene.ts'
import { BIG_BYTES, makeCertificates, startOrigins, type TestOrigins } from './sellers.ts'

const certificates = makeCertificates()
const gateway = sharedGateway()
let origins: TestOrigins
let buyer: ProxyAgent
let proxy: RunningProxy

beforeAll(async () => {
  origins = await startOrigins(certificates, null)
  buyer = await newBuyer(gateway)
  proxy = await startTestProxy(buyer, gateway, '--ca', certificates.ca)
}, 120_000)
afterAll(async () => {
  await proxy?.stop()
  await origins?.close()
}, 60_000)

const readMemory = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${proxy.process.pid}/status`, 'utf8'))?.[1]) * 1024
const count = async (answer: IncomingMessage) => {
  let bytes = 0
  for await (const chunk of answer) bytes += chunk.length
  return bytes
}

describe('free traffic', () => {
  it('passes over HTTP and HTTPS, with all fields of the program', async () => {
    for (const origin of [origins.http, origins.https]) {
      const { out } = await curl(
        proxy.env,
        '-H',
        'X-Own: 1',
        '-H',
        'x-own: 2',
        '-d',
        'hello',
        `${origin}/echo`,
      )
      const seen = JSON.parse(out)
      expect(seen).toMatchObject({ bytes: 5, headers: { host: new URL(origin).host, 'x-own': '1, 2' } })
      expect(out).not.toMatch(/proxy-|bursar/i)
      expect(seen.rawHeaders.filter((name: string) => name.toLowerCase() === 'host')).toHaveLength(1)
    }
  })

  it('passes bodies of any length, chunked or announced', async () => {
    const body = randomBytes(9_000_000)
    const hash = createHash('sha256').update(body).digest('hex')
    const file = join(buyer.home, 'body')
    writeFileSync(file, body)
    for (const more of [[], ['-H', 'transfer-encoding: chunked', '-H', 'expect:']]) {
      const { out } = await curl(proxy.env, '--data-binary', `@${file}`, ...more, `${origins.https}/echo`)
      expect(JSON.parse(out)).toMatchObject({ bytes: body.length, hash })
    }
  })

  it.each(['http', 'https'] as const)('streams 50 MB over %s without keeping them', async (scheme) => {
    const before = readMemory()
    expect(await count(await get(proxy, `${origins[scheme]}/big`))).toBe(BIG_BYTES)
    expect(readMemory() - before).toBeLessThan(40_000_000)
  })

  it.each(['http', 'https'] as const)('lets a slow reader hold the origin back over %s', async (scheme) => {
    const answer = await get(proxy, `${origins[scheme]}/big?parts=400`)
    await pause(1_000)
    // What the buffers of three connections hold.
    const held = origins.sent()
    expect(held).toBeLessThan(100_000_000)
    await pause(500)
    expect(origins.sent()).toBe(held)
    answer.destroy()
  })

  it('passes each event of a stream at once', async () => {
    const late: number[] = []
    for await (const chunk of await get(proxy, `${origins.https}/events`))
      for (const [, at] of String(chunk).matchAll(/data: (\d+)/g)) late.push(Date.now() - Number(at))
    expect(late).toHaveLength(5)
    // Far below the 60 ms between events, but for a machine that is busy with others.
    expect(late.toSorted((one, other) => one - other)[2]).toBeLessThan(60)
  })

  it('passes WebSockets over HTTP and within a tunnel', async () => {
    const plain = connect(proxy.port, '127.0.0.1')
    const { host } = new URL(origins.http)
    const authorization = `Proxy-Authorization: Basic ${Buffer.from(`bursar:${proxy.token}`).toString('base64')}`
    const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\nHost: ${host}\r\n`
    plain.write(`GET http://${host}/ws HTTP/1.1\r\n${upgrade}${authorization}\r\n\r\n`)
    const secure = await openSecure(proxy, new URL(origins.https).host, proxy.env.NODE_EXTRA_CA_CERTS ?? '')
    secure.write(`GET /ws HTTP/1.1\r\n${upgrade}\r\n`)
    for (const socket of [plain, secure]) {
      const [head] = await once(socket, 'data')
      expect(String(head)).toContain('101 Switching Protocols')
      socket.write('over and out')
      expect(String((await once(socket, 'data'))[0])).toBe('over and out')
      socket.destroy()
    }
  })

  it('answers in HTTP/1.1 where a client offers h2c', async () => {
    const { out } = await curl(proxy.env, '-i', '--http2', `${origins.http}/free`)
    expect(out).toMatch(/^HTTP\/1.1 200 OK[\s\S]*free/)
  })

  it('pipes a tunnel whose server speaks first', async () => {
    const server = createServer((socket) => socket.end('SSH-2.0-test')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket = await openTunnel(proxy, `127.0.0.1:${(server.address() as AddressInfo).port}`)
    expect(String((await once(socket, 'data'))[0])).toBe('SSH-2.0-test')
    server.close()
  })

  it('leaves hosts of --pass alone', async () => {
    const other = await startTestProxy(await newBuyer(gateway), gateway, '--pass', 'localhost')
    const { host } = new URL(origins.https)
    // The origin's own certificate arrives.
    const secure = await openSecure(other, host, certificates.ca)
    expect(secure.getPeerX509Certificate()?.issuer).toContain('CN=Origins')
    secure.destroy()
    await other.stop()
  })

  it('does not end an answer that its origin cut off', async () => {
    for (const origin of [origins.http, origins.https])
      expect((await curl(proxy.env, `${origin}/cut`)).code).toBe(18)
  })

  it('decides on a 402 without reading a gigabyte', async () => {
    const before = readMemory()
    const { out } = await curl(
      proxy.env,
      '-i',
      '-r',
      '0-10',
      '--max-filesize',
      '1000',
      '-I',
      `${origins.http}/free`,
    )
    expect(out).toContain('200 OK')
    const answer = await get(proxy, `${origins.http}/gigabyte`)
    expect([answer.statusCode, answer.headers['bursar-problem']]).toEqual([402, 'terms_not_payable'])
    let bytes = 0
    for await (const chunk of answer) {
      bytes += chunk.length
      if (bytes > 200_000_000) break
    }
    expect(readMemory() - before).toBeLessThan(40_000_000)
  })
})

describe('what must not pass', () => {
  it('smuggles no second request to an origin, and asks for one host', async () => {
    const seen: string[] = []
    const origin = createServer((socket) =>
      socket.on('data', (bytes) => {
        seen.push(String(bytes))
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      }),
    ).listen(0, '127.0.0.1')
    await once(origin, 'listening')
    const host = `127.0.0.1:${(origin.address() as AddressInfo).port}`
    const hidden = 'GET /hidden HTTP/1.1\r\nHost: hidden\r\n\r\n'
    const own = `Proxy-Authorization: Basic ${Buffer.from(`bursar:${proxy.token}`).toString('base64')}\r\n`
    const ask = async (start: string, fields: string, body = '') => {
      const socket = connect(proxy.port, '127.0.0.1')
      socket.write(`${start} HTTP/1.1\r\n${own}${fields}\r\n${body}`)
      const [answer] = await once(socket, 'data')
      socket.destroy()
      return String(answer)
    }
    const length = `Host: ${host}\r\nConnection: content-length\r\nContent-Length: ${hidden.length}\r\n`
    expect(await ask(`GET http://${host}/`, length, hidden)).toContain('200 OK')
    expect(seen.splice(0).join('')).toContain(`Content-Length: ${hidden.length}`)
    expect(await ask(`GET http://${host}/`, `Host: ${host}\r\nHost: hidden\r\n`)).toContain('400 ')
    // A WebSocket that its origin refuses: what follows is not for that origin, nor is the token.
    const upgrade = `Host: hidden\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`
    const refused = await ask(
      `GET http://${host}/`,
      upgrade,
      `GET http://other.example/ HTTP/1.1\r\n${own}\r\n`,
    )
    expect(refused).toMatch(/200 OK[\s\S]*connection: close/i)
    expect(await ask(`POST http://${host}/`, `${upgrade}Content-Length: 2\r\n`, 'hi')).toContain('200 OK')
    expect(seen.join('')).not.toMatch(/proxy-authorization|other\.example|Host: hidden/i)
    origin.close()
  })

  it('serves nobody without its token', async () => {
    for (const url of [`${origins.http}/free`, `${origins.https}/free`]) {
      const { out, err } = await curl({}, '-i', '-x', `http://127.0.0.1:${proxy.port}`, url)
      expect(`${out}${err}`).toMatch(/407/)
    }
    const refused = await new Promise<IncomingMessage>((resolve) =>
      httpRequest({
        port: proxy.port,
        path: `${origins.http}/free`,
        headers: { 'proxy-authorization': `Basic ${Buffer.from('bursar:wrong').toString('base64')}` },
      })
        .once('response', resolve)
        .end(),
    )
    expect(refused.statusCode).toBe(407)
    expect(refused.headers['proxy-authenticate']).toMatch(/^Basic /)
    expect(Number(refused.headers['content-length'])).toBe(await count(refused))
  })

  it('listens on loopback only, and keeps its files to its user', () => {
    const listening = readFileSync('/proc/net/tcp', 'utf8')
    const port = proxy.port.toString(16).toUpperCase().padStart(4, '0')
    const addresses = [...listening.matchAll(/^\s*\d+: ([0-9A-F]{8}):([0-9A-F]{4}) \S+ 0A/gm)]
    expect(addresses.filter(([, , at]) => at === port).map(([, address]) => address)).toEqual(['0100007F'])
    const folder = join(buyer.home, '.bursar/proxy')
    const modes = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(
      (name) => statSync(join(folder, name)).mode & 0o077,
    )
    expect([...new Set(modes), statSync(folder).mode & 0o777]).toEqual([0, 0o700])
  })

  it('refuses private targets by name and by address, and itself', async () => {
    const targets = [
      '10.1.2.3',
      '169.254.169.254',
      '[fd00::1]',
      '192.168.0.1',
      '[::ffff:10.0.0.1]',
      '100.64.1.1',
    ]
    for (const host of targets) {
      const { out } = await curl(proxy.env, '-i', `http://${host}/`)
      expect(out).toMatch(/ 403 Forbidden[\s\S]*bursar-problem: private_address/i)
      expect((await curl(proxy.env, `https://${host}/`)).err).toContain('403')
    }
    const own = await curl(proxy.env, '-i', `http://localhost:${proxy.port}/`)
    expect(own.out).toMatch(/ 403 Forbidden[\s\S]*bursar-problem: proxy_loop/i)
    const direct = await curl({}, '-i', '-U', `bursar:${proxy.token}`, `http://127.0.0.1:${proxy.port}/`)
    expect(direct.out).toMatch(/ 407 /)
  })

  it('trusts no origin that its user does not', async () => {
    const stranger = await newBuyer(gateway)
    // Its own clients would not, whatever the proxy's shell says of those of Node.
    for (const env of [{}, { NODE_TLS_REJECT_UNAUTHORIZED: '0' }]) {
      const other = await startTestProxy({ ...stranger, env }, gateway)
      const { out } = await curl(other.env, '-i', `${origins.https}/free`)
      expect(out).toMatch(/ 502 [\s\S]*bursar-problem: origin_untrusted/i)
      await other.stop()
    }
  })

  it('runs once for a key', async () => {
    await expect(startTestProxy(buyer, gateway)).rejects.toThrow(
      'Another bursar proxy of this key is running',
    )
  })
})

describe('bursar proxy env', () => {
  it('prints the variables of common clients, and the same after a restart', async () => {
    const { env } = proxy
    expect(env.http_proxy).toBe(env.HTTP_PROXY)
    expect(env.https_proxy).toBe(env.HTTPS_PROXY)
    expect(env.NO_PROXY).toBe(new URL(gateway).host)
    expect(env.no_proxy).toBe(env.NO_PROXY)
    expect(env.NODE_USE_ENV_PROXY).toBe('1')
    const own = readFileSync(env.NODE_EXTRA_CA_CERTS ?? '', 'utf8')
    for (const name of [
      'SSL_CERT_FILE',
      'REQUESTS_CA_BUNDLE',
      'CURL_CA_BUNDLE',
      'GIT_SSL_CAINFO',
      'npm_config_cafile',
    ]) {
      const bundle = readFileSync(env[name] ?? '', 'utf8')
      expect(bundle).toContain(own.trim())
      expect(bundle.split('BEGIN CERTIFICATE').length).toBeGreaterThan(50)
    }
    await proxy.stop()
    proxy = await startTestProxy(buyer, gateway, '--ca', certificates.ca, '--port', String(proxy.port))
    expect(proxy.env).toEqual(env)
  })
})
