/** The server for clients of the 2025 era (protocols up to 2025-11-25). @see https://modelcontextprotocol.io/specification/2025-11-25 */
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
import { VERSION } from '../src/base/version.ts'
import type { Approvals, PendingApproval } from './approval.ts'
import type { McpCaller } from './caller.ts'
import type { ElicitationClient } from './exchange.ts'
import { openExchange } from './exchange.ts'
import { instructions } from './instructions.ts'
import type { Offer } from './offer.ts'
import { buildPrompt } from './prompts.ts'
import type { ToolResult } from './result.ts'

/** How long a call waits for its owner, who has to open a page and may have to sign in. Its client gives up when it likes. */
const DECIDE_MS = 10 * 60_000

/** Shared: a server of its own would make one each, which costs more than the rest of it. We check arguments ourselves. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/** One message of a client. @property asking null: a client without a session, or what cannot be asked. */
export interface Asked2025 {
  readonly message: {
    readonly id: string | number
    readonly method: string
    readonly params?: Record<string, unknown> | undefined
  }
  readonly asking: (ElicitationClient & { readonly canOpenPages: boolean }) | null
  /** Headers of the response, such as the session's id. */
  readonly headers: Readonly<Record<string, string>>
  /** Aborted when the process is told to end. */
  readonly ending: AbortSignal
  /** Is told how the request is cancelled, and when that is of no use any more. */
  readonly onOpen: (cancel: () => void, closed: Promise<void>) => void
}

/** What serves: the offer, how calls wait for the owner, and what else a server is given. */
export interface Server2025Options {
  readonly offer: Offer
  readonly approvals: Approvals
  readonly register?: ((server: Server, caller: McpCaller) => void) | undefined
}

/** Answers one request. One server a request: its credential comes with each, and nothing is kept between. */
export async function answer2025(
  serving: Server2025Options,
  caller: McpCaller,
  asked: Asked2025,
): Promise<Response> {
  const { message, asking, headers } = asked
  const { transport, response, closed, cancel } = openExchange(asking, headers)
  const server = serverFor(serving, caller, { ...asked, transport })
  serving.register?.(server, caller)
  await server.connect(transport)
  asked.onOpen(() => cancel(message.id), closed)
  transport.onmessage?.({ jsonrpc: '2.0', ...withoutTask(message) })
  return response
}

/** Who has no tasks answers as if none was asked for. @see https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks */
function withoutTask<Message extends { readonly params?: unknown }>(message: Message): Message {
  const { params } = message
  if (typeof params !== 'object' || params === null || !('task' in params)) return message
  const { task: _, ...others } = params
  return { ...message, params: others }
}

function serverFor(
  { offer, approvals }: Server2025Options,
  caller: McpCaller,
  asked: Asked2025 & { readonly transport: Transport },
): Server {
  const capabilities = { tools: { listChanged: true }, resources: {}, prompts: {} }
  const options = { capabilities, instructions, jsonSchemaValidator }
  const server = new Server({ name: 'bursar', version: VERSION }, options)
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: offer.tools(caller) }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const { name, arguments: given = {} } = params
    const result = unstructuredError(await offer.call(caller, name, given, params._meta))
    const pending = asked.asking?.canOpenPages === true ? approvals.pendingOf(result) : null
    if (pending === null) return result
    const later = await askOwner(approvals, { caller, pending, extra, ...asked })
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

/** Clients of this era check what is structured against the output schema, even of an error. */
function unstructuredError(result: ToolResult): ToolResult {
  if (result.isError !== true) return result
  const { structuredContent: _, ...unstructured } = result
  return unstructured
}

/** Has the client open the page for its user, and waits for what the owner decides there. @returns null where nothing is. */
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
  const over = new AbortController()
  const signal = AbortSignal.any([extra.signal, ending, over.signal])
  const params = { mode: 'url' as const, message, url, elicitationId }
  // A client that does not answer as it should has not opened the page: its call is told what any other is told.
  const asked = extra
    .sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema, { timeout: DECIDE_MS, signal })
    .then(({ action }) => action === 'accept')
    .catch(() => false)
  void asked.then((isOpened) => isOpened || over.abort())
  let looks = 0
  const progressToken = extra._meta?.progressToken
  const look = async () => {
    looks += 1
    if (progressToken !== undefined)
      await extra.sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress: looks, message: 'Waiting for the owner.' },
      })
  }
  // The owner may decide before the client has answered, or where its page never opened.
  const later = await approvals.decided(caller, pending, { withinMs: DECIDE_MS, signal, look })
  over.abort()
  if (later !== null)
    // The SDK's server would have to have seen the client's capabilities itself, in a request that came before.
    await transport.send({
      jsonrpc: '2.0',
      method: 'notifications/elicitation/complete',
      params: { elicitationId },
    })
  return later
}
