/** MCP sessions over HTTP: on one gateway, and on two with one database behind a front that alternates between them. */
import { setTimeout as pause } from 'node:timers/promises'
import {
  Client as Client2026,
  StreamableHTTPClientTransport as Transport2026,
} from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type ForwardProxy, openProxy } from '../conformance/front.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { freePort } from '../free-port.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { newGuest, type Person } from '../journeys/people.ts'

const policy = {
  perTransaction: { max: '20' },
  dailyBudget: { max: '100' },
  categories: { allow: ['transfer'] },
  approval: { above: '2', ttlSec: 600 },
}
const newKey = async (owner: Person) => {
  const scopes = ['wallets:read', 'wallets:transfer']
  const { body } = await owner.send('POST', '/api/developer/keys', { name: 'Bot', scopes, policy })
  return z.object({ key: z.string() }).loose().parse(body).key
}
const pay = (idempotencyKey: string) => ({
  name: 'wallets_transfer',
  arguments: {
    destination: '0x000000000000000000000000000000000000dEaD',
    amount: '3',
    signature: 'sandbox',
    idempotency_key: idempotencyKey,
  },
})
const parseResult = ({ content }: Record<string, unknown>) => {
  const [first] = z.array(z.looseObject({ text: z.string() })).parse(content)
  return z.looseObject({}).parse(JSON.parse(first?.text ?? '{}'))
}
const credentials = z.object({ chain: z.object({ rpcUrl: z.string() }) })
const env = { CHAIN: 'simulated', RATE_MUTATIONS: '100000/60' }

/** A client whose owner decides over the API on every page that it opens. */
async function approvingClient(
  origin: string,
  key: string,
  owner: Person,
  decide = async (url: string): Promise<unknown> =>
    owner.send('POST', `/api${new URL(url).pathname}`, { decision: 'approve' }),
) {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: { url: {} } } })
  const shown: string[] = []
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    const { url } = z.looseObject({ url: z.string() }).parse(params)
    shown.push(url)
    await decide(url)
    return { action: 'accept' as const }
  })
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', origin), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  })
  await client.connect(transport as Parameters<Client['connect']>[0])
  return { client, transport, shown }
}

