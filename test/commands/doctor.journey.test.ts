/** `bursar doctor` with working parts, broken ones, and none. */
import { createHmac, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createWebServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readConfig } from '../../src/core/config/read-config.ts'
import { createEmptyDatabase, testServerUrl } from '../engines.ts'
import { startGateway } from '../journeys/gateway.ts'
import { bursar, type CommandResult } from './bursar.ts'

const opened: Server[] = []
const directory = mkdtempSync(join(tmpdir(), 'bursar-doctor-'))
afterAll(() => {
  for (const server of opened) server.close()
  rmSync(directory, { recursive: true, force: true })
})

const report = z.object({
  ok: z.boolean(),
  checks: z.array(
    z.object({
      check: z.string(),
      status: z.enum(['ok', 'warn', 'fail']),
      detail: z.string(),
      hint: z.string().nullable(),
    }),
  ),
})

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.push(server)
  // A listening server has an address object with a port.
  return (server.address() as AddressInfo).port
}

const web = async (answer: RequestListener) => `http://127.0.0.1:${await listening(createWebServer(answer))}`

async function closedPort(): Promise<number> {
  const server = createServer()
  const port = await listening(server)
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function examine(env: Record<string, string>) {
  const ended = await bursar(['doctor', '--json'], env)
  const { checks } = report.parse(JSON.parse(ended.out))
  return { ...ended, checks, of: (name: string) => checks.find(({ check }) => check === name) }
}

const production = {
  MODE: 'production',
  PUBLIC_ORIGIN: 'https://bursar.example',
  TRUSTED_PROXIES: '10.0.0.1',
  CHAIN_SPONSOR_KEY: '0x0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
  CHAIN_OWNER_KEY: '0xfedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210',
  X402_PAY_TO: '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f',
  SESSION_SECRET: 'uZ8kq2Xv0cY5nR7tLw3sBd9fGh1jKm4p',
  DATA_KEY: 'Pq4mKj1hGf9dBs3wLt7rNn5yCv0xQk2Z',
  LITHIC_WEBHOOK_SECRET: `whsec_${'c'.repeat(32)}`,
  BRIDGE_WEBHOOK_PUBLIC_KEY: String(
    generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'pem', type: 'spki' }),
  ),
  // Variables that tests set by default and production does not.
  CHAIN: '',
}

