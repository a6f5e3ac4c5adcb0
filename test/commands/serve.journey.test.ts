/** `bursar serve` and agents that call it, as child processes. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { bursar } from './bursar.ts'

describe('the program', () => {
  it('has only ASCII characters, because the launcher reads it byte by byte', () => {
    const programs = readdirSync('.build/bin').filter((name) => /^(main|proxy)\.cjs$/.test(name))
    expect(programs).toEqual(['main.cjs', 'proxy.cjs'])
    for (const name of programs) expect(readFileSync(`.build/bin/${name}`, 'utf8')).not.toMatch(/[^\0-\x7f]/)
  })
})

describe('bursar serve', () => {
  it.each([
    ['a wrong value', { PORT: 'eighty', LOG_LEVEL: 'loud' }, [/PORT: /, /LOG_LEVEL: /]],
    [
      'production without anything',
      { MODE: 'production', RATE_FX: 'many', AML_VELOCITY: 'much' },
      [/PUBLIC_ORIGIN: missing/, /SESSION_SECRET: missing/, /RATE_FX must be/, /AML_VELOCITY must be/],
    ],
    ['an unknown limit', { RATE_NOPE: '1/1' }, [/RATE_NOPE is not a rate limit/]],
    ['an invalid limit', { RATE_FX: 'many' }, [/RATE_FX must be count\/seconds/]],
    ['an invalid limit, with a running chain', { RATE_FX: 'many', CHAIN: 'anvil' }, [/RATE_FX must be/]],
    ['an invalid proxy', { TRUSTED_PROXIES: '10.0.0.0/' }, [/TRUSTED_PROXIES: "10\.0\.0\.0\/"/]],
    ['an unreachable database', { DATABASE_URL: 'postgres://127.0.0.1:9/x' }, [/database is unreachable/]],
    ['an unreachable chain', { CHAIN_RPC_URL: 'http://127.0.0.1:9' }, [/127\.0\.0\.1:9/]],
    ['a chain that cannot be started', { CHAIN: 'anvil', ANVIL_BIN: '/nowhere/anvil' }, [/\/nowhere\/anvil/]],
  ])('exits with one clear message for %s', async (_name, env, why) => {
    const { code, out, err } = await bursar(['serve'], env)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^bursar: /)
    expect(err).not.toMatch(/\n\s+at /)
    for (const pattern of why) expect(err).toMatch(pattern)
  })

  it('exits with a remedy when its port is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => taken.once('listening', resolve))
    const { port } = z.object({ port: z.number() }).parse(taken.address())
    const { code, out, err } = await bursar(['serve'], { PORT: String(port) })
    taken.close()
    expect([code, out]).toEqual([1, ''])
    expect(err).toBe(`bursar: Port ${port} on 127.0.0.1 is taken. Set PORT to another one.\n`)
  })

  it('writes no colours without a terminal, nor with NO_COLOR', async () => {
    const gateway = await startGateway({ CHAIN: 'simulated' })
    await gateway.stop()
    expect(gateway.output()).toContain('is up at')
    expect(gateway.output()).not.toContain('\u001b')
  })
})

/** Starts the sandbox in a terminal, asks for two pages, and ends it with Ctrl-C. @returns what the terminal shows. */
async function showInTerminal(level: string): Promise<string> {
  const terminal = spawn('script', ['-qec', `${process.execPath} .build/bin/main.js serve`, '/dev/null'], {
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      DATA_DIR: 'memory',
      CHAIN: 'simulated',
      LOG_LEVEL: level,
      NO_COLOR: '1',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
  })
  const ended = once(terminal, 'close')
  await expect.poll(() => shown, { timeout: 60_000 }).toContain('Stop with Ctrl+C')
  const origin = /is up at (\S+)/.exec(shown)?.[1] ?? ''
  for (const path of ['/healthz', '/api/rails', '/nowhere']) await fetch(`${origin}${path}`)
  terminal.stdin.write('\u0003')
  await ended
  return shown
}

describe('the terminal of a newcomer', () => {
  it('shows the banner without a line for each request, unless they are asked for', async () => {
    const [plain, debug] = await Promise.all([showInTerminal('info'), showInTerminal('debug')])
    expect(plain).toContain('draining')
    expect(plain).not.toContain('/api/rails')
    expect(debug).toContain('/api/rails')
  })
})

describe('an agent on the command line', () => {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-agent-'))
  const key = join(directory, 'agent.json')
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated' })
    const { out } = await bursar(['agent', 'new', '--name', 'Bot', '--out', key])
    const { publicKey } = z.object({ publicKey: z.looseObject({ x: z.string() }) }).parse(JSON.parse(out))
    const guest = await fetch(`${gateway.origin}/api/auth/guest`, { method: 'POST' })
    const { sessionToken } = z.object({ sessionToken: z.string() }).parse(await guest.json())
    const registered = await fetch(`${gateway.origin}/api/agents/keys`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${sessionToken}` },
      body: JSON.stringify({
        name: 'Bot',
        publicKey,
        scopes: ['wallets:read', 'wallets:transfer'],
        policy: {
          perTransaction: { max: '5' },
          dailyBudget: { max: '12' },
          categories: { allow: ['transfer'] },
        },
      }),
    })
    expect(registered.status).toBe(200)
  })
  afterAll(async () => {
    await gateway?.stop()
    rmSync(directory, { recursive: true, force: true })
  })
  const transfer = (amount: string) =>
    JSON.stringify({
      destination: '0x000000000000000000000000000000000000dEaD',
      amount,
      signature: 'sandbox',
    })

  it('prints headers that the gateway accepts, once', async () => {
    const url = `${gateway.origin}/api/agents/self`
    const { code, out } = await bursar(['agent', 'sign', '--key', key, 'get', url])
    expect(code).toBe(0)
    const headers = Object.fromEntries(
      out
        .trim()
        .split('\n')
        .map((line): [string, string] => [
          line.slice(0, line.indexOf(':')),
          line.slice(line.indexOf(':') + 2),
        ]),
    )
    const response = await fetch(url, { headers })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ principal: 'key', name: 'Bot' })
    expect((await fetch(url, { headers })).status).toBe(401)
  })

  it('pays, gets the same answer for the same idempotency key, and exits with code 1 on a refusal', async () => {
    const call = (
      amount: string,
      idempotencyKey: string,
      target = `${gateway.origin}/api/wallets/transfer`,
    ) =>
      bursar([
        'agent',
        'call',
        '--key',
        key,
        'POST',
        target,
        '--url',
        gateway.origin,
        '--idempotency-key',
        idempotencyKey,
        '--data',
        transfer(amount),
      ])
    const paid = await call('5', 'invoice-17')
    expect([paid.code, paid.err]).toEqual([0, ''])
    expect(JSON.parse(paid.out)).toMatchObject({ status: 'confirmed', amount: '5' })
    expect(await call('5', 'invoice-17', '/api/wallets/transfer')).toEqual(paid)
    const denied = await call('6', 'invoice-18')
    expect(denied.code).toBe(1)
    expect(JSON.parse(denied.out)).toMatchObject({
      code: 'policy_denied',
      violations: [{ rule: 'per_transaction' }],
    })
  })
})
