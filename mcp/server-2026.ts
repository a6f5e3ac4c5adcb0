/** The server for clients of the 2026 era: stateless, each request says what it is. @see https://modelcontextprotocol.io/specification/2026-07-28 */
import { createMcpHandler, isLegacyRequest, Server } from '@modelcontextprotocol/server'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv'
import { VERSION } from '../src/version.ts'
import { instructions } from './instructions.ts'
import type { McpCaller, Offer } from './offer.ts'
import { promptOf } from './prompts.ts'

/** How long a client may keep what it was told: a pause or a new policy must show soon. Milliseconds. */
const TTL_MS = 5_000

/** Shared: a server of its own would make one each. We check arguments ourselves. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/** Whether a message is one of the 2026 era. */
export async function is2026(request: Request, message: unknown): Promise<boolean> {
  return !(await isLegacyRequest(request, message))
}

/** Answers one message. */
export function create2026(
  offer: Offer,
): (caller: McpCaller, message: { request: Request; message: unknown }) => Promise<Response> {
  // The library hands its factory what it was given beside the request: that is how the server knows its caller.
  const callers = new WeakMap<object, McpCaller>()
  const handler = createMcpHandler(
    ({ authInfo }) => {
      const caller = authInfo === undefined ? undefined : callers.get(authInfo)
      if (caller === undefined) throw new Error('a request of the 2026 era has no caller')
      return serverFor(offer, caller)
    },
    { legacy: 'reject' },
  )
  return (caller, { request, message }) => {
    const { key } = caller.principal
    const authInfo = { token: '', clientId: key.id, scopes: [...key.scopes] }
    callers.set(authInfo, caller)
    return handler.fetch(request, { authInfo, parsedBody: message })
  }
}

function serverFor(offer: Offer, caller: McpCaller): Server {
  const capabilities = { tools: {}, resources: {}, prompts: {} }
  const options = { capabilities, instructions, jsonSchemaValidator }
  const server = new Server({ name: 'bursar', version: VERSION }, options)
  // What a key may see is its own: no cache between may share it.
  const cached = { ttlMs: TTL_MS, cacheScope: 'private' } as const
  server.setRequestHandler('tools/list', () => ({ tools: offer.tools(caller), ...cached }))
  server.setRequestHandler('tools/call', ({ params: { name, arguments: given = {} } }) =>
    offer.call(caller, name, given),
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
    promptOf(name, given),
  )
  return server
}
