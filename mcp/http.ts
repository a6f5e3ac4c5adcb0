/** MCP over Streamable HTTP: who may ask, and which era of the protocol answers. What outlives a request is in the shared store. */

import type { Server as Server2025 } from '@modelcontextprotocol/sdk/server/index.js'
import type { Server as Server2026, ServerNotifier } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { parseJson } from '../src/base/json.ts'
import { namesOfOrigin } from '../src/base/origins.ts'
import type { Principal } from '../src/base/principal.ts'
import { Failure } from '../src/failures/failure.ts'
import type { CatalogueEntry } from '../src/kernel/catalogue.ts'
import type { Services } from '../src/kernel/context.ts'
import type { Seller } from '../src/x402/sale.ts'
import { createApprovals } from './approval.ts'
import type { McpCaller } from './caller.ts'
import { malformed } from './malformed.ts'
import { createOffer, type Offer } from './offer.ts'
import { create2026, is2026 } from './server-2026.ts'
import { createStreamable2025 } from './streamable-2025.ts'

/** A request after the way in that all paths share. */
export interface McpRequest {
  readonly request: Request
  readonly body: Uint8Array
  readonly principal: Principal
  readonly requestId: string
  readonly now: Date
  readonly clientAddress: string
}

/** What a server is given beside the catalogue's tools. */
export interface Registrations {
  readonly on2025: (server: Server2025, offered: { offer: Offer; caller: McpCaller }) => void
  readonly on2026: (
    server: Server2026,
    offered: { offer: Offer; caller: McpCaller; notifier: ServerNotifier },
  ) => void
}

/**
 * Answers `/mcp`. @param seller sells to callers who pay by themselves. @param ending aborted when the process is told to end: nothing waits or streams any longer.
 * @throws Failure where the request does not get as far as JSON-RPC.
 */
export function mcpHandler(
  catalogue: readonly CatalogueEntry[],
  services: Services,
  { seller, ending, registrations }: { seller: Seller; ending: AbortSignal; registrations?: Registrations },
): (mounted: McpRequest) => Promise<Response> {
  const offer = createOffer(catalogue, services, seller)
  const shared = { offer, approvals: createApprovals(services), ending }
  const streamable2025 = createStreamable2025(services, {
    ...shared,
    register: registrations && ((server, caller) => registrations.on2025(server, { offer, caller })),
  })
  const answer2026 = create2026({
    ...shared,
    register:
      registrations &&
      ((server, caller, notifier) => registrations.on2026(server, { offer, caller, notifier })),
  })
  const origins = namesOfOrigin(services.settings.origin)
  return async ({ request, body, principal, ...from }) => {
    requireOurs(request, origins)
    if (principal.kind !== 'key') throw keyNeeded(principal)
    const caller = { principal, ...from }
    if (request.method !== 'POST') return streamable2025.answerOther(caller, request)
    const message = parsedBodyOf(body)
    // Protocols since 2025-06-18 have no batches, and one would pass the limits as a single request.
    if (Array.isArray(message))
      throw new Failure('invalid_request', 'A batch is not taken: send one JSON-RPC message a request.')
    requireGrantedScope(offer, principal, message)
    const era = (await is2026(request, message)) ? '2026' : '2025'
    const refused = malformed(message, { era })
    if (refused !== null) return Response.json(refused)
    const asked = { request, message }
    return era === '2026' ? answer2026(caller, asked) : streamable2025.answerPost(caller, asked)
  }
}

/**
 * A client that was let in by OAuth can ask the owner for more: it is told what is missing by a challenge, not by a result.
 * @throws Failure `insufficient_scope`.
 */
function requireGrantedScope(
  offer: Offer,
  principal: Extract<Principal, { kind: 'key' }>,
  message: unknown,
): void {
  const called = toolCall.safeParse(message)
  if (principal.key.kind === 'grant' && called.success) offer.requireScope(principal, called.data.params.name)
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

/** Neither a page that was made to resolve to us nor another site's page may ask. @throws Failure `cross_site_request`. */
function requireOurs(request: Request, origins: readonly string[]): void {
  const host = request.headers.get('host') ?? ''
  const from = request.headers.get('origin')
  const isOurHost = origins.some((origin) => new URL(origin).host === host.toLowerCase())
  if (isOurHost && (from === null || origins.includes(from))) return
  throw new Failure('cross_site_request', 'The Host or Origin of this request is not ours.', {
    hint: `Connect to ${origins[0]}/mcp.`,
  })
}

function keyNeeded(principal: Principal): Failure {
  const detail =
    principal.kind === 'public' ? 'MCP needs a key.' : 'MCP is for keys: a session cannot be used here.'
  return new Failure('unauthenticated', detail, {
    hint: 'Send a developer API key as "Authorization: Bearer bsk_…", or sign each request as an agent; "bursar mcp --url … --key …" does it for you.',
  })
}
