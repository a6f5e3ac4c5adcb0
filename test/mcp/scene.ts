/** An owner and their agent at this worker's gateway, and the SDK's own clients to call it with. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { z } from 'zod'
import { demoScopes } from '../../src/sandbox/sandbox.ts'
import { bursar } from '../commands/bursar.ts'
import { type Gateway, sharedGateway } from '../journeys/gateway.ts'
import { newGuest } from '../journeys/people.ts'

/**
 * The test scene. @property apiKey of another account, with the scopes, limits and card of the sandbox's demo key.
 * @property keyFile of a registered agent.
 */
export interface Scene {
  readonly gateway: Pick<Gateway, 'origin'>
  readonly apiKey: string
  readonly keyFile: string
  readonly unregisteredKeyFile: string
  /** Makes an unregistered key. */
  newKey(name: string): Promise<{ path: string; publicKey: { x: string } }>
  close(): Promise<void>
}

/** Opens two accounts, and registers an agent that may read and transfer, up to 5 USD per transaction. */
export async function openScene(): Promise<Scene> {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-mcp-'))
  const gateway = { origin: sharedGateway() }
  const newKey = async (name: string) => {
    const path = join(directory, `${name}.json`)
    const { out } = await bursar(['agent', 'new', '--name', name, '--out', path])
    return { path, ...z.object({ publicKey: z.looseObject({ x: z.string() }) }).parse(JSON.parse(out)) }
  }
  const [agent, stranger] = [await newKey('agent'), await newKey('stranger')]
  const [owner, other] = [await newGuest(gateway.origin), await newGuest(gateway.origin)]
  await owner.send('POST', '/api/agents/keys', {
    name: 'Bot',
    publicKey: agent.publicKey,
    scopes: ['wallets:read', 'wallets:transfer'],
    policy: {
      perTransaction: { max: '5' },
      dailyBudget: { max: '12' },
      categories: { allow: ['transfer'] },
    },
  })
  const { body: made } = await other.send('POST', '/api/developer/keys', {
    name: 'Demo',
    scopes: demoScopes,
    policy: {
      perTransaction: { max: '25' },
      dailyBudget: { max: '100' },
      categories: { allow: ['transfer', 'card', 'invest', 'swap', 'x402'] },
    },
  })
  const { id: agentId, key: apiKey } = z.object({ id: z.string(), key: z.string() }).parse(made)
  const { body: listed } = await other.send('GET', '/api/cards')
  const { cards } = z.object({ cards: z.tuple([z.looseObject({ id: z.string() })]) }).parse(listed)
  await other.send('PATCH', '/api/cards', { cardId: cards[0].id, agentId })
  return {
    gateway,
    apiKey,
    keyFile: agent.path,
    unregisteredKeyFile: stranger.path,
    newKey,
    close: async () => rmSync(directory, { recursive: true, force: true }),
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
export async function httpClient({ gateway, apiKey }: Pick<Scene, 'gateway' | 'apiKey'>): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', gateway.origin), {
    requestInit: { headers: { authorization: `Bearer ${apiKey}` } },
  })
  // The SDK's transport type declares optional members without `undefined`; the value comes from the SDK.
  await client.connect(transport as Parameters<Client['connect']>[0])
  return client
}

/** The problem inside a failed result. */
export function parseProblem({ isError, content }: Awaited<ReturnType<Client['callTool']>>) {
  const [first] = z.array(z.object({ text: z.string() })).parse(content)
  if (isError !== true) throw new Error('the call did not fail')
  return z.looseObject({ code: z.string() }).parse(JSON.parse(first?.text ?? ''))
}
