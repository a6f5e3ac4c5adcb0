/** A gateway with an owner and their agent, and the SDK's own clients to call it with. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'

/** The test scene. @property keyFile of a registered agent. @property strangerFile of an unregistered one. */
export interface Scene {
  readonly gateway: Gateway
  readonly demoApiKey: string
  readonly keyFile: string
  readonly unregisteredKeyFile: string
  /** Makes an unregistered key. */
  newKey(name: string): Promise<{ path: string; publicKey: { x: string } }>
  close(): Promise<void>
}

/** Starts a gateway and registers an agent that may read and transfer, up to 5 USD per transaction. */
export async function openScene(): Promise<Scene> {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-mcp-'))
  const gateway = await startGateway({ CHAIN: 'simulated', RATE_MUTATIONS: '100000/60' })
  const newKey = async (name: string) => {
    const path = join(directory, `${name}.json`)
    const { out } = await bursar(['agent', 'new', '--name', name, '--out', path])
    return { path, ...z.object({ publicKey: z.looseObject({ x: z.string() }) }).parse(JSON.parse(out)) }
  }
  const [agent, stranger] = [await newKey('agent'), await newKey('stranger')]
  const read = async (path: string, init: RequestInit = {}) =>
    z
      .object({ sessionToken: z.string().default(''), demoApiKey: z.string().default('') })
      .parse(await (await fetch(`${gateway.origin}${path}`, init)).json())
  const { sessionToken } = await read('/api/auth/guest', { method: 'POST' })
  await read('/api/agents/keys', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${sessionToken}` },
    body: JSON.stringify({
      name: 'Bot',
      publicKey: agent.publicKey,
      scopes: ['wallets:read', 'wallets:transfer'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '12' },
        categories: { allow: ['transfer'] },
      },
    }),
  })
  return {
    gateway,
    demoApiKey: (await read('/sandbox/credentials')).demoApiKey,
    keyFile: agent.path,
    unregisteredKeyFile: stranger.path,
    newKey,
    close: async () => {
      await gateway.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Transport to `bursar mcp`, not yet connected. */
export function stdioTransport(url: string, keyFile: string): StdioClientTransport {
  return new StdioClientTransport({
    command: process.execPath,
    args: ['.build/bin/main.js', 'mcp', '--url', url, '--key', keyFile],
    stderr: 'pipe',
  })
}

/** A connected client over Streamable HTTP with an API key. */
export async function httpClient({
  gateway,
  demoApiKey,
}: Pick<Scene, 'gateway' | 'demoApiKey'>): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', gateway.origin), {
    requestInit: { headers: { authorization: `Bearer ${demoApiKey}` } },
  })
  // // The SDK's transport type declares optional members without `undefined`; the value comes from the SDK.
  await client.connect(transport as Parameters<Client['connect']>[0])
  return client
}

/** The problem inside a failed result. */
export function problemOf({ isError, content }: Awaited<ReturnType<Client['callTool']>>) {
  const [first] = z.array(z.object({ text: z.string() })).parse(content)
  if (isError !== true) throw new Error('the call did not fail')
  return z.looseObject({ code: z.string() }).parse(JSON.parse(first?.text ?? ''))
}
