/**
 * Cost of the MCP protocol: processor time for a `tools/call` of each era against that of a bare SDK server with one
 * echo tool, and against the same operation without a protocol. In one process, alternating. `npx tsx
 * test/bench/mcp.ts`, 20 seconds.
 */

import { pathToFileURL } from 'node:url'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { z } from 'zod'
import { mcpHandler } from '../../mcp/http.ts'
import { scopes } from '../../policies/scopes.ts'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { buildCatalogue } from '../../src/kernel/catalogue.ts'
import { run } from '../../src/kernel/run.ts'
import { createRunApproved } from '../../src/kernel/run-approved.ts'
import { openPglite } from '../../src/storage/pglite.ts'
import { tools } from '../../tools/index.ts'
import {
  buildCall,
  buildKeyPrincipal,
  newPerson,
  noon,
  nothingForSale,
  origin,
  servicesOn,
} from '../kernel/scene.ts'

const CALLS = 1_000
/** Odd: the round with the median counts. */
const ROUNDS = 5

/** One measurement. @property micros of processor time a request. */
export interface McpBenchLine {
  readonly name: string
  readonly micros: number
}

export async function benchMcp(): Promise<readonly McpBenchLine[]> {
  const database = await openPglite({ directory: 'memory', now: systemClock, log: silentLog })
  try {
    await database.migrate()
    const services = await servicesOn(database, {
      runApproved: createRunApproved((name) => tools.find((tool) => tool.name === name)),
    })
    const { account } = await newPerson(database)
    const principal = buildKeyPrincipal(account, { scopes: Object.keys(scopes) })
    const handle = mcpHandler(buildCatalogue(tools, services.settings), services, {
      seller: nothingForSale,
      ending: new AbortController().signal,
    })
    const context = tools.find(({ name }) => name === 'context')
    if (context === undefined) throw new Error('operation rails.list is missing')
    const send = async (message: object, headers: Record<string, string> = {}) => {
      const body = Buffer.from(JSON.stringify(message))
      const request = new Request(`${origin}/mcp`, {
        method: 'POST',
        headers: { host: 'bursar.example', ...json, ...headers },
        body,
      })
      const from = {
        requestId: 'req_bench',
        now: noon,
        clientAddress: '127.0.0.1',
        refundCounts: async () => {},
      }
      const response = await handle({ request, body, principal, ...from })
      // Reading the text is the client's work.
      const bytes = Buffer.from(await response.arrayBuffer())
      if (response.status !== 200 || bytes.includes('"isError":true'))
        throw new Error(bytes.toString('utf8', 0, 300))
    }
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'context', arguments: {} },
    }
    const modern = (method: string, params: object) => ({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    })
    const modernHeaders = {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'context',
    }
    const works: Record<string, () => Promise<unknown>> = {
      'the operation, without a protocol': () => run(context, buildCall(services, principal), {}),
      'a bare SDK server with one echo tool': echo,
      'tools/call of 2025': () => send(call),
      'tools/call of 2026': () => send(modern('tools/call', call.params), modernHeaders),
      'tools/list of 2025': () => send({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      'tools/list of 2026': () =>
        send(modern('tools/list', {}), { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' }),
    }
    const measured = new Map<string, number[]>()
    for (let round = 0; round <= ROUNDS; round += 1)
      for (const [name, work] of Object.entries(works)) {
        const micros = await processorTime(work)
        // The first round only warms up.
        if (round > 0) measured.set(name, [...(measured.get(name) ?? []), micros])
      }
    return [...measured].map(([name, rounds]) => ({
      name,
      micros: rounds.sort((left, right) => left - right)[(ROUNDS - 1) / 2] ?? 0,
    }))
  } finally {
    await database.close()
  }
}

const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

async function processorTime(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  for (let count = 0; count < CALLS; count += 1) await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / CALLS
}

async function echo(): Promise<void> {
  const server = new McpServer({ name: 'echo', version: '1' })
  const inputSchema = { text: z.string() }
  server.registerTool('echo', { inputSchema }, ({ text }) => ({ content: [{ type: 'text', text }] }))
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await server.connect(transport)
  const params = { name: 'echo', arguments: { text: 'hello' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const response = await transport.handleRequest(
    new Request(`${origin}/mcp`, { method: 'POST', headers: json, body }),
  )
  if (!Buffer.from(await response.arrayBuffer()).includes('hello')) throw new Error('no echo')
}

/** The printed lines: a call also minus the operation itself, which leaves the protocol's own part. */
export function mcpBenchText(lines: readonly McpBenchLine[]): string[] {
  const findMicros = (start: string) => lines.find(({ name }) => name.startsWith(start))?.micros ?? Number.NaN
  const [bare, operation] = [findMicros('a bare'), findMicros('the operation')]
  const times = (micros: number) => `${(micros / bare).toFixed(2)} ×`
  return lines.map(({ name, micros }) => {
    const own = name.startsWith('tools/call') ? `, less the operation ${times(micros - operation)}` : ''
    return `${name}: ${micros.toFixed(0)} µs, ${times(micros)} the bare server${own}`
  })
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const line of mcpBenchText(await benchMcp())) process.stdout.write(`${line}\n`)
