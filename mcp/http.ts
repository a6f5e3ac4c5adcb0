/** MCP over Streamable HTTP, one server a request: a signature or an API key comes with each, and nothing is kept between. */
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { CallToolRequestSchema, ErrorCode } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import { Failure } from '../src/failure.ts'
import { parseJson } from '../src/json.ts'
import type { CatalogueEntry } from '../src/kernel/catalogue.ts'
import type { Services } from '../src/kernel/context.ts'
import { requireScope } from '../src/kernel/gates/scope.ts'
import type { Principal } from '../src/principal.ts'
import { mcpServers } from './server.ts'

/** A request after the way in that all paths share. */
export interface McpRequest {
  readonly request: Request
  readonly body: Uint8Array
  readonly principal: Principal
  readonly requestId: string
  readonly now: Date
}

/** Answers POST `/mcp`. @throws Failure where the request does not get as far as JSON-RPC. */
export function mcpHandler(
  catalogue: readonly CatalogueEntry[],
  services: Services,
): (mounted: McpRequest) => Promise<Response> {
  const serverFor = mcpServers(catalogue, services)
  const requireGrantedScope = scopeGate(catalogue)
  const hosts = allowedHosts(services.settings.origin)
  return async ({ request, body, principal, requestId, now }) => {
    requireOurHost(request, hosts, services.settings.origin)
    if (principal.kind !== 'key') throw keyNeeded(principal)
    const message = parsedBodyOf(body)
    // Protocols since 2025-06-18 have no batches, and one would pass the limits as a single request.
    if (Array.isArray(message))
      throw new Failure('invalid_request', 'A batch is not taken: send one JSON-RPC message a request.')
    requireGrantedScope(message, principal)
    const malformed = malformedCall(message)
    if (malformed !== null) return Response.json(malformed)
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
    await serverFor({ principal, requestId, now }).connect(transport)
    return transport.handleRequest(request, { parsedBody: message })
  }
}

/**
 * A client that was let in by OAuth can ask the owner for more: it is told what is missing by a challenge, not by a result.
 * @throws Failure `insufficient_scope`.
 */
function scopeGate(catalogue: readonly CatalogueEntry[]) {
  const tools = new Map(
    catalogue.filter(({ tool }) => tool.mcp).map(({ tool }) => [tool.name.replaceAll('.', '_'), tool]),
  )
  return (message: unknown, principal: Extract<Principal, { kind: 'key' }>) => {
    const called = toolCall.safeParse(message)
    if (principal.key.kind !== 'grant' || !called.success) return
    const tool = tools.get(called.data.params.name)
    if (tool !== undefined) requireScope({ ...tool, who: 'account' }, principal)
  }
}

const toolCall = z.looseObject({
  method: z.literal('tools/call'),
  params: z.looseObject({ name: z.string() }),
})

function parsedBodyOf(body: Uint8Array): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (cause) {
    const why = cause instanceof SyntaxError ? cause.message.slice(0, 120) : 'it is not UTF-8'
    throw new Failure('invalid_request', `The body is not valid JSON: ${why}.`, {
      issues: [{ path: '', message: 'not valid JSON' }],
    })
  }
}

/** What a call with wrong members is told; the SDK would answer an internal error with its schema's own words. */
function malformedCall(message: unknown) {
  const named = z
    .looseObject({ id: z.union([z.string(), z.int()]), method: z.literal('tools/call') })
    .safeParse(message)
  if (!named.success || CallToolRequestSchema.safeParse(message).success) return null
  const error = {
    code: ErrorCode.InvalidParams,
    message: 'tools/call takes params {name, arguments}: a text and an object.',
  }
  return { jsonrpc: '2.0', id: named.data.id, error }
}

/** Loopback has many names; a page that was made to resolve to us has another. */
function allowedHosts(origin: string): ReadonlySet<string> {
  const { host, hostname, port } = new URL(origin)
  const end = port === '' ? '' : `:${port}`
  const isLoopback = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  return new Set([
    host,
    ...(isLoopback ? ['localhost', '127.0.0.1', '[::1]'].map((name) => `${name}${end}`) : []),
  ])
}

function requireOurHost(request: Request, hosts: ReadonlySet<string>, origin: string): void {
  const host = request.headers.get('host') ?? ''
  const from = request.headers.get('origin')
  if (hosts.has(host) && (from === null || from === origin)) return
  throw new Failure('cross_site_request', 'The Host or Origin of this request is not ours.', {
    hint: `Connect to ${origin}/mcp.`,
  })
}

function keyNeeded(principal: Principal): Failure {
  const detail =
    principal.kind === 'public' ? 'MCP needs a key.' : 'MCP is for keys: a session cannot be used here.'
  return new Failure('unauthenticated', detail, {
    hint: 'Send a developer API key as "Authorization: Bearer bsk_…", or sign each request as an agent; "bursar mcp --url … --key …" does it for you.',
  })
}
