/** The server for clients of the 2025 era (protocols up to 2025-11-25). @see https://modelcontextprotocol.io/specification/2025-11-25 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import { z } from 'zod'
import { VERSION } from '../src/version.ts'
import { instructions } from './instructions.ts'
import type { McpCaller, Offer } from './offer.ts'
import { promptOf } from './prompts.ts'

/** Shared: a server of its own would make one each, which costs more than the rest of it. We check arguments ourselves. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/** Answers one message. One server a request: its credential comes with each, and nothing is kept between. */
export async function answer2025(
  offer: Offer,
  caller: McpCaller,
  { request, message }: { request: Request; message: unknown },
): Promise<Response> {
  const malformed = malformedCall(message)
  if (malformed !== null) return Response.json(malformed)
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await serverFor(offer, caller).connect(transport)
  return transport.handleRequest(request, { parsedBody: message })
}

function serverFor(offer: Offer, caller: McpCaller): Server {
  const capabilities = { tools: {}, resources: {}, prompts: {} }
  const options = { capabilities, instructions, jsonSchemaValidator }
  const server = new Server({ name: 'bursar', version: VERSION }, options)
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: offer.tools(caller) }))
  server.setRequestHandler(CallToolRequestSchema, ({ params: { name, arguments: given = {} } }) =>
    offer.call(caller, name, given),
  )
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
    promptOf(name, given),
  )
  return server
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
