/**
 * MCP server for the 2025 era (protocols up to 2025-11-25).
 * @see https://modelcontextprotocol.io/specification/2025-11-25
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CallToolRequestSchema,
  ElicitResultSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  type ServerNotification,
  type ServerRequest,
} from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import { VERSION } from '../src/core/base/version.ts'
import { type Approvals, type PendingApproval, reportWaiting } from './approval.ts'
import type { McpCaller } from './caller.ts'
import type { ElicitationClient } from './exchange.ts'
import { openExchange } from './exchange.ts'
import { instructions } from './instructions.ts'
import type { Offer } from './offer.ts'
import { buildPrompt } from './prompts.ts'
import type { ToolResult } from './result.ts'

/** Maximum wait for the owner, who has to open a page and may have to sign in. Clients may time out earlier. */
const DECIDE_MS = 10 * 60_000

/** Shared, because one per server costs more than the rest of it. Tools validate their arguments themselves. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/** One client message. @property asking null for clients without a session or elicitation. */
export interface IncomingMessage2025 {
  readonly message: {
    readonly id: string | number
    readonly method: string
    readonly params?: Record<string, unknown> | undefined
  }
  readonly asking: (ElicitationClient & { readonly canOpenPages: boolean }) | null
  /** Response headers, such as the session id. */
  readonly headers: Readonly<Record<string, string>>
  /** Aborted on shutdown. */
  readonly ending: AbortSignal
  /** Receives the function that cancels the request, and a promise that resolves when it is closed. */
  readonly onOpen: (cancel: () => void, closed: Promise<void>) => void
}

export interface Server2025Options {
  readonly offer: Offer
  readonly approvals: Approvals
  readonly register?: ((server: Server, caller: McpCaller) => void) | undefined
}

/** Handles one request with its own server: each request carries its credential, and no state is kept. */
export async function answer2025(
  serving: Server2025Options,
  caller: McpCaller,
  elicited: IncomingMessage2025,
): Promise<Response> {
  const { message, asking, headers } = elicited
  const { transport, response, closed, cancel } = openExchange(asking, { requestId: message.id, headers })
  const server = serverFor(serving, caller, { ...elicited, transport })
  serving.register?.(server, caller)
  await server.connect(transport)
  elicited.onOpen(cancel, closed)
  transport.onmessage?.({ jsonrpc: '2.0', ...withoutTask(message) })
  return response
}

/**
 * Servers without tasks ignore task requests.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks
 */
function withoutTask<Message extends { readonly params?: unknown }>(message: Message): Message {
  const { params } = message
  if (typeof params !== 'object' || params === null || !('task' in params)) return message
  const { task: _, ...others } = params
  return { ...message, params: others }
}

function serverFor(
  { offer, approvals }: Server2025Options,
  caller: McpCaller,
  elicited: IncomingMessage2025 & { readonly transport: Transport },
): Server {
  const capabilities = { tools: { listChanged: true }, resources: {}, prompts: {} }
  const options = { capabilities, instructions, jsonSchemaValidator }
  const server = new Server({ name: 'bursar', version: VERSION }, options)
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: offer.tools(caller) }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const { name, arguments: given = {} } = params
    const result = unstructuredError(await offer.call(caller, name, given, params._meta))
    const pending = elicited.asking?.canOpenPages === true ? approvals.parsePending(result) : null
    if (pending === null) return result
    const later = await askOwner(approvals, { caller, pending, extra, ...elicited })
    return later === null ? result : unstructuredError(await offer.call(later, name, given))
  })
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [...offer.resources] }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [] }))
  server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }) => ({
    contents: [await offer.read(caller, uri)],
  }))
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: offer.prompts.map(({ messages: _messages, ...listed }) => ({
      ...listed,
      arguments: [...listed.arguments],
    })),
  }))
  server.setRequestHandler(GetPromptRequestSchema, ({ params: { name, arguments: given = {} } }) =>
    buildPrompt(name, given),
  )
  return server
}

/** Clients of this era validate structured content against the output schema, even for errors. */
function unstructuredError(result: ToolResult): ToolResult {
  if (result.isError !== true) return result
  const { structuredContent: _, ...unstructured } = result
  return unstructured
}

/**
 * Asks the client to open the approval page, and waits for the decision. @returns null if the approval was not
 * decided.
 */
async function askOwner(
  approvals: Approvals,
  {
    caller,
    pending,
    extra,
    ending,
    transport,
  }: {
    caller: McpCaller
    pending: PendingApproval
    extra: RequestHandlerExtra<ServerRequest, ServerNotification>
    ending: AbortSignal
    transport: Transport
  },
): Promise<McpCaller | null> {
  const { id: elicitationId, message, url } = pending
  const stop = new AbortController()
  const signal = AbortSignal.any([extra.signal, ending, stop.signal])
  const params = { mode: 'url' as const, message, url, elicitationId }
  // A client that fails to answer has not opened the page; its call returns the original result.
  const elicited = extra
    .sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema, { timeout: DECIDE_MS, signal })
    .then(({ action }) => action === 'accept')
    .catch(() => false)
  void elicited.then((isOpened) => isOpened || stop.abort())
  const look = reportWaiting(extra._meta?.progressToken, extra.sendNotification)
  // The owner may decide before the client answers, or without the page being opened.
  const later = await approvals.awaitDecision(caller, pending, { withinMs: DECIDE_MS, signal, look })
  stop.abort()
  if (later !== null)
    // Sent directly, because the SDK's server requires the client's capabilities from an earlier request.
    await transport.send({
      jsonrpc: '2.0',
      method: 'notifications/elicitation/complete',
      params: { elicitationId },
    })
  return later
}
