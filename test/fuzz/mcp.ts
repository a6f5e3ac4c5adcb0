/** Tool calls over both MCP eras. The message format of each era is recorded from its official client. */
import {
  Client as Client2026,
  StreamableHTTPClientTransport as Transport2026,
} from '@modelcontextprotocol/client'
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import fc from 'fast-check'
import { z } from 'zod'
import { type Cast, sandboxCredentials } from './cast.ts'
import { type Part, raw, write } from './document.ts'
import { applyDamage, type Damage, damages } from './mutate.ts'
import { type Plan, seldom } from './shots.ts'
import { fitting, hostile, type Schema } from './values.ts'

export interface FuzzedTool {
  readonly name: string
  readonly inputSchema: Schema
  readonly outputSchema: Schema
}

/** A tool call of an era, as recorded from its client. */
interface Template {
  readonly headers: Readonly<Record<string, string>>
  readonly message: Readonly<Record<string, unknown>>
}

const listed = z.array(
  z.object({
    name: z.string(),
    // Our own schemas, parsed back.
    inputSchema: z.custom<Schema>((value) => typeof value === 'object'),
    outputSchema: z.custom<Schema>((value) => typeof value === 'object'),
  }),
)
const message = z.looseObject({ method: z.string(), params: z.looseObject({}).optional() })

/** The tools, and plans for calling them. */
export async function openMcp(origin: string, cast: Cast) {
  const { demoApiKey } = await sandboxCredentials(origin)
  const headers = { authorization: `Bearer ${demoApiKey}` }
  const templates: Template[] = []
  const recording = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const sent = message.safeParse(typeof init?.body === 'string' ? JSON.parse(init.body) : null)
    if (sent.success && sent.data.method === 'tools/call') {
      const { authorization: _, ...own } = Object.fromEntries(new Headers(init?.headers))
      templates.push({ headers: own, message: sent.data })
    }
    return fetch(url, init)
  }
  const url = new URL('/mcp', origin)
  const old = new Client2025({ name: 'fuzz', version: '1' })
  const transport = new Transport2025(url, { requestInit: { headers }, fetch: recording })
  // // The SDK's transport type declares optional members without `undefined`; the value comes from the SDK.
  await old.connect(transport as Parameters<Client2025['connect']>[0])
  const modern = new Client2026(
    { name: 'fuzz', version: '1' },
    { capabilities: {}, versionNegotiation: { mode: 'auto' } },
  )
  await modern.connect(new Transport2026(url, { requestInit: { headers }, fetch: recording }))
  const key = await askAll(origin, cast)
  const tools = listed.parse(key)
  await old.callTool({ name: 'context', arguments: {} })
  await modern.callTool({ name: 'context', arguments: {} })
  await old.close()
  await modern.close()
  if (templates.length < 2) throw new Error('the clients’ calls were not seen')
  return { tools, plansFor: (tool: FuzzedTool) => arbitraryCalls(tool, templates, cast.keys) }
}

/** The tools that a key with all scopes can list. */
async function askAll(origin: string, cast: Cast): Promise<unknown> {
  const request = {
    method: 'POST',
    target: '/mcp',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  }
  const credentials = await cast.credentials('key', request)
  const response = await fetch(`${origin}/mcp`, {
    method: 'POST',
    headers: { ...request.headers, ...credentials },
    body: request.body,
  })
  const { result } = z
    .looseObject({ result: z.looseObject({ tools: z.unknown() }) })
    .parse(await response.json())
  return result.tools
}

const damageLists = fc.oneof(
  { weight: 5, arbitrary: fc.constant<Damage[]>([]) },
  { weight: 4, arbitrary: fc.array(damages, { minLength: 1, maxLength: 1 }) },
  { weight: 1, arbitrary: fc.array(damages, { minLength: 2, maxLength: 4 }) },
)

const ids = fc.oneof(
  { weight: 20, arbitrary: fc.nat() },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Part>('x'.repeat(1_000), '__proto__', 0, -1, 1.5, null, {}, raw('1e999')),
  },
)

function arbitraryCalls(
  { name, inputSchema }: FuzzedTool,
  templates: readonly Template[],
  callers: readonly string[],
): fc.Arbitrary<Plan> {
  return fc
    .record({
      template: fc.constantFrom(...templates),
      given: fitting(inputSchema),
      key: fc.oneof(
        { weight: 3, arbitrary: fc.nat(9).map((number) => `repeat-${number}`) },
        { weight: 5, arbitrary: fc.uuid() },
        { weight: 1, arbitrary: hostile },
      ),
      damage: damageLists,
      around: seldom(15, damages),
      caller: fc.constantFrom(...callers),
      id: ids,
    })
    .map(({ template, given, key, damage, around, caller, id }) => (memories) => {
      const memory = memories.of(caller)
      const isSpend = inputSchema.properties?.idempotency_key !== undefined
      const whole = isSpend ? { ...Object(given), idempotency_key: key } : given
      const input = damage.reduce<Part>(applyDamage, whole)
      // The recorded message is JSON.
      const sent = {
        ...template.message,
        id,
        params: { ...Object(template.message.params), name, arguments: input },
      } as Part
      const { 'mcp-name': named, ...headers } = template.headers
      return {
        method: 'POST',
        target: '/mcp',
        caller,
        headers: named === undefined ? headers : { ...headers, 'mcp-name': name },
        body: write(around === null ? sent : applyDamage(sent, around), memory),
        isOnPath: true,
      }
    })
}
