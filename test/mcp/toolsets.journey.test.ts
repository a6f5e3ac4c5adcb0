/** `/mcp?toolsets=…` offers the tools of the named rooms, in both eras and over `bursar mcp`. */
import { Client as Client2026, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openScene, type Scene } from './scene.ts'

const RPC = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

describe('/mcp with toolsets', () => {
  let scene: Scene
  beforeAll(async () => {
    scene = await openScene()
  }, 60_000)
  afterAll(async () => {
    await scene?.close()
  })
  const buildUrl = (toolsets: string) => new URL(`/mcp?toolsets=${toolsets}`, scene.gateway.origin)
  const headers = () => ({ authorization: `Bearer ${scene.apiKey}` })
  const createClient = async (era: '2025' | '2026', toolsets: string) => {
    const requestInit = { headers: headers() }
    if (era === '2025') {
      const client = new Client2025({ name: 'test', version: '1' })
      const transport = new Transport2025(buildUrl(toolsets), { requestInit })
      // The SDK's transport type declares optional members without `undefined`; the value comes from the SDK.
      await client.connect(transport as Parameters<Client2025['connect']>[0])
      return client
    }
    const client = new Client2026(
      { name: 'test', version: '1' },
      { capabilities: {}, versionNegotiation: { mode: 'auto' } },
    )
    await client.connect(new StreamableHTTPClientTransport(buildUrl(toolsets), { requestInit }))
    return client
  }

  it.each(['2025', '2026'] as const)('lists and calls only tools of the rooms in %s', async (era) => {
    const client = await createClient(era, 'wallets,cards')
    const { tools } = await client.listTools()
    expect(new Set(tools.map(({ name }) => name.split('_')[0]))).toEqual(new Set(['wallets', 'cards']))
    expect(tools.map(({ name }) => name)).toContain('wallets_transfers_list')
    expect((await client.callTool({ name: 'wallets_get', arguments: {} })).isError ?? false).toBe(false)
    await expect(client.callTool({ name: 'rails_list', arguments: {} })).rejects.toThrow('Unknown tool')
    const { contents } = await client.readResource({ uri: 'bursar://limits' })
    expect(JSON.stringify(contents)).toContain('accountId')
    await client.close()
  })

  it('names an unknown room and the rooms that there are', async () => {
    for (const toolsets of ['wallets,vault', '', 'Wallets']) {
      const response = await fetch(buildUrl(toolsets), {
        method: 'POST',
        headers: {
          ...headers(),
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify(RPC),
      })
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { code: 'invalid_request', hint: expect.stringContaining('cards, ') },
      ])
    }
  })

  it('is narrowed by bursar mcp --toolsets', async () => {
    const client = new Client2025({ name: 'test', version: '1' })
    const command = ['.build/bin/main.js', 'mcp', '--url', scene.gateway.origin, '--key', scene.keyFile]
    const args = [...command, '--toolsets', 'context,wallets']
    await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'pipe' }))
    const { tools } = await client.listTools()
    expect(new Set(tools.map(({ name }) => name.split('_')[0]))).toEqual(new Set(['context', 'wallets']))
    await client.close()
  })
})
