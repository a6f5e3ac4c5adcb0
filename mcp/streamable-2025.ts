/**
 * Streamable HTTP for clients up to 2025-11-25: POST sends a message, GET opens a stream, DELETE ends a session.
 * Clients without a session are served too, but receive no elicitations.
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
 */
import {
  CancelledNotificationSchema,
  InitializeRequestSchema,
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import { Failure } from '../src/core/failures/failure.ts'
import type { Services } from '../src/kernel/context.ts'
import {
  answerQuestion,
  awaitAnswer,
  awaitCancellation,
  cancelAsking,
  closeQuestion,
  openQuestion,
} from '../src/people/mcp-sessions/questions.ts'
import {
  endMcpSession,
  findMcpSession,
  type McpSession,
  openMcpSession,
} from '../src/people/mcp-sessions/sessions.ts'
import type { McpCaller } from './caller.ts'
import { answer2025, type IncomingMessage2025, type Server2025Options } from './server-2025.ts'
import { createWatch } from './watch.ts'

const SESSION = 'mcp-session-id'

/** JSON-RPC and SDK transport error codes for requests rejected before a server. */
const codes = { notJsonRpc: -32700, transport: -32000 } as const

export interface Streamable2025 {
  answerPost(caller: McpCaller, asked: { request: Request; message: unknown }): Promise<Response>
  /** Handles GET and DELETE. @throws Failure `not_found` for a session that does not belong to the key. */
  answerOther(caller: McpCaller, request: Request): Promise<Response>
}

export function createStreamable2025(
  services: Pick<Services, 'database' | 'clock' | 'log'>,
  serving: Server2025Options & { readonly ending: AbortSignal },
): Streamable2025 {
  const { database, clock } = services
  const watch = createWatch(services, serving)
  /** Cancel functions of pending requests, by key, session and id. */
  const pending = new Map<string, () => void>()

  /** @throws Failure `not_found` for a session that does not belong to the key; the client then initializes again. */
  async function requireSession({ principal, now }: McpCaller, id: string): Promise<McpSession> {
    const session = await findMcpSession(database, { id, keyId: principal.key.id, now })
    if (session !== undefined) return session
    throw new Failure('not_found', 'This key has no such session.', {
      hint: 'Initialize again, without Mcp-Session-Id.',
    })
  }

  const createElicitation = (session: McpSession): IncomingMessage2025['asking'] => ({
    canOpenPages: opensPages.safeParse(session.capabilities).success,
    open: (requestId) => openQuestion(database, { session, requestId, now: clock() }),
    answerTo: (id, signal) =>
      awaitAnswer(database, id, AbortSignal.any([signal, serving.ending])).catch((err: unknown) => {
        services.log.warn({ err }, 'reading a client answer failed')
      }),
    awaitCancellation: (id, signal) =>
      awaitCancellation(database, id, AbortSignal.any([signal, serving.ending])).catch((err: unknown) => {
        services.log.warn({ err }, 'reading a client cancellation failed')
        return false
      }),
    close: (id) =>
      closeQuestion(database, id).catch((err: unknown) => {
        services.log.warn({ err }, 'deleting an elicitation failed')
      }),
  })

  return {
    async answerPost(caller, { request, message: raw }) {
      const { message, refused } = parseMessage(request, raw)
      if (message === undefined) return refused
      const isRequest = 'method' in message && 'id' in message
      const initialize =
        'method' in message && message.method === 'initialize'
          ? InitializeRequestSchema.safeParse(message).data
          : undefined
      const id = request.headers.get(SESSION)
      const session = id === null || initialize !== undefined ? null : await requireSession(caller, id)
      const nameRequest = (asked: string | number) =>
        JSON.stringify([caller.principal.key.id, session === null ? null : id, asked])
      if (!isRequest) {
        const { data: cancelled } = CancelledNotificationSchema.safeParse(message)
        const { requestId } = cancelled?.params ?? {}
        if (requestId !== undefined) {
          const cancel = pending.get(nameRequest(requestId))
          if (cancel !== undefined) cancel()
          // The call may wait at another instance.
          else if (session !== null) await cancelAsking(database, { session, requestId })
        }
        const { data: answer } = answering.safeParse(message)
        if (session !== null && answer !== undefined)
          await answerQuestion(database, { session, id: answer.id, answer })
        return new Response(null, { status: 202 })
      }
      const headers: Record<string, string> = id === null || session === null ? {} : { [SESSION]: id }
      if (initialize !== undefined) {
        const { capabilities } = initialize.params
        const opened = { keyId: caller.principal.key.id, capabilities, now: caller.now }
        headers[SESSION] = await openMcpSession(database, opened)
      }
      const asking = session === null ? null : createElicitation(session)
      const name = nameRequest(message.id)
      const onOpen: IncomingMessage2025['onOpen'] = (cancel, closed) => {
        pending.set(name, cancel)
        void closed.then(() => {
          if (pending.get(name) === cancel) pending.delete(name)
        })
      }
      return answer2025(serving, caller, { message, asking, headers, ending: serving.ending, onOpen })
    },
    async answerOther(caller, request) {
      const id = request.headers.get(SESSION)
      // Clients without sessions probe for a stream; 405 means there is none.
      if (id === null)
        return refusal(405, codes.transport, `${request.method} requires the Mcp-Session-Id header.`, {
          allow: 'POST',
        })
      const session = await requireSession(caller, id)
      if (request.method === 'GET')
        return request.headers.get('accept')?.includes('text/event-stream') === true
          ? watch(caller, { id, session })
          : refusal(406, codes.transport, 'GET opens a stream and requires "Accept: text/event-stream".')
      await endMcpSession(database, session)
      return new Response(null, { status: 204 })
    },
  }
}

/** A client's answer to an elicitation. */
const answering = z.looseObject({ id: z.string() })

const opensPages = z.looseObject({ elicitation: z.looseObject({ url: z.looseObject({}) }) })

/** Validates the transport headers and parses the message. */
function parseMessage(
  request: Request,
  raw: unknown,
): { message: JSONRPCMessage; refused?: never } | { message?: undefined; refused: Response } {
  const { headers } = request
  const accept = headers.get('accept') ?? ''
  if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
    return {
      refused: refusal(406, codes.transport, 'Accept both application/json and text/event-stream.'),
    }
  if (!/^application\/json\s*(;|$)/i.test(headers.get('content-type') ?? ''))
    return { refused: refusal(415, codes.transport, 'Send "Content-Type: application/json".') }
  const version = headers.get('mcp-protocol-version')
  if (version !== null && !SUPPORTED_PROTOCOL_VERSIONS.includes(version))
    return {
      refused: refusal(
        400,
        codes.transport,
        `Unsupported protocol version: ${version.slice(0, 32)} (supported versions: ${SUPPORTED_PROTOCOL_VERSIONS.join(', ')})`,
      ),
    }
  const { data } = JSONRPCMessageSchema.safeParse(raw)
  return data === undefined
    ? { refused: refusal(400, codes.notJsonRpc, 'Parse error: the body is not a JSON-RPC message.') }
    : { message: data }
}

function refusal(
  status: number,
  code: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ jsonrpc: '2.0', id: null, error: { code, message } }, { status, headers })
}
