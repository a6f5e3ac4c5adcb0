/**
 * MCP over Streamable HTTP: checks access and dispatches by protocol era. State that outlives a request is in the
 * shared store.
 */

import type { Server as Server2025 } from '@modelcontextprotocol/sdk/server/index.js'
import type { Server as Server2026, ServerNotifier } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { parseJson } from '../src/core/base/json.ts'
import { namesOfOrigin } from '../src/core/base/origins.ts'
import type { Principal } from '../src/core/base/principal.ts'
import { Failure } from '../src/core/failures/failure.ts'
import type { AuthenticatedRequest } from '../src/kernel/authenticated-request.ts'
import type { CatalogueEntry } from '../src/kernel/catalogue.ts'
import type { Services } from '../src/kernel/context.ts'
import type { Seller } from '../src/rails/selling/x402/sale.ts'
import { createApprovals } from './approval.ts'
import type { McpCaller } from './caller.ts'
import { createOffer, type Offer } from './offer.ts'
import { refuseMalformed } from './refuse-malformed.ts'
import { create2026, is2026 } from './server-2026.ts'
import { createStreamable2025 } from './streamable-2025.ts'

/** Hooks that register additional handlers on a server. */
export interface Registrations {
  readonly on2025: (server: Server2025, offered: { offer: Offer; caller: McpCaller }) => void
  readonly on2026: (
    server: Server2026,
    offered: { offer: Offer; caller: McpCaller; notifier: ServerNotifier },
  ) => void
}

/**
 * Handles `/mcp`. @param seller sells to callers with their own payment. @param ending aborted on shutdown; ends all
 * waits and streams. @throws Failure for errors before JSON-RPC.
 */
export function mcpHandler(
  catalogue: readonly CatalogueEntry[],
  services: Services,
  { seller, ending, registrations }: { seller: Seller; ending: AbortSignal; registrations?: Registrations },
): (mounted: AuthenticatedRequest) => Promise<Response> {
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
  const hosts = origins.map((origin) => new URL(origin).host)
  return async ({ request, body, principal, ...from }) => {
    requireOwnOrigin(request, { origins, hosts })
    if (principal.kind !== 'key') throw keyRequired(principal)
    const caller = { principal, ...from, toolsets: toolsetsIn(request, offer.rooms) }
    if (request.method !== 'POST') return streamable2025.answerOther(caller, request)
    const message = parseBody(body)
    // Protocols since 2025-06-18 have no batches, and a batch would count as one request against the limits.
    if (Array.isArray(message))
      throw new Failure(
        'invalid_request',
        'Batches are not supported: send one JSON-RPC message per request.',
      )
    requireGrantedScope(offer, caller, message)
    const era = (await is2026(request, message)) ? '2026' : '2025'
    const refused = refuseMalformed(message, { era })
    if (refused !== null) return Response.json(refused)
    const incoming = { request, message }
    return era === '2026' ? answer2026(caller, incoming) : streamable2025.answerPost(caller, incoming)
  }
}

/**
 * OAuth clients can request more scopes, so a missing scope is an HTTP challenge, not a tool result.
 * @throws Failure `insufficient_scope`.
 */
function requireGrantedScope(offer: Offer, caller: McpCaller, message: unknown): void {
  if (caller.principal.key.kind !== 'grant') return
  const called = toolCall.safeParse(message)
  if (called.success) offer.requireScope(caller, called.data.params.name)
}

const toolCall = z.looseObject({
  method: z.literal('tools/call'),
  params: z.looseObject({ name: z.string() }),
})

function parseBody(body: Uint8Array): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (cause) {
    const why = cause instanceof SyntaxError ? cause.message.slice(0, 120) : 'it is not UTF-8'
    throw new Failure('invalid_request', `The body is not valid JSON: ${why}.`, {
      issues: [{ path: '', message: 'not valid JSON' }],
    })
  }
}

/**
 * The rooms that the client asks for in `?toolsets=wallets,cards`, or null for all.
 * @throws Failure `invalid_request` for an unknown room, which would otherwise look like a gateway without tools.
 */
function toolsetsIn(request: Request, rooms: readonly string[]): ReadonlySet<string> | null {
  const given = new URL(request.url).searchParams.getAll('toolsets')
  if (given.length === 0) return null
  const asked = given.flatMap((text) => text.split(',')).map((room) => room.trim())
  const unknown = asked.filter((room) => !rooms.includes(room))
  if (unknown.length === 0) return new Set(asked)
  const message = `there is no toolset ${unknown.map((room) => JSON.stringify(room.slice(0, 40))).join(', ')}`
  throw new Failure('invalid_request', `toolsets: ${message}.`, {
    issues: [{ path: 'toolsets', message }],
    hint: `The toolsets are ${rooms.join(', ')}; without the parameter all tools are offered.`,
  })
}

/** Rejects DNS rebinding and cross-site requests. @throws Failure `cross_site_request`. */
function requireOwnOrigin(
  { headers }: Request,
  { origins, hosts }: { readonly origins: readonly string[]; readonly hosts: readonly string[] },
): void {
  const host = headers.get('host') ?? ''
  const from = headers.get('origin')
  if (hosts.includes(host.toLowerCase()) && (from === null || origins.includes(from))) return
  throw new Failure('cross_site_request', 'The Host or Origin header does not name this gateway.', {
    hint: `Connect to ${origins[0]}/mcp.`,
  })
}

function keyRequired(principal: Principal): Failure {
  const detail =
    principal.kind === 'public' ? 'MCP requires a key.' : 'MCP requires a key; sessions are not accepted.'
  return new Failure('unauthenticated', detail, {
    hint: 'Authorize with OAuth: the metadata is at /.well-known/oauth-protected-resource/mcp, which WWW-Authenticate names. Or send a developer API key as "Authorization: Bearer bsk_…", or sign each request as an agent; "bursar mcp --url … --key …" signs for you.',
  })
}
