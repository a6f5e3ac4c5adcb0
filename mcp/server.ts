/**
 * The MCP server: the same tools as REST, as far as the key's scopes reach. May import base, kernel and domains; receives the
 * tools as an argument. JSON Schemas were converted once at start.
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  type Tool as McpTool,
} from '@modelcontextprotocol/sdk/types.js'
import { Failure } from '../src/failure.ts'
import type { CatalogueEntry } from '../src/kernel/catalogue.ts'
import type { Services } from '../src/kernel/context.ts'
import { missingScopes } from '../src/kernel/gates/scope.ts'
import { run } from '../src/kernel/run.ts'
import type { Tool } from '../src/kernel/tool.ts'
import type { Principal } from '../src/principal.ts'
import { VERSION } from '../src/version.ts'
import { instructions } from './instructions.ts'
import { failureResult, resultOf } from './result.ts'

/** Who calls, and when. */
export interface McpCaller {
  readonly principal: Extract<Principal, { kind: 'key' }>
  readonly requestId: string
  readonly now: Date
}

interface ServedTool {
  readonly tool: Tool
  readonly listed: McpTool
}

/** Makes servers, one a request: the catalogue is prepared here, once. */
export function mcpServers(
  catalogue: readonly CatalogueEntry[],
  services: Services,
): (caller: McpCaller) => Server {
  const served = new Map(
    catalogue
      .filter(({ tool }) => tool.mcp)
      .map((entry) => {
        const listed = listedAs(entry)
        // Over MCP there are no strangers: what REST sells to anybody is here paid by the key's owner.
        const serving: ServedTool = { tool: { ...entry.tool, who: 'account' }, listed }
        return [listed.name, serving] as const
      }),
  )
  return (caller) => {
    const server = new Server(
      { name: 'bursar', version: VERSION },
      { capabilities: { tools: {} }, instructions },
    )
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: [...served.values()]
        .filter(({ tool }) => missingScopes(tool, caller.principal).length === 0)
        .map(({ listed }) => listed),
    }))
    server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: given = {} } }) => {
      const found = served.get(name)
      if (found === undefined)
        throw invalidParams(`There is no tool "${name.slice(0, 64)}"; tools/list shows them.`)
      try {
        const { input, idempotencyKey } = splitArguments(found.tool, given)
        const { body } = await run(found.tool, { ...services, ...caller, idempotencyKey }, input)
        return resultOf(body)
      } catch (error) {
        return failureResult(error, { requestId: caller.requestId, name, log: services.log })
      }
    })
    return server
  }
}

/** A JSON-RPC error. Not the SDK's class, whose message its client would prefix a second time. */
function invalidParams(message: string): Error {
  return Object.assign(new Error(message), { code: ErrorCode.InvalidParams })
}

/** How a tool is listed: annotations follow from its effect. */
function listedAs({ tool, input, output }: CatalogueEntry): McpTool {
  const { properties, required, ...rest } = input
  const isSpend = tool.effect === 'spend'
  const members = { ...asRecord(properties), ...(isSpend ? { idempotency_key: idempotencyKeySchema } : {}) }
  const needed = [...asNames(required), ...(isSpend ? ['idempotency_key'] : [])]
  return {
    name: tool.name.replaceAll('.', '_'),
    title: tool.title,
    description: tool.description === undefined ? tool.summary : `${tool.summary} ${tool.description}`,
    inputSchema: {
      ...rest,
      type: 'object',
      properties: members,
      ...(needed.length > 0 ? { required: needed } : {}),
    },
    outputSchema: { ...output, type: 'object' },
    annotations: {
      title: tool.title,
      readOnlyHint: tool.effect === 'read',
      destructiveHint: isSpend,
      idempotentHint: true,
      openWorldHint: isSpend,
    },
  }
}

const idempotencyKeySchema = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: '^[\\x21-\\x7e]+$',
  description:
    'Names this payment: a new key for a new payment, the same key when you repeat a call. Never pays twice.',
}

function splitArguments(tool: Tool, given: Record<string, unknown>) {
  if (tool.effect !== 'spend') return { input: given, idempotencyKey: null }
  const { idempotency_key: key, ...input } = given
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return { input, idempotencyKey: key }
  const message = key === undefined ? 'is required' : 'must be 1 to 255 visible ASCII characters'
  throw new Failure('invalid_request', `idempotency_key: ${message}`, {
    issues: [{ path: 'idempotency_key', message }],
    hint: 'Give each new payment a new idempotency_key, and repeat a call with the same one.',
  })
}

function asRecord(value: unknown): Record<string, object> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function asNames(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : []
}
