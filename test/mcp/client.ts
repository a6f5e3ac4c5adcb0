/** The MCP SDK's own client over Streamable HTTP. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import {
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { z } from 'zod'

/** Connects to a gateway. @param options carry the credential: a header of all requests, or a `fetch` that signs them. */
export async function connectMcp(
  origin: string,
  options: StreamableHTTPClientTransportOptions,
): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', origin), options)
  // The SDK's transport type declares optional members without `undefined`; the value comes from the SDK.
  await client.connect(transport as Parameters<Client['connect']>[0])
  return client
}

/** Calls a tool. @returns the JSON object in the first text of its result. */
export async function callMcp(
  client: Client,
  name: string,
  given: Record<string, unknown>,
): Promise<{ isError: boolean; body: Record<string, unknown> }> {
  const { isError, content } = await client.callTool({ name, arguments: given })
  const [first] = z.array(z.object({ text: z.string() })).parse(content)
  return { isError: isError === true, body: z.looseObject({}).parse(JSON.parse(first?.text ?? '{}')) }
}
