/**
 * MCP server for the 2026 era: stateless, each request is self-describing.
 * @see https://modelcontextprotocol.io/specification/2026-07-28
 */
import {
  createMcpHandler,
  inputRequired,
  isLegacyRequest,
  Server,
  type ServerContext,
  type ServerNotifier,
} from '@modelcontextprotocol/server'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv'
import { z } from 'zod'
import { VERSION } from '../src/core/base/version.ts'
import { type Approvals, reportWaiting } from './approval.ts'
import type { McpCaller } from './caller.ts'
import { instructions } from './instructions.ts'
import type { Offer } from './offer.ts'
import { buildPrompt } from './prompts.ts'

/** Client cache lifetime in milliseconds; short, so that a pause or a new policy becomes visible soon. */
const TTL_MS = 5_000

/** Maximum wait for the owner after the page was opened; most clients time out after a minute. */
const DECIDE_MS = 45_000

/** Name of the input request and its response in the next round. */
const ANSWER = 'approval'

/** Shared by all servers. Tools validate their arguments themselves. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

export async function is2026(request: Request, message: unknown): Promise<boolean> {
  return !(await isLegacyRequest(request, message))
}

export interface Server2026Options {
  readonly offer: Offer
  readonly approvals: Approvals
  /** Aborted on shutdown. */
  readonly ending: AbortSignal
  readonly register?: ((server: Server, caller: McpCaller, notifier: ServerNotifier) => void) | undefined
}

export function create2026(
  serving: Server2026Options,
): (caller: McpCaller, message: { request: Request; message: unknown }) => Promise<Response> {
  // The library passes authInfo to its factory, which identifies the caller.
  const callers = new WeakMap<object, McpCaller>()
  const handler = createMcpHandler(
    ({ authInfo }) => {
      const caller = authInfo === undefined ? undefined : callers.get(authInfo)
      if (caller === undefined) throw new Error('a 2026-era request has no caller')
      const server = serverFor(serving, caller)
      serving.register?.(server, caller, handler.notify)
      return server
    },
    { legacy: 'reject' },
  )
  serving.ending.addEventListener('abort', () => void handler.close(), { once: true })
  return (caller, { request, message }) => {
    const { key } = caller.principal
    const authInfo = { token: '', clientId: key.id, scopes: [...key.scopes] }
    callers.set(authInfo, caller)
    return handler.fetch(request, { authInfo, parsedBody: message })
  }
}

function serverFor(serving: Server2026Options, caller: McpCaller): Server {
  const { offer } = serving
  const capabilities = { tools: {}, resources: {}, prompts: {} }
  const options = { capabilities, instructions, jsonSchemaValidator }
  const server = new Server({ name: 'bursar', version: VERSION }, options)
  // Results depend on the key, so shared caches must not store them.
  const cached = { ttlMs: TTL_MS, cacheScope: 'private' } as const
  server.setRequestHandler('tools/list', () => ({ tools: offer.tools(caller), ...cached }))
  server.setRequestHandler(
    'tools/call',
    ({ params: { name, arguments: given = {}, _meta: meta } }, context) =>
      callWithOwner(serving, caller, { name, given, meta, context }),
  )
  server.setRequestHandler('resources/list', () => ({ resources: [...offer.resources], ...cached }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [], ...cached }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => ({
    contents: [await offer.read(caller, uri)],
    ...cached,
  }))
  server.setRequestHandler('prompts/list', () => ({
    prompts: offer.prompts.map(({ messages: _messages, ...listed }) => ({
      ...listed,
      arguments: [...listed.arguments],
    })),
    ...cached,
  }))
  server.setRequestHandler('prompts/get', ({ params: { name, arguments: given = {} } }) =>
    buildPrompt(name, given),
  )
  return server
}

const accepted = z.looseObject({ action: z.literal('accept') })
const progress = z.looseObject({ progressToken: z.union([z.string(), z.number()]) })
const opensPages = z.looseObject({
  'io.modelcontextprotocol/clientCapabilities': z.looseObject({
    elicitation: z.looseObject({ url: z.looseObject({}) }),
  }),
})

/**
 * Calls a tool. If approval is required, the first round asks the client to open the page, and the next round waits
 * for the decision. @see https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
 */
async function callWithOwner(
  { offer, approvals, ending }: Server2026Options,
  caller: McpCaller,
  {
    name,
    given,
    meta,
    context,
  }: {
    name: string
    given: Record<string, unknown>
    meta: Record<string, unknown> | undefined
    context: ServerContext
  },
) {
  const result = await offer.call(caller, name, given, meta)
  const pending = approvals.parsePending(result)
  const { envelope, inputResponses, signal } = context.mcpReq
  if (pending === null || !opensPages.safeParse(envelope).success) return result
  const { message, url } = pending
  const answer = inputResponses?.[ANSWER]
  if (answer === undefined)
    return inputRequired({ inputRequests: { [ANSWER]: inputRequired.elicitUrl({ message, url }) } })
  if (!accepted.safeParse(answer).success) return result
  const waiting = {
    withinMs: DECIDE_MS,
    signal: AbortSignal.any([signal, ending]),
    look: reportWaiting(progress.safeParse(meta).data?.progressToken, context.mcpReq.notify),
  }
  const later = await approvals.awaitDecision(caller, pending, waiting)
  return later === null ? result : offer.call(later, name, given)
}
