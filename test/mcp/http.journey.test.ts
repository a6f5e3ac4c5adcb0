/** `/mcp` over Streamable HTTP, by the SDK's client, which validates every answer against its schema. */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { mcpHandler } from '../../mcp/http.ts'
import { buildCatalogue } from '../../src/kernel/catalogue.ts'
import { tools } from '../../tools/index.ts'
import { onBothEngines } from '../engines.ts'
import { schemaErrors } from '../json-schema.ts'
import { buildKeyPrincipal, newPerson, noon, nothingForSale, servicesOn } from '../kernel/scene.ts'
import { httpClient, openScene, parseProblem, type Scene } from './scene.ts'

const mcpTools = tools.filter(({ mcp }) => mcp).map(({ name }) => name.replaceAll('.', '_'))

describe('/mcp', () => {
  let scene: Scene
  let client: Client
  beforeAll(async () => {
    scene = await openScene()
    client = await httpClient(scene)
  })
  afterAll(async () => {
    await client?.close()
    await scene?.close()
  })
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${scene.gateway.origin}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${scene.apiKey}`,
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })

  it.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])(
    'negotiates %s',
    async (protocolVersion) => {
      const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } }
      const response = await post({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
      expect(await response.json()).toMatchObject({
        id: 1,
        result: { protocolVersion, serverInfo: { name: 'bursar' }, capabilities: { tools: {} } },
      })
      expect(response.headers.get('mcp-session-id')).toMatch(/^[A-Za-z0-9_-]{43}$/)
    },
  )

  it('lists schemas that are valid JSON Schema 2020-12, as the description of the API does', async () => {
    const listed = await client.listTools()
    expect(listed.tools.length).toBeGreaterThan(30)
    for (const { name, inputSchema, outputSchema } of listed.tools)
      expect([name, schemaErrors(inputSchema), schemaErrors(outputSchema ?? {})]).toEqual([name, [], []])
    const document = await (await fetch(`${scene.gateway.origin}/api/openapi.json`)).json()
    const { components } = z.looseObject({ components: z.looseObject({}) }).parse(document)
    const schemas = z.record(z.string(), z.looseObject({})).parse(components.schemas)
    expect(Object.entries(schemas).filter(([, schema]) => schemaErrors(schema).length > 0)).toEqual([])
  })

  it('gives every tool a title, a description, both schemas and all four annotations', async () => {
    const listed = await client.listTools()
    expect(listed.tools.map(({ name }) => name).sort()).toEqual([...mcpTools].sort())
    for (const { name, title, description, inputSchema, outputSchema, annotations } of listed.tools) {
      expect([name, typeof title, typeof description]).toEqual([name, 'string', 'string'])
      expect(inputSchema.type).toBe('object')
      // Compliance bodies ignore unknown members.
      const isLenient = ['compliance_kyc', 'compliance_travel_rule'].includes(name)
      expect(inputSchema.additionalProperties).toBe(isLenient ? undefined : false)
      expect(outputSchema).toMatchObject({ type: 'object' })
      expect([name, JSON.stringify(inputSchema)]).toEqual([name, expect.not.stringContaining('"null"')])
      const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = annotations ?? {}
      for (const hint of [readOnlyHint, destructiveHint, idempotentHint, openWorldHint])
        expect([name, typeof hint]).toEqual([name, 'boolean'])
      const isSpend = tools.some((tool) => tool.effect === 'spend' && tool.name.replaceAll('.', '_') === name)
      expect([destructiveHint, openWorldHint]).toEqual([isSpend, isSpend])
      expect(inputSchema.required?.includes('idempotency_key') ?? false).toBe(isSpend)
      expect('idempotency_key' in (inputSchema.properties ?? {})).toBe(readOnlyHint !== true)
    }
  })

  it('marks a tool idempotent only if a repeated call has no further effect', async () => {
    const { tools: listed } = await client.listTools()
    const repeatable = listed.filter(({ annotations }) => annotations?.idempotentHint !== true)
    expect(repeatable.map(({ name }) => name).sort()).toEqual([
      'agents_delegate',
      'approvals_request',
      'banking_create',
      'banking_payouts_quote',
      'cards_issue',
      'cards_settings',
      'channels_close',
      'compliance_kyc',
      'compliance_travel_rule',
      'recourse_open',
      'requests_create',
      'schedules_create',
      'swaps_quote',
    ])
  })

  it('writes once per idempotency key, for calls that have one', async () => {
    const issue = async (idempotency_key: string | undefined, nickname = 'Once') => {
      const result = await client.callTool({
        name: 'cards_issue',
        arguments: { nickname, ...(idempotency_key === undefined ? {} : { idempotency_key }) },
      })
      const issued = z.object({ id: z.string() }).safeParse(result.structuredContent)
      return issued.data?.id ?? parseProblem(result).code
    }
    const first = await issue('card-1')
    expect(first).toMatch(/^card_/)
    expect(await issue('card-1')).toBe(first)
    expect(await issue('card-1', 'Another')).toBe('idempotency_key_reused')
    expect(await issue(undefined)).not.toBe(first)
    expect(await issue('a b')).toBe('invalid_request')
  })

  it('answers with structured content that matches the schema, and the same as text', async () => {
    await client.listTools()
    for (const [name, given] of [
      ['context', {}],
      ['wallets_get', {}],
      [
        'wallets_transfer',
        {
          destination: '0x000000000000000000000000000000000000dEaD',
          amount: 1.5,
          signature: 'x',
          idempotency_key: 'fits',
        },
      ],
      ['x402_fx', { from: 'usd', to: 'eur', amount: '100', idempotency_key: 'fits-too' }],
    ] as const) {
      const { content, structuredContent, isError } = await client.callTool({ name, arguments: given })
      expect([name, isError ?? false]).toEqual([name, false])
      const [first] = z.array(z.object({ text: z.string() })).parse(content)
      expect(JSON.parse(first?.text ?? '')).toEqual(structuredContent)
    }
  })

  it('rejects an unknown tool with a JSON-RPC error', async () => {
    await expect(client.callTool({ name: 'wallets_drain', arguments: {} })).rejects.toMatchObject({
      code: -32602,
    })
    for (const name of [
      '__proto__',
      'constructor',
      'auth_guest',
      'agents_keys_create',
      'wallets.transfer',
      '',
    ])
      await expect(client.callTool({ name, arguments: {} })).rejects.toMatchObject({ code: -32602 })
  })

  it('requires an idempotency key of visible ASCII for spending tools', async () => {
    const call = (idempotency_key: unknown) =>
      client.callTool({
        name: 'x402_fx',
        arguments: { from: 'USD', to: 'EUR', amount: '1', idempotency_key },
      })
    for (const key of [undefined, '', 'a b', 'é', 'x'.repeat(256), 5, null])
      expect(parseProblem(await call(key))).toMatchObject({
        code: 'invalid_request',
        issues: [{ path: 'idempotency_key' }],
      })
  })

  it('names a missing idempotency key together with all other issues', async () => {
    const problem = parseProblem(
      await client.callTool({ name: 'wallets_transfer', arguments: { destination: '0xabc', amount: '-1' } }),
    )
    const { issues } = z.looseObject({ issues: z.array(z.object({ path: z.string() })) }).parse(problem)
    const paths = issues.map(({ path }) => path)
    expect(paths).toEqual(expect.arrayContaining(['idempotency_key', 'destination', 'amount']))
  })

  it('says in answers of writing tools whether they are replayed, and of no others', async () => {
    const card = { name: 'cards_issue', arguments: { nickname: 'Twice', idempotency_key: 'card-twice' } }
    for (const replayed of [false, true]) {
      const { structuredContent, _meta } = await client.callTool(card)
      expect([structuredContent, _meta]).toMatchObject([{ replayed }, { 'bursar/replayed': replayed }])
    }
    const read = await client.callTool({ name: 'wallets_get', arguments: {} })
    expect(read.structuredContent).not.toHaveProperty('replayed')
    expect(read._meta ?? {}).not.toHaveProperty('bursar/replayed')
  })

  it('rejects what is not JSON-RPC, without an internal error', async () => {
    for (const body of ['{}', '[]', 'null', '1', '{"jsonrpc":"1.0","id":1,"method":"tools/list"}'])
      expect([body, (await post(body)).status]).toEqual([body, 400])
    expect((await post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202)
    expect(await (await post({ jsonrpc: '2.0', id: 1, method: 'nowhere' })).json()).toMatchObject({
      error: { code: -32601 },
    })
  })

  it('describes invalid members of a request', async () => {
    for (const [method, params] of [
      ['initialize', { protocolVersion: 7 }],
      ['initialize', undefined],
      ['prompts/get', { name: 5 }],
      ['prompts/get', { name: 'pay_invoice', arguments: { invoice: 7 } }],
      ['resources/read', {}],
      ['tools/call', { name: 'context', arguments: [] }],
      ['tools/list', { cursor: 7 }],
      ['prompts/list', { cursor: {} }],
    ] as const) {
      const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method }
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      }
      const later = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }
      for (const response of [
        await post({ jsonrpc: '2.0', id: 1, method, params }),
        ...(method === 'initialize' ? [] : [await post(later, modern)]),
      ])
        expect(await response.json()).toMatchObject({
          id: 1,
          error: { code: -32602, message: expect.stringContaining(`${method} takes params`) },
        })
    }
  })

  it('answers task requests immediately, without a task', async () => {
    const params = { name: 'context', arguments: {}, task: { ttl: 1 } }
    const response = await post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    expect(await response.json()).toMatchObject({ id: 1, result: { structuredContent: {} } })
  })

  it('rejects batches, which would count as one request', async () => {
    const response = await post([1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/list' })))
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_request' })
  })

  it('accepts requests for our own hosts and from our own pages only', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    expect((await post(list, { origin: 'https://evil.example' })).status).toBe(403)
    expect((await post(list, { origin: 'null' })).status).toBe(403)
    expect((await post(list, { origin: scene.gateway.origin })).status).toBe(200)
  })

  it.each(mcpTools)('lists %s as in its contract snapshot', async (name) => {
    const { tools: listed } = await client.listTools()
    const found = listed.find((tool) => tool.name === name)
    await expect(`${JSON.stringify(found, null, 2)}\n`).toMatchFileSnapshot(`__snapshots__/${name}.json.snap`)
  })
})

onBothEngines('the hosts of /mcp', (database) => {
  it('are the origin’s, and every loopback name if the origin is one', async () => {
    const { account } = await newPerson(database())
    const principal = buildKeyPrincipal(account)
    const services = await servicesOn(database())
    const statusFor = async (origin: string, host: string) => {
      const handle = mcpHandler(
        buildCatalogue(tools, services.settings),
        { ...services, settings: { ...services.settings, origin } },
        { seller: nothingForSale, ending: new AbortController().signal },
      )
      const body = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
      const headers = {
        host,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      }
      const request = new Request(`${origin}/mcp`, { method: 'POST', headers, body })
      return handle({
        request,
        body,
        principal,
        clientAddress: '127.0.0.1',
        refundCounts: async () => {},
        requestId: 'req_test',
        now: noon,
      }).then(
        ({ status }) => status,
        ({ code }: { code: string }) => code,
      )
    }
    expect(await statusFor('https://bursar.example', 'bursar.example')).toBe(200)
    expect(await statusFor('https://bursar.example', 'evil.example')).toBe('cross_site_request')
    expect(await statusFor('https://bursar.example', 'localhost')).toBe('cross_site_request')
    for (const host of ['127.0.0.1:8787', 'localhost:8787', '[::1]:8787'])
      expect(await statusFor('http://127.0.0.1:8787', host)).toBe(200)
    expect(await statusFor('http://127.0.0.1:8787', 'localhost:8788')).toBe('cross_site_request')
    for (const host of ['127.0.0.1', 'localhost', '[::1]'])
      expect(await statusFor('http://localhost', host)).toBe(200)
  })
})
