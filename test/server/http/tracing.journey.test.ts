/** Traces of the built gateway, as received by a collector: OTLP over HTTP, in JSON. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { filesBelow } from '../../files.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'

const attribute = z.object({
  key: z.string(),
  value: z.looseObject({ stringValue: z.string().optional(), intValue: z.unknown().optional() }),
})
const span = z.looseObject({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  attributes: z.array(attribute),
  status: z.looseObject({ code: z.number().optional() }),
})
const batch = z.looseObject({
  resourceSpans: z.array(
    z.looseObject({
      resource: z.looseObject({ attributes: z.array(attribute) }),
      scopeSpans: z.array(z.looseObject({ spans: z.array(span) })),
    }),
  ),
})
type Span = z.output<typeof span>

const destination = '0x000000000000000000000000000000000000dead'
const caller = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' }

describe('traces', () => {
  let collector: Server
  let gateway: Gateway
  let key: string
  const got: { headers: IncomingHttpHeaders; path: string; text: string }[] = []
  const batches = () => got.map(({ text }) => batch.parse(JSON.parse(text)))
  const spans = (): Span[] =>
    batches().flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans: some }) => some)),
    )
  const resourceText = ({ attributes }: Span, name: string) =>
    attributes.find((one) => one.key === name)?.value.stringValue ??
    attributes.find((one) => one.key === name)?.value.intValue

  beforeAll(async () => {
    collector = createServer(async (request, response) => {
      const parts: Buffer[] = []
      for await (const part of request) parts.push(part)
      got.push({
        headers: request.headers,
        path: request.url ?? '',
        text: Buffer.concat(parts).toString('utf8'),
      })
      response.setHeader('content-type', 'application/json').end('{}')
    }).listen(0, '127.0.0.1')
    await once(collector, 'listening')
    // A listening server has an address object with a port.
    const { port } = collector.address() as AddressInfo
    gateway = await startGateway({
      CHAIN: 'simulated',
      LOG_LEVEL: 'info',
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=bursar-tests',
      OTEL_SERVICE_NAME: 'money-gate',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    })
    const read = await (await fetch(`${gateway.origin}/sandbox/credentials`)).json()
    key = z.object({ demoApiKey: z.string() }).parse(read).demoApiKey
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` }
    await fetch(`${gateway.origin}/api/wallets/transfer`, {
      method: 'POST',
      headers: {
        ...headers,
        traceparent: `00-${caller.traceId}-${caller.spanId}-01`,
        'x-request-id': 'traced-transfer',
      },
      body: JSON.stringify({ destination, amount: '1', signature: 'sandbox' }),
    })
    await fetch(`${gateway.origin}/mcp`, {
      method: 'POST',
      headers: { ...headers, accept: 'application/json, text/event-stream', 'x-request-id': 'traced-mcp' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'wallets_get', arguments: {} },
      }),
    }).then((response) => response.text())
    await fetch(`${gateway.origin}/api/x402/fx?from=USD&to=EUR&amount=77`)
    await fetch(`${gateway.origin}/nothing/of-ada@example.com`, {
      headers: { traceparent: '00-zz-zz-01', 'x-request-id': 'traced-nothing' },
    })
    await fetch(`${gateway.origin}/api/agents/keys/key_01kag5x0n0e8tr7v3m2c4q6w8y`)
    await fetch(`${gateway.origin}/healthz`, {
      headers: { traceparent: `00-${caller.traceId}-${caller.spanId}-00`, 'x-request-id': 'not-sampled' },
    })
    // Buffered spans are flushed at shutdown.
    expect(await gateway.stop()).toBe(0)
  })
  afterAll(() => collector.close())

  it('are sent with the resource and the headers from the environment', () => {
    expect(got.length).toBeGreaterThan(0)
    for (const { headers, path } of got)
      expect([path, headers['x-tenant'], headers['content-type']]).toEqual([
        '/v1/traces',
        'bursar-tests',
        'application/json',
      ])
    const resource = new Map(
      batches()[0]?.resourceSpans[0]?.resource.attributes.map(({ key: name, value }) => [
        name,
        value.stringValue,
      ]),
    )
    expect(resource.get('service.name')).toBe('money-gate')
    expect(resource.get('service.version')).toMatch(/^\d/)
    expect(resource.get('deployment.environment.name')).toBe('test')
  })

  it('continue the caller’s trace, step by step', () => {
    const server = spans().find((one) => resourceText(one, 'bursar.request_id') === 'traced-transfer')
    expect(server).toMatchObject({
      name: 'POST /api/wallets/transfer',
      kind: 2,
      traceId: caller.traceId,
      parentSpanId: caller.spanId,
    })
    if (server === undefined) throw new Error('the span is missing')
    expect(resourceText(server, 'http.route')).toBe('/api/wallets/transfer')
    expect(resourceText(server, 'http.response.status_code')).toBe(200)
    expect(resourceText(server, 'url.path')).toBe('/api/wallets/transfer')
    const inside = spans().filter(
      ({ traceId, spanId }) => traceId === caller.traceId && spanId !== server.spanId,
    )
    const tool = inside.find(({ name }) => name === 'tool run')
    expect(tool).toMatchObject({ parentSpanId: server.spanId })
    for (const name of ['spend reserve', 'screening screen', 'chain submit'])
      expect(inside.find((one) => one.name === name)).toMatchObject({ parentSpanId: tool?.spanId })
    const reserve = inside.find(({ name }) => name === 'spend reserve')
    expect(reserve && resourceText(reserve, 'bursar.verdict')).toBe('allow')
  })

  it('show MCP calls below their request', () => {
    const server = spans().find((one) => resourceText(one, 'bursar.request_id') === 'traced-mcp')
    const call = spans().find(({ name }) => name === 'mcp call')
    expect(call).toMatchObject({ traceId: server?.traceId, parentSpanId: server?.spanId })
    expect(call && resourceText(call, 'mcp.tool.name')).toBe('wallets_get')
    expect(
      spans().find(({ name, parentSpanId }) => name === 'tool run' && parentSpanId === call?.spanId),
    ).toBeDefined()
  })

  it('start anew without a readable parent, and are omitted if the caller does not sample', () => {
    const lost = spans().find((one) => resourceText(one, 'bursar.request_id') === 'traced-nothing')
    expect(lost).toMatchObject({ name: 'GET' })
    expect(lost?.parentSpanId ?? '').toBe('')
    expect(lost && [resourceText(lost, 'http.response.status_code'), resourceText(lost, 'url.path')]).toEqual(
      [404, '/*'],
    )
    expect(spans().some((one) => resourceText(one, 'bursar.request_id') === 'not-sampled')).toBe(false)
  })

  it('are referenced by the log, and contain no personal data', () => {
    const line = gateway
      .output()
      .split('\n')
      .find((one) => one.includes('traced-transfer') && one.includes('"msg":"request"'))
    expect(line).toContain(`"traceId":"${caller.traceId}"`)
    const all = got.map(({ text }) => text).join('\n')
    for (const secret of [key, destination, 'acct_', 'key_', 'amount=77', 'ada@', 'Bearer', '127.0.0.1'])
      expect(all).not.toContain(secret)
  })
})

describe('without a collector', () => {
  it('loads nothing of OpenTelemetry: only a dynamic import reaches its folder', () => {
    const importers = filesBelow('src').filter((file) =>
      /providers\/tracing\/opentelemetry|\.\/opentelemetry/.test(readFileSync(file, 'utf8')),
    )
    expect(importers).toEqual(['src/providers/tracing/configured.ts'])
    const configured = readFileSync('src/providers/tracing/configured.ts', 'utf8')
    expect(configured).toContain("await import('./opentelemetry.ts')")
    expect(configured).not.toMatch(/from '[^']*opentelemetry/)
  })
})
