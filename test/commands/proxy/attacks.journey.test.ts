/** Strangers at the proxy's port, and origins that answer to do harm: the proxy stays up, and keeps nothing of theirs. */
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sharedGateway } from '../../journeys/gateway.ts'
import { curl, newBuyer, type RunningProxy, startTestProxy } from './scene.ts'

const gateway = sharedGateway()
let proxy: RunningProxy

beforeAll(async () => {
  proxy = await startTestProxy(await newBuyer(gateway), gateway)
}, 120_000)
afterAll(() => proxy?.stop(), 60_000)

const countFiles = () => readdirSync(`/proc/${proxy.process.pid}/fd`).length

/** An origin that sends `answer` when it has read a head, and reads no more. */
async function startEarly(answer: string) {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket)).on('error', () => undefined)
    socket.once('readable', () => {
      socket.read(100)
      socket.write(answer)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/early`,

    close: () => {
      for (const socket of open) socket.destroy()
      server.close()
    },
  }
}

describe('strangers without the token', () => {
  it('end no proxy by resetting what it refuses, and hold no connection of it', async () => {
    const before = countFiles()
    const starts = [
      'CONNECT seller.example:443 HTTP/1.1\r\nHost: seller.example\r\n\r\n',
      // A page's `new WebSocket('ws://127.0.0.1:8402')`.
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    ]
    const strangers = await Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        const stranger = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true })
        stranger.on('error', () => undefined).write(starts[at % 2] ?? '')
        const [answer] = await once(stranger, 'data')
        expect(String(answer)).toContain('407 ')
        if (at % 4 > 1) stranger.resetAndDestroy()
        return stranger
      }),
    )
    await expect.poll(countFiles, { timeout: 20_000 }).toBeLessThanOrEqual(before + 2)
    expect(proxy.process.exitCode).toBeNull()
    for (const stranger of strangers) stranger.destroy()
  })
})

describe('an origin whose answer cannot be passed on', () => {
  it.each(['200 \u0001', '042 X', '402 \u0001'])('ends no proxy with %j', async (status) => {
    const origin = await startEarly(`HTTP/1.1 ${status}\r\nContent-Length: 2\r\n\r\nno`)
    const { out } = await curl(proxy.env, '-i', origin.url)
    expect(out).toMatch(/^HTTP\/1.1 502 Bad Gateway[\s\S]*bursar-problem: origin_unreachable/i)
    expect(proxy.process.exitCode).toBeNull()
    origin.close()
  })
})

describe('origins that answer before they have read', () => {
  it.each(['402 Payment Required', '413 Content Too Large'])(
    'hold no connection after a %s',
    async (status) => {
      const origin = await startEarly(`HTTP/1.1 ${status}\r\nContent-Length: 2\r\n\r\nno`)
      const before = countFiles()
      const body = 'x'.repeat(16 * 1024 * 1024)
      for (let at = 0; at < 6; at += 1) {
        const program = connect(proxy.port, '127.0.0.1').on('error', () => undefined)
        const own = `Proxy-Authorization: Basic ${Buffer.from(`bursar:${proxy.token}`).toString('base64')}`
        program.write(
          `POST ${origin.url} HTTP/1.1\r\nHost: x\r\n${own}\r\nContent-Length: ${body.length}\r\n\r\n`,
        )
        program.write(body)
        const [answer] = await once(program, 'data')
        expect(String(answer)).toContain(status)
        program.destroy()
      }
      await expect.poll(countFiles, { timeout: 20_000 }).toBeLessThanOrEqual(before + 2)
      expect((await curl(proxy.env, '-m', '10', '-i', origin.url)).out).toContain(status)
      origin.close()
    },
  )
})