describe('bursar doctor', () => {
  it('reports a sandbox without problems, as text and as JSON', async () => {
    const { code, out, err } = await bursar(['doctor'])
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/All checks passed\.\n$/)
    expect(out).toMatch(/^✓ configuration: sandbox mode\n✓ node: Node \d+/)
    // A pipe is not a terminal.
    expect(out).not.toContain('\u001b')
    const { checks, of, ...ended } = await examine({})
    expect([ended.code, ended.err]).toEqual([0, ''])
    expect(checks.every(({ status }) => status === 'ok')).toBe(true)
    for (const name of ['database', 'limits', 'chain', 'disk', 'secrets', 'origin', 'port', 'clock'])
      expect([name, of(name)?.status]).toEqual([name, 'ok'])
  })

  it('reports the same configuration errors as the start', async () => {
    const env = { MODE: 'production', CHAIN: '', PORT: 'x', SMTP_URL: 'http://mail' }
    let startError = ''
    try {
      readConfig(env)
    } catch (error) {
      startError = error instanceof Error ? error.message : ''
    }
    const { code, of } = await examine(env)
    expect(code).toBe(1)
    expect(of('configuration')).toMatchObject({ status: 'fail', detail: startError })
    const [first, ...rest] = startError.split('\n')
    const { out } = await bursar(['doctor'], env)
    expect(out).toContain(`✗ configuration: ${first}\n`)
    for (const line of rest) expect(out).toContain(line)
    expect((await examine({ RATE_NONSENSE: '1/1' })).of('configuration')?.detail).toContain('RATE_NONSENSE')
  })

  it('names every missing part and its remedy, without secrets', async () => {
    const closed = await closedPort()
    const at = `127.0.0.1:${closed}`
    const { code, of, out } = await examine({
      ...production,
      DATABASE_URL: `postgres://bursar:hunter2-secret@${at}/bursar`,
      REDIS_URL: `redis://:hunter2-secret@${at}`,
      CHAIN_RPC_URL: `http://${at}/hunter2-secret`,
      SMTP_URL: `smtp://bursar:hunter2-secret@${at}`,
      SMTP_FROM: 'a@example.com',
      X402_FACILITATOR_URL: `http://${at}/facilitator`,
      RAIL_CONTROLS_URL: `http://${at}/controls`,
      SCREENING_URL: `http://${at}/screening`,
      ALPACA_API_KEY: 'k',
      ALPACA_API_SECRET: 'hunter2-secret',
      ALPACA_FIRM_ACCOUNT_ID: 'a',
      ALPACA_URL: `http://${at}/broker`,
      SWAP_AGGREGATORS: 'lifi',
      LIFI_URL: `http://${at}/lifi`,
    })
    expect(code).toBe(1)
    const broken = [
      'database',
      'limits',
      'chain',
      'mail',
      'facilitator',
      'rail controls',
      'screening',
      'broker',
    ]
    for (const name of [...broken, 'swaps by lifi']) {
      expect([name, of(name)?.status]).toEqual([name, 'fail'])
      expect(of(name)?.hint).toMatch(/\.$/)
    }
    expect(of('identity review')).toMatchObject({ status: 'warn' })
    expect(out).not.toContain('hunter2')
    expect(out).not.toContain(production.SESSION_SECRET)
    expect(out).not.toContain(production.CHAIN_SPONSOR_KEY)
  })

  it('reads from each vendor with its credentials, and says which of them are refused', async () => {
    const firm = 'firm-1'
    const [token, secretKey] = ['token', 'sumsub-secret']
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
    const accepts: Readonly<Record<string, (headers: IncomingHttpHeaders) => boolean>> = {
      [`/broker/v1/trading/accounts/${firm}/account`]: ({ authorization }) =>
        authorization === basic('k:right'),
      '/data/v2/stocks/trades/latest?symbols=VTI': ({ authorization }) => authorization === basic('k:right'),
      '/cards/v1/status': ({ authorization }) => authorization === 'card-key',
      '/bank/v0/customers?limit=1': (headers) => headers['api-key'] === 'bank-key',
      '/resources/applicants/-/levels': (headers) =>
        headers['x-app-token'] === token &&
        headers['x-app-access-sig'] ===
          createHmac('sha256', secretKey)
            .update(`${String(headers['x-app-access-ts'])}GET/resources/applicants/-/levels`)
            .digest('hex'),
      '/facilitator/supported': () => true,
    }
    const url = await web((request, response) => {
      const isAccepted = accepts[request.url ?? '']?.(request.headers) ?? false
      response.writeHead(isAccepted ? 200 : 401).end('{}')
    })
    const vendors = {
      ...{ ALPACA_URL: `${url}/broker`, ALPACA_DATA_URL: `${url}/data`, ALPACA_FIRM_ACCOUNT_ID: firm },
      ...{ ALPACA_API_KEY: 'k', ALPACA_API_SECRET: 'right', X402_FACILITATOR_URL: `${url}/facilitator` },
      ...{ LITHIC_API_URL: `${url}/cards`, LITHIC_API_KEY: 'card-key' },
      ...{ BRIDGE_API_URL: `${url}/bank`, BRIDGE_API_KEY: 'bank-key' },
      ...{ SUMSUB_URL: url, SUMSUB_APP_TOKEN: token, SUMSUB_SECRET_KEY: secretKey },
    }
    const names = ['facilitator', 'identity review', 'broker', 'broker’s data', 'card processor', 'banking']
    const right = await examine(vendors)
    for (const name of names) expect([name, right.of(name)?.status]).toEqual([name, 'ok'])
    const wrong = await examine({
      ...vendors,
      ...{ ALPACA_API_SECRET: 'wrong-secret', LITHIC_API_KEY: 'wrong', BRIDGE_API_KEY: 'wrong' },
      ...{ SUMSUB_SECRET_KEY: 'wrong-secret' },
    })
    expect(wrong.code).toBe(1)
    for (const name of names.slice(1)) {
      expect([name, wrong.of(name)?.status]).toEqual([name, 'fail'])
      expect(wrong.of(name)?.detail).toContain('refuses the configured credentials (401)')
    }
    expect(wrong.out).not.toContain('wrong-secret')
  })

  it('times out on every check', async () => {
    const silent = await listening(createServer(() => {}))
    const startedAt = performance.now()
    const { code, of } = await examine({
      RAIL_CONTROLS_URL: `http://127.0.0.1:${silent}`,
      CHAIN_RPC_URL: `http://127.0.0.1:${silent}`,
      SMTP_URL: `smtp://127.0.0.1:${silent}`,
    })
    expect(performance.now() - startedAt).toBeLessThan(15_000)
    expect(code).toBe(1)
    for (const name of ['chain', 'providers'])
      expect([name, of(name)?.status, of(name)?.detail]).toEqual([name, 'fail', 'no answer in 8 s'])
    expect(of('database')?.status).toBe('ok')
  })

  it('compares the clock with those of other servers', async () => {
    const late = await web((_request, response) => {
      response.setHeader('date', new Date(performance.timeOrigin + performance.now() - 120_000).toUTCString())
      response.end('{}')
    })
    const { code, of } = await examine({ RAIL_CONTROLS_URL: late })
    expect([code, of('rail controls')?.status]).toEqual([1, 'ok'])
    expect(of('clock')).toMatchObject({
      status: 'fail',
      detail: expect.stringMatching(/^1(19|20|21) s ahead of/),
    })
    expect(of('clock')?.hint).toContain('NTP')
    const right = await web((_request, response) => response.end('{}'))
    expect((await examine({ RAIL_CONTROLS_URL: right })).of('clock')).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/^within \d s of 127\.0\.0\.1/),
    })
  })

  it('reads a node’s chain id, its contracts and the sponsor’s balance', async () => {
    const node = async (results: Record<string, unknown>) =>
      web(async (request, response) => {
        const parts: Buffer[] = []
        for await (const part of request) parts.push(part)
        const { method } = z
          .looseObject({ method: z.string() })
          .parse(JSON.parse(Buffer.concat(parts).toString()))
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: results[method] ?? null }))
      })
    const base = {
      eth_chainId: '0x14a34',
      web3_clientVersion: 'Geth/v1.14',
      eth_getBlockByNumber: { number: '0x10', timestamp: '0x68f00000' },
      eth_getCode: '0x6080',
      eth_getBalance: '0xde0b6b3a7640000',
    }
    const look = async (results: Record<string, unknown>) =>
      (await examine({ ...production, MODE: 'sandbox', CHAIN_RPC_URL: await node(results) })).of('chain')
    expect(await look(base)).toMatchObject({ status: 'ok', detail: expect.stringContaining('1.0000 ETH') })
    expect(await look({ ...base, eth_chainId: '0x1' })).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('is chain 1'),
    })
    expect(await look({ ...base, eth_getCode: '0x' })).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('no EntryPoint'),
    })
    expect(await look({ ...base, eth_getBalance: '0x0' })).toMatchObject({ status: 'fail' })
    expect(await look({ ...base, eth_getBalance: '0x1000' })).toMatchObject({ status: 'warn' })
  })

  it('detects guessable secrets, and names that do not fit', async () => {
    const weak = await examine({
      ...production,
      MODE: 'sandbox',
      PUBLIC_ORIGIN: 'http://bursar.example',
      SESSION_SECRET: 'a'.repeat(40),
      TRUSTED_PROXIES: '',
    })
    expect(weak.of('secrets')).toMatchObject({ status: 'fail', detail: 'easily guessed: SESSION_SECRET' })
    expect(weak.of('origin')).toMatchObject({ status: 'warn', detail: expect.stringContaining('not https') })
    const same = await examine({
      ...production,
      MODE: 'sandbox',
      DATA_KEY: production.SESSION_SECRET,
      TRUSTED_PROXIES: '',
    })
    expect(same.of('secrets')).toMatchObject({ status: 'warn', detail: 'used twice: DATA_KEY' })
    expect(same.of('origin')).toMatchObject({
      status: 'warn',
      hint: expect.stringContaining('TRUSTED_PROXIES'),
    })
  })

  it('detects an occupied port, and a directory without write access', async () => {
    const other = await web((_request, response) => response.end('hello'))
    expect((await examine({ PORT: new URL(other).port })).of('port')).toMatchObject({
      status: 'fail',
      hint: 'Set PORT to another one.',
    })
    expect((await examine({ DATA_DIR: '/proc/nothing/here' })).of('disk')?.status).toBe('fail')
    expect((await examine({ DATA_DIR: '.npmrc' })).of('files')).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('.npmrc) is no directory, or the current user cannot read it'),
    })
  })

  it('reads the sanctions list', async () => {
    const path = join(directory, 'sanctions.json')
    const list = { source: 'Treasury', date: '2026-11-01', addresses: [`0x${'1'.repeat(40)}`] }
    writeFileSync(path, JSON.stringify(list))
    expect((await examine({ SANCTIONS_LIST: path })).of('sanctions')).toMatchObject({
      status: 'ok',
      detail: '1 addresses of Treasury, 2026-11-01',
    })
    for (const [content, why] of [
      ['cut', 'JSON value expected'],
      [JSON.stringify({ ...list, addresses: [] }), 'cannot be read: addresses Too small'],
    ] as const) {
      writeFileSync(path, content)
      expect((await examine({ SANCTIONS_LIST: path })).of('sanctions')).toMatchObject({
        status: 'fail',
        detail: expect.stringContaining(why),
      })
    }
    expect((await examine({ SANCTIONS_LIST: join(directory, 'nowhere') })).of('sanctions')).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('ENOENT'),
      hint: expect.stringContaining('screening_unavailable'),
    })
  })

  it('leaves the embedded database of a running gateway alone, and reports that it runs', async () => {
    const port = await closedPort()
    const env = { CHAIN: 'simulated', DATA_DIR: join(directory, 'running'), PORT: String(port) }
    const gateway = await startGateway(env)
    try {
      const { code, of } = await examine(env)
      expect(code).toBe(0)
      expect(of('database')).toMatchObject({
        status: 'ok',
        detail: expect.stringContaining(`process id ${gateway.process.pid} has it open`),
      })
      expect(of('port')).toMatchObject({ status: 'ok', detail: expect.stringContaining('is ready') })
      expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(200)
    } finally {
      await gateway.stop()
    }
    const stopped = await examine(env)
    expect(stopped.of('database')).toMatchObject({
      detail: expect.stringContaining('all migrations and functions are applied'),
    })
    // The directory lock was released.
    await (await startGateway(env)).stop()
  })
})

describe.skipIf(testServerUrl === undefined)('bursar doctor with a PostgreSQL server', () => {
  it('reports missing migrations until they have run', async () => {
    const { url, drop } = await createEmptyDatabase(testServerUrl ?? '')
    const env = { ...production, DATABASE_URL: url, CHAIN_RPC_URL: `http://127.0.0.1:${await closedPort()}` }
    try {
      expect((await examine(env)).of('database')).toMatchObject({
        status: 'fail',
        hint: 'Run "bursar migrate".',
      })
      const migrated: CommandResult = await bursar(['migrate'], env)
      expect(migrated.code).toBe(0)
      const { of } = await examine(env)
      expect(of('database')).toMatchObject({
        status: 'ok',
        detail: expect.stringMatching(/^PostgreSQL \d+ at/),
      })
      expect(of('clock')).toMatchObject({ status: 'ok', detail: expect.stringContaining('the database') })
      expect(of('limits')).toMatchObject({ status: 'ok', detail: 'counted in the database' })
    } finally {
      await drop()
    }
  })
})
