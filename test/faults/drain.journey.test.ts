/**
 * SIGTERM under load: open work is finished or persisted, idle connections are closed, and the process exits by itself
 * within ten seconds, even if a part of it hangs. A second signal exits at once.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterEach, describe, expect, it } from 'vitest'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { expectUnavailable, sendJson } from './ask.ts'
import { startTcpProxy, through } from './tcp-proxy.ts'
import { createClient } from './transfers.ts'

/** Grace period that process supervisors commonly grant before SIGKILL. */
const GRANTED_MS = 10_000
/** Tolerance for a slow machine. */
const SLACK_MS = 1_000

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})
const start = async (env: Record<string, string>) => {
  const gateway = await startGateway({ CHAIN: 'simulated', LOG_LEVEL: 'silent', ...env })
  cleanups.push(() => isRunning(gateway) && gateway.process.kill('SIGKILL'))
  return gateway
}
const isRunning = ({ process }: Gateway) => process.exitCode === null && process.signalCode === null

/** Waits for a gateway to exit. */
async function ending({
  process,
}: Gateway): Promise<{ code: number | null; signal: string | null; ms: number }> {
  const startedAt = performance.now()
  if (process.exitCode === null && process.signalCode === null) await once(process, 'exit')
  return { code: process.exitCode, signal: process.signalCode, ms: performance.now() - startedAt }
}

/** A request whose body is sent later. */
async function slowRequest({ origin }: Gateway): Promise<{ socket: Socket; finish(): Promise<string> }> {
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await once(socket, 'connect')
  const body = JSON.stringify({ page: '/docs', vote: 'up' })
  const head = `POST /api/docs/feedback HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  socket.write(head + body.slice(0, 5))
  return {
    socket,
    finish: async () => {
      let answer = ''
      socket.setEncoding('utf8').on('data', (text: string) => {
        answer += text
      })
      const closed = once(socket, 'close')
      socket.write(body.slice(5))
      await closed
      return answer
    },
  }
}

const anvilBinary = (() => {
  try {
    return findAnvil(process.env.ANVIL_BIN)
  } catch {
    return undefined
  }
})()

describe('a gateway after SIGTERM', () => {
  it.skipIf(anvilBinary === undefined)(
    'finishes requests, ends streams, and leaves a pending settlement to the next process',
    async () => {
      const directory = mkdtempSync(join(tmpdir(), 'bursar-drain-'))
      cleanups.push(() => rmSync(directory, { recursive: true, force: true }))
      const node: AnvilProcess = await spawnAnvil(anvilBinary ?? '', 0, 10_000)
      cleanups.push(() => node.stop())
      const chain = await startTcpProxy(node.port)
      cleanups.push(() => chain.close())
      const env = { DATA_DIR: directory, CHAIN_RPC_URL: `http://127.0.0.1:${chain.port}` }
      const gateway = await start(env)
      const client = await createClient(gateway.origin)
      const mcp = new Client({ name: 'test', version: '1' })
      const transport = new StreamableHTTPClientTransport(new URL('/mcp', gateway.origin), {
        requestInit: { headers: { authorization: `Bearer ${client.key}` } },
        reconnectionOptions: {
          ...{ maxRetries: 0, initialReconnectionDelay: 1, maxReconnectionDelay: 1 },
          reconnectionDelayGrowFactor: 1,
        },
      })
      await mcp.connect(transport as Parameters<Client['connect']>[0])
      cleanups.push(() => mcp.close().catch(() => {}))
      const slow = await slowRequest(gateway)
      let answered = 0
      const busy = (async () => {
        for (;;) {
          await sendJson(`${gateway.origin}/healthz`)
          answered += 1
        }
      })().catch(() => {})
      chain.hold()
      const transfer = client.transfer('2', 'in-flight')
      transfer.catch(() => {})
      await pause(300)

      gateway.process.kill('SIGTERM')
      const end = ending(gateway)
      await pause(500)
      expect(isRunning(gateway)).toBe(true)
      expect(await slow.finish()).toMatch(/^HTTP\/1\.1 200 /)
      await busy
      expect(answered).toBeGreaterThan(0)
      expectUnavailable(await transfer, 'settlement_pending')
      const { code, ms } = await end
      expect(code).toBe(0)
      // It waited for the transfer, not for the stream or for clients that keep sending.
      expect(ms).toBeLessThan(6_000)

      chain.pass()
      const next = await start(env)
      const again = await createClient(next.origin)
      const known = await again.transferUntilFinal('2', 'in-flight')
      const isSent = known.body.status === 'confirmed'
      expect(known.body).toMatchObject(isSent ? {} : { code: 'provider_unavailable' })
      expect(await again.usdc()).toEqual({ amount: isSent ? '998' : '1000', held: '0' })
      expect(await next.stop()).toBe(0)
    },
    60_000,
  )

  it('disconnects a client that does not finish its request', async () => {
    const gateway = await start({})
    const { socket } = await slowRequest(gateway)
    gateway.process.kill('SIGTERM')
    const { code, ms } = await ending(gateway)
    expect(code).toBe(0)
    expect(ms).toBeLessThan(GRANTED_MS + SLACK_MS)
    socket.destroy()
  })

  it.skipIf(testServerUrl === undefined)('does not wait for a hung database', async () => {
    const { url, drop } = await createTestDatabase(testServerUrl ?? '')
    cleanups.push(drop)
    const proxy = await startTcpProxy(Number(new URL(url).port || 5432), new URL(url).hostname)
    cleanups.push(() => proxy.close())
    const gateway = await start({ DATABASE_URL: through(proxy, url) })
    const client = await createClient(gateway.origin)
    proxy.hold()
    const reading = client.get('/api/wallets')
    await pause(200)
    gateway.process.kill('SIGTERM')
    const end = ending(gateway)
    expectUnavailable(await reading)
    const { code, ms } = await end
    expect(code).toBe(0)
    expect(ms).toBeLessThan(GRANTED_MS + SLACK_MS)
  })

  it('exits at once on any second signal', async () => {
    const endsBy = async (second: 'SIGTERM' | 'SIGINT') => {
      const gateway = await start({})
      const { socket } = await slowRequest(gateway)
      gateway.process.kill('SIGTERM')
      await pause(500)
      expect(isRunning(gateway)).toBe(true)
      gateway.process.kill(second)
      const { signal, ms } = await ending(gateway)
      expect(signal).toBe(second)
      expect(ms).toBeLessThan(2_000)
      socket.destroy()
    }
    await Promise.all([endsBy('SIGTERM'), endsBy('SIGINT')])
  })
})