describe('an MCP session', () => {
  let gateway: Gateway
  let owner: Person
  let key = ''
  let otherKey = ''
  beforeAll(async () => {
    gateway = await startGateway(env)
    owner = await newGuest(gateway.origin)
    ;[key, otherKey] = [await newKey(owner), await newKey(owner)]
  })
  afterAll(async () => {
    await gateway?.stop()
  })
  const send = (
    method: string,
    {
      session,
      body,
      as = key,
      accept = 'application/json, text/event-stream',
    }: {
      session?: string | null
      body?: unknown
      as?: string
      accept?: string
    } = {},
  ) =>
    fetch(`${gateway.origin}/mcp`, {
      method,
      headers: {
        accept,
        authorization: `Bearer ${as}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(typeof session === 'string' ? { 'mcp-session-id': session } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const begin = async (capabilities: object = {}) => {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities,
      clientInfo: { name: 'test', version: '1' },
    }
    const response = await send('POST', { body: { jsonrpc: '2.0', id: 0, method: 'initialize', params } })
    expect(response.status).toBe(200)
    return response.headers.get('mcp-session-id')
  }

  it('belongs to its key alone: other keys get not found for every method', async () => {
    const session = await begin()
    expect((await send('POST', { session, body: list })).status).toBe(200)
    for (const method of ['POST', 'GET', 'DELETE'])
      expect([
        method,
        (await send(method, { session, as: otherKey, ...(method === 'POST' ? { body: list } : {}) })).status,
      ]).toEqual([method, 404])
    expect((await send('POST', { session, body: list })).status).toBe(200)
  })

  it('ends by DELETE, once, and is not found afterwards', async () => {
    const session = await begin()
    expect((await send('DELETE', { session })).status).toBe(204)
    expect((await send('DELETE', { session })).status).toBe(404)
    const after = await send('POST', { session, body: list })
    expect([after.status, z.looseObject({}).parse(await after.json()).code]).toEqual([404, 'not_found'])
    expect((await send('GET', { session })).status).toBe(404)
  })

  it('is optional: requests without a session id are served', async () => {
    expect((await send('POST', { body: list })).status).toBe(200)
    expect((await send('GET')).status).toBe(405)
    expect((await send('DELETE')).status).toBe(405)
    expect((await send('POST', { session: 'invented', body: list })).status).toBe(404)
  })

  it('drops a call that its client cancels, without an answer', async () => {
    const session = await begin({ elicitation: { url: {} } })
    const call = { jsonrpc: '2.0', id: 'waiting', method: 'tools/call', params: pay('cancelled') }
    const waiting = await send('POST', { session, body: call })
    expect(waiting.headers.get('content-type')).toBe('text/event-stream')
    const params = { requestId: 'waiting' }
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params }
    // Another session of the same key cannot cancel it.
    await send('POST', { session: await begin(), body: cancel })
    const text = waiting.text()
    expect(await Promise.race([text, pause(1_500, 'waits')])).toBe('waits')
    expect((await send('POST', { session, body: cancel })).status).toBe(202)
    const streamText = await Promise.race([text, pause(5_000, 'waits')])
    expect(streamText).toContain('elicitation/create')
    expect(streamText).not.toContain('"result"')
  }, 20_000)

  it('streams until it ends, and a new stream replaces the old one', async () => {
    const session = await begin()
    expect((await send('GET', { session, accept: 'application/json' })).status).toBe(406)
    const first = await send('GET', { session })
    expect([first.status, first.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    const second = await send('GET', { session })
    expect(await first.text()).toBe('')
    await send('DELETE', { session })
    expect(await second.text()).toBe('')
  }, 20_000)

  it('stops waiting for the owner when the key is revoked meanwhile', async () => {
    const revoked = await newKey(owner)
    const { body } = await owner.send('GET', '/api/developer/keys')
    const [last] = z
      .array(z.looseObject({ id: z.string(), createdAt: z.string() }))
      .parse(body.keys)
      .sort((left, right) => right.createdAt.localeCompare(left.createdAt))
    const { client } = await approvingClient(gateway.origin, revoked, owner, () =>
      owner.send('DELETE', `/api/developer/keys/${last?.id}`),
    )
    expect(parseResult(await client.callTool(pay('revoked')))).toMatchObject({ code: 'approval_required' })
    await expect(client.listTools()).rejects.toThrow()
    await client.close()
  })

  it('lets the process stop at once although a stream is open', async () => {
    const own = await startGateway(env)
    const person = await newGuest(own.origin)
    const { client } = await approvingClient(own.origin, await newKey(person), person)
    await pause(200)
    const began = process.hrtime.bigint()
    await own.stop()
    expect(Number((process.hrtime.bigint() - began) / 1_000_000n)).toBeLessThan(5_000)
    await client.close()
  }, 60_000)
})

describe('a waiting call of 2026', () => {
  let gateway: Gateway
  beforeAll(async () => {
    // Each process counts its own waiting calls, so this is one process.
    gateway = await startGateway({ ...env, DATA_DIR: 'memory' })
  })
  afterAll(() => gateway?.stop())

  it('reports progress, and makes room for others of its key once its client has left', async () => {
    const key = await newKey(await newGuest(gateway.origin))
    const client = new Client2026(
      { name: 'test', version: '1' },
      { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: 'auto' } },
    )
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept' as const }))
    await client.connect(
      new Transport2026(new URL('/mcp', gateway.origin), {
        requestInit: { headers: { authorization: `Bearer ${key}` } },
      }),
    )
    /** Calls, and resolves once the call reports that it waits. */
    const wait = async (name: string) => {
      const leaving = new AbortController()
      let left: Promise<unknown> | undefined
      await new Promise<void>((resolve, reject) => {
        const options = { signal: leaving.signal, onprogress: () => resolve() }
        left = client
          .callTool(pay(name), options)
          .then(() => reject(new Error(`${name} did not wait`)), reject)
      })
      return async () => {
        leaving.abort()
        await left
      }
    }
    const most = await Promise.all(Array.from({ length: 10 }, (_, at) => wait(`waiting-${at}`)))
    expect(parseResult(await client.callTool(pay('waiting-0')))).toMatchObject({ code: 'approval_required' })
    await Promise.all(most.map((leave) => leave()))
    await pause(500)
    const leave = await wait('waiting-1')
    await leave()
    await client.close()
  }, 30_000)
})

describe.skipIf(testServerUrl === undefined)('an MCP session at several gateways', () => {
  const gateways: Gateway[] = []
  let ports: number[] = []
  let front: ForwardProxy
  let drop = async () => {}
  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    front = await openProxy()
    const redis = process.env.TEST_REDIS_URL
    const { CHAIN: _simulated, ...rest } = env
    const shared: Record<string, string> = {
      ...rest,
      DATABASE_URL: created.url,
      PUBLIC_ORIGIN: front.origin,
      ...(redis === undefined ? {} : { REDIS_URL: redis }),
    }
    ports = await Promise.all([freePort(), freePort()])
    for (const port of ports) {
      gateways.push(await startGateway({ ...shared, PORT: String(port) }))
      // Both use the first gateway's chain.
      const answer = await fetch(`http://127.0.0.1:${port}/sandbox/credentials`)
      shared.CHAIN_RPC_URL = credentials.parse(await answer.json()).chain.rpcUrl
    }
    front.serve({ ports, apiKey: null })
  }, 120_000)
  afterAll(async () => {
    front?.close()
    for (const gateway of gateways.reverse()) await gateway.stop()
    await drop()
  }, 60_000)

  it('is one session, and an answer at one gateway reaches the call waiting at the other', async () => {
    const owner = await newGuest(front.origin)
    const key = await newKey(owner)
    const { client, transport, shown } = await approvingClient(front.origin, key, owner)
    for (let count = 0; count < 4; count += 1)
      expect((await client.listTools()).tools.length).toBeGreaterThan(0)
    const calls = await Promise.all(
      Array.from({ length: 6 }, (_, at) => client.callTool(pay(`several-${at}`))),
    )
    expect(calls.map(parseResult)).toEqual(Array(6).fill(expect.objectContaining({ status: 'confirmed' })))
    expect(new Set(calls.map((call) => parseResult(call).transferId)).size).toBe(6)
    expect(new Set(shown).size).toBe(6)
    const headers = {
      accept: 'text/event-stream',
      authorization: `Bearer ${key}`,
      'mcp-session-id': transport.sessionId ?? '',
    }
    await transport.terminateSession()
    // It has ended at every gateway.
    for (let count = 0; count < 2; count += 1)
      expect((await fetch(`${front.origin}/mcp`, { headers })).status).toBe(404)
    await client.close()
  }, 60_000)

  describe('a call that waits at one gateway', () => {
    const [one, other] = [0, 1]
    const pass = (at: number) => front.serve({ ports: ports.slice(at, at + 1), apiKey: null })
    afterAll(() => front.serve({ ports, apiKey: null }))

    const open = async () => {
      const key = await newKey(await newGuest(front.origin))
      const headers: Record<string, string> = {
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
      }
      const send = (method: 'POST' | 'DELETE', message: Record<string, unknown> | null = null) =>
        fetch(`${front.origin}/mcp`, {
          method,
          headers,
          ...(message === null ? {} : { body: JSON.stringify({ jsonrpc: '2.0', ...message }) }),
        })
      const capabilities = { elicitation: { url: {} } }
      const clientInfo = { name: 'test', version: '1' }
      const params = { protocolVersion: '2025-11-25', capabilities, clientInfo }
      const { headers: given } = await send('POST', { id: 0, method: 'initialize', params })
      headers['mcp-session-id'] = given.get('mcp-session-id') ?? ''
      pass(one)
      const waiting = await send('POST', { id: 7, method: 'tools/call', params: pay('cancelled') })
      let text = ''
      const ended = (async () => {
        for await (const part of waiting.body?.pipeThrough(new TextDecoderStream()) ?? []) text += part
        return 'ended'
      })()
      await expect.poll(() => text, { timeout: 10_000 }).toContain('elicitation/create')
      const question = /"id":"([^"]+)"/.exec(text)?.[1]
      pass(other)
      return {
        send,
        accept: () => send('POST', { id: question, result: { action: 'accept' } }),
        cancel: (requestId: unknown) =>
          send('POST', { method: 'notifications/cancelled', params: { requestId } }),
        isOpen: async () => (await Promise.race([ended, pause(2_500, 'waits')])) === 'waits',
        isEnded: async () => (await Promise.race([ended, pause(10_000, 'waits')])) === 'ended',
        text: () => text,
      }
    }

    it.each(['before', 'after'])(
      'ends without a result when its client cancels it at another, %s it has answered',
      async (when) => {
        const call = await open()
        if (when === 'after') await call.accept()
        for (const foreign of ['7', 8]) await call.cancel(foreign)
        expect(await call.isOpen()).toBe(true)
        expect((await call.cancel(7)).status).toBe(202)
        expect(await call.isEnded()).toBe(true)
        expect(call.text()).not.toContain('"result"')
      },
      30_000,
    )

    it('ends with its session, which its client ends at another', async () => {
      const call = await open()
      await call.accept()
      expect(await call.isOpen()).toBe(true)
      await call.send('DELETE')
      expect(await call.isEnded()).toBe(true)
    }, 30_000)
  })
})
