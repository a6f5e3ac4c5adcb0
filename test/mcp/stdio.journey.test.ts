/** `bursar mcp`: the stdio server of a local agent, driven by the SDK's own client. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client as Client2026 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2026 } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { freePort } from '../free-port.ts'
import { startGateway } from '../journeys/gateway.ts'
import { newGuest, type Person } from '../journeys/people.ts'
import { openScene, parseProblem, type Scene, stdioTransport } from './scene.ts'
import { walletTools } from './wallet-tools.ts'

let scene: Scene
let client: Client
beforeAll(async () => {
  scene = await openScene()
  client = new Client({ name: 'test', version: '1' })
  await client.connect(stdioTransport(scene.gateway.origin, scene.keyFile))
})
afterAll(async () => {
  await client?.close()
  await scene?.close()
})

const buildTransfer = (amount: unknown, key: string) => ({
  name: 'wallets_transfer',
  arguments: {
    destination: '0x000000000000000000000000000000000000dEaD',
    amount,
    signature: 'sandbox',
    idempotency_key: key,
  },
})
const transfer = (amount: unknown, key: string) => client.callTool(buildTransfer(amount, key))

describe('bursar mcp', () => {
  it('introduces itself and its instructions', () => {
    expect(client.getServerVersion()).toMatchObject({ name: 'bursar', version: '0.1.0' })
    expect(client.getInstructions()).toContain('idempotency_key')
  })

  it('lists only the tools that the agent’s scopes allow', async () => {
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name).sort()).toEqual(walletTools)
  })

  it('pays, pays once for an idempotency key, and is denied over the limit', async () => {
    const paid = await transfer('5', 'first')
    expect(paid.structuredContent).toMatchObject({ status: 'confirmed', amount: '5' })
    expect((await transfer('5', 'first')).structuredContent).toEqual({
      ...z.looseObject({}).parse(paid.structuredContent),
      replayed: true,
    })
    expect(parseProblem(await transfer('6', 'second'))).toMatchObject({
      code: 'policy_denied',
      violations: [{ rule: 'per_transaction' }],
    })
    const { structuredContent } = await client.callTool({ name: 'context', arguments: {} })
    expect(structuredContent).toMatchObject({ usage: { used: '5', remaining: '7', count: 1 } })
  })

  it('answers concurrent calls each with its own result', async () => {
    const calls = await Promise.all(
      Array.from({ length: 20 }, () => client.callTool({ name: 'context', arguments: {} })),
    )
    for (const { structuredContent } of calls)
      expect(structuredContent).toMatchObject({ principal: 'key', name: 'Bot' })
  })

  it('rejects a tool beyond the scopes as forbidden', async () => {
    const call = client.callTool({
      name: 'x402_fx',
      arguments: { from: 'USD', to: 'EUR', amount: '1', idempotency_key: 'x' },
    })
    expect(parseProblem(await call)).toMatchObject({ code: 'insufficient_scope', scopes: ['fx:pay'] })
  })

  /** Sends lines as a client writes them. @returns the lines of the answers. */
  const answersTo = async (lines: string): Promise<string> => {
    const child = spawn(
      process.execPath,
      ['.build/bin/main.js', 'mcp', '--url', scene.gateway.origin, '--key', scene.keyFile],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    )
    let out = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
    })
    child.stdin.end(lines)
    await once(child, 'close')
    return out
  }

  it('forwards numbers exactly as written', async () => {
    const call = (id: number, amount: string) =>
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"wallets_transfer","arguments":{"destination":"0x000000000000000000000000000000000000dEaD","amount":${amount},"signature":"sandbox","idempotency_key":"raw-${id}"}}}\n`
    const out = await answersTo(call(1, '1e0') + call(2, '0.10000000000000000001'))
    const answers = out.trim().split('\n')
    expect(answers).toHaveLength(2)
    // An exponent is exact; seventeen fraction digits exceed the precision of a double.
    const [exact, excessive] = [1, 2].map((id) => answers.find((answer) => answer.includes(`"id":${id}`)))
    expect(exact).toContain('confirmed')
    expect(excessive).toContain('invalid_request')
  })

  it('exits with its client, with exit code 0', async () => {
    const child = spawn(
      process.execPath,
      ['.build/bin/main.js', 'mcp', '--url', scene.gateway.origin, '--key', scene.keyFile],
      { stdio: ['pipe', 'pipe', 'pipe'] },
    )
    child.stdin.end()
    expect(await once(child, 'close')).toEqual([0, null])
  })

  it('exits without a trace when its client reads no more', async () => {
    const { origin } = scene.gateway
    const args = ['.build/bin/main.js', 'mcp', '--url', origin, '--key', scene.keyFile]
    const child = spawn(process.execPath, args, { stdio: 'pipe' })
    let err = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text
    })
    child.stdout.destroy()
    const exited = once(child, 'exit')
    child.stdin.write('not JSON\nnot JSON\n')
    expect(await exited).toEqual([0, null])
    expect(err).toBe('')
  })

  it('answers malformed JSON-RPC with an error, and continues', async () => {
    const out = await answersTo('nonsense\n\n{"jsonrpc":"2.0","id":7,"method":"tools/list"}\n')
    const answers = out
      .trim()
      .split('\n')
      .map((line) => z.looseObject({ id: z.unknown() }).parse(JSON.parse(line)))
    expect(answers).toContainEqual(expect.objectContaining({ id: 7, result: expect.anything() }))
    expect(answers).toContainEqual(
      expect.objectContaining({ id: null, error: expect.objectContaining({ code: -32700 }) }),
    )
  })
})

describe('bursar mcp for a client of 2026', () => {
  const open = async (capabilities: object = {}) => {
    const modern = new Client2026(
      { name: 'test', version: '1' },
      { capabilities, versionNegotiation: { mode: 'auto' } },
    )
    await modern.connect(
      new Stdio2026({
        command: process.execPath,
        args: ['.build/bin/main.js', 'mcp', '--url', scene.gateway.origin, '--key', scene.keyFile],
        stderr: 'pipe',
      }),
    )
    return modern
  }

  it('serves tools, resources, prompts, and errors in its protocol', async () => {
    const modern = await open()
    expect(modern.getNegotiatedProtocolVersion()).toBe('2026-07-28')
    expect((await modern.listTools()).tools.map(({ name }) => name)).toContain('wallets_get')
    const { structuredContent } = await modern.callTool({ name: 'context', arguments: {} })
    expect(structuredContent).toMatchObject({ principal: 'key', name: 'Bot' })
    expect((await modern.readResource({ uri: 'bursar://limits' })).contents).toHaveLength(1)
    const prompt = { name: 'rebalance_cash', arguments: { target: '70 % USDC' } }
    expect((await modern.getPrompt(prompt)).messages).toHaveLength(1)
    // No header can carry these names unencoded.
    for (const name of ['né', '=?base64?bmU=?=', ' '])
      await expect(modern.getPrompt({ name })).rejects.toMatchObject({ code: -32602 })
    await modern.close()
  })
})

describe('bursar mcp without its gateway', () => {
  const connect = (url: string, keyFile: string) =>
    new Client({ name: 'test', version: '1' }).connect(stdioTransport(url, keyFile))

  it('names the gateway that cannot be reached', async () => {
    await expect(connect('http://127.0.0.1:9', scene.keyFile)).rejects.toMatchObject({
      code: -32000,
      message: expect.stringMatching(/The gateway at http:\/\/127\.0\.0\.1:9 is unreachable: \S+/),
    })
  })

  it('accepts every loopback name of its gateway', async () => {
    const { origin } = scene.gateway
    await expect(connect(origin.replace('127.0.0.1', 'localhost'), scene.keyFile)).resolves.toBeUndefined()
  })

  it('reports that its key is unknown', async () => {
    await expect(connect(scene.gateway.origin, scene.unregisteredKeyFile)).rejects.toMatchObject({
      code: -32000,
      message: expect.stringMatching(/returned 401: .*"unknown_key"/),
    })
  })
})

describe('bursar mcp at startup', () => {
  it('loads only what signs a request, and so starts quickly', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'bursar-loaded-'))
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', 'src/main.ts', 'mcp', '--url', scene.gateway.origin, '--key', scene.keyFile],
      { stdio: ['pipe', 'ignore', 'inherit'], env: { ...process.env, NODE_V8_COVERAGE: directory } },
    )
    child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    await once(child, 'close')
    // The loader's thread writes a report of its own.
    const listLoaded = (report: string) =>
      z
        .looseObject({ result: z.array(z.looseObject({ url: z.string() })) })
        .parse(JSON.parse(readFileSync(join(directory, report), 'utf8')))
        .result.map(({ url }) => url)
    const loaded = readdirSync(directory)
      .map(listLoaded)
      .filter((urls) => urls.some((url) => url.endsWith('/src/main.ts')))
      .flat()
      .filter((url) => url.startsWith('file:') && !/node_modules\/(tsx|esbuild|@esbuild)\//.test(url))
    rmSync(directory, { recursive: true, force: true })
    expect(loaded.some((url) => url.endsWith('/mcp/stdio.ts'))).toBe(true)
    const packages = loaded.flatMap((url) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [])
    expect([...new Set(packages)].sort()).toEqual(['http-message-sig', 'structured-headers'])
    expect(loaded.length).toBeLessThan(40)
  })
})

/** Registers a key that asks its owner above 2 USD. */
const registerAsking = (owner: Person, name: string, publicKey: unknown) =>
  owner.send('POST', '/api/agents/keys', {
    name,
    publicKey,
    scopes: ['wallets:read', 'wallets:transfer'],
    policy: {
      perTransaction: { max: '5' },
      dailyBudget: { max: '20' },
      categories: { allow: ['transfer'] },
      approval: { above: '2', ttlSec: 600 },
    },
  })

describe('bursar mcp for a client that can open pages', () => {
  it('forwards the elicitation to the client, its answer back, and the result of the call', async () => {
    const owner = await newGuest(scene.gateway.origin)
    const { path, publicKey } = await scene.newKey('asking')
    await registerAsking(owner, 'Asking', publicKey)
    const elicitingClient = new Client(
      { name: 'test', version: '1' },
      { capabilities: { elicitation: { url: {} } } },
    )
    elicitingClient.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
      const { url } = z.looseObject({ url: z.string() }).parse(params)
      await owner.send('POST', `/api${new URL(url).pathname}`, { decision: 'approve' })
      return { action: 'accept' as const }
    })
    await elicitingClient.connect(stdioTransport(scene.gateway.origin, path))
    const paid = await elicitingClient.callTool({
      name: 'wallets_transfer',
      arguments: {
        destination: '0x000000000000000000000000000000000000dEaD',
        amount: '3',
        signature: 'sandbox',
        idempotency_key: 'asked',
      },
    })
    expect(paid.structuredContent).toMatchObject({ status: 'confirmed', amount: '3' })
    await elicitingClient.close()
  })
})

describe('the notifications of bursar mcp', () => {
  it('announce changed tools and the progress of a waiting call', async () => {
    const owner = await newGuest(scene.gateway.origin)
    const { path, publicKey } = await scene.newKey('listening')
    const { body } = await registerAsking(owner, 'Listening', publicKey)
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: { url: {} } } })
    let changes = 0
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      changes += 1
    })
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept' as const }))
    await client.connect(stdioTransport(scene.gateway.origin, path))
    const scopes = ['wallets:read', 'wallets:transfer', 'cards:read']
    // The stream is opened beside the first calls.
    await client.listTools()
    await owner.send('PATCH', `/api/agents/keys/${body.agentId}`, { scopes })
    await expect.poll(() => changes, { timeout: 15_000 }).toBe(1)
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('cards_list')

    const leaving = new AbortController()
    await new Promise<void>((resolve, reject) => {
      client
        .callTool(buildTransfer('3', 'progress'), undefined, {
          signal: leaving.signal,
          onprogress: () => resolve(),
        })
        .catch(reject)
    })
    leaving.abort()
    await client.close()
  }, 40_000)
  it('announce changed tools once a gateway that was away is back', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'bursar-away-'))
    const env = { CHAIN: 'simulated', DATA_DIR: directory, PORT: String(await freePort()) }
    let gateway = await startGateway(env)
    const owner = await newGuest(gateway.origin)
    const { path, publicKey } = await scene.newKey('patient')
    await owner.send('POST', '/api/agents/keys', { name: 'Patient', publicKey, scopes: ['wallets:read'] })
    const client = new Client({ name: 'test', version: '1' })
    let changes = 0
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      changes += 1
    })
    await client.connect(stdioTransport(gateway.origin, path))
    await client.listTools()
    await gateway.stop()
    gateway = await startGateway(env)
    await expect.poll(() => changes, { timeout: 15_000 }).toBe(1)
    await client.close()
    await gateway.stop()
    rmSync(directory, { recursive: true, force: true })
  }, 40_000)
})
