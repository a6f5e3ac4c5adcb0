/** The transports for one operation with one key: REST, MCP of 2025 and MCP of 2026, each by its own client. */
import { Client as Client2026, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js'
import { afterAll, beforeAll, expect } from 'vitest'
import { z } from 'zod'
import { tools } from '../../tools/index.ts'
import { requestReplayable } from '../journeys/people.ts'
import { httpClient, openScene, type Scene } from './scene.ts'

const record = z.record(z.string(), z.unknown())

/** An operation's result, independent of the transport. */
export interface OperationResult {
  readonly isError: boolean
  readonly body: Record<string, unknown>
  /** True for the stored answer of an earlier call: over REST a header, over MCP a member. */
  readonly replayed: boolean
}

/** Calls an operation over one transport. */
type Ask = (
  operation: string,
  input: Record<string, unknown>,
  idempotencyKey?: string,
) => Promise<OperationResult>

/** The transports, and the clients behind two of them. */
export interface Transports {
  readonly old: Client2025
  readonly modern: Client2026
  /** Calls an operation over each transport, one after the other. */
  everywhere(
    operation: string,
    buildInput: (way: string) => Record<string, unknown>,
    nameKey?: (way: string) => string,
  ): Promise<OperationResult[]>
  readonly rest: Ask
  close(): Promise<void>
}

/** The routes of the registry, by MCP tool name. */
const routes = new Map(tools.map(({ name, route }) => [name.replaceAll('.', '_'), route.split(' ')] as const))

/** Opens the transports with a scene's API key. */
export async function openTransports(scene: Pick<Scene, 'gateway' | 'apiKey'>): Promise<Transports> {
  const old = await httpClient(scene)
  const modern = new Client2026(
    { name: 'test', version: '1' },
    { capabilities: {}, versionNegotiation: { mode: 'auto' } },
  )
  const headers = { authorization: `Bearer ${scene.apiKey}` }
  await modern.connect(
    new StreamableHTTPClientTransport(new URL('/mcp', scene.gateway.origin), { requestInit: { headers } }),
  )
  const args = (input: Record<string, unknown>, idempotencyKey?: string) =>
    idempotencyKey === undefined ? input : { ...input, idempotency_key: idempotencyKey }
  const rest: Ask = async (operation, input, idempotencyKey) => {
    const [method = 'GET', path = ''] = routes.get(operation) ?? []
    const { id, ...others } = input
    const members = path.includes('{id}') ? others : input
    const query = method === 'GET' ? `?${new URLSearchParams(members as Record<string, string>)}` : ''
    const target = `${path.replace('{id}', String(id))}${query}`
    const { status, body, isReplayed } = await requestReplayable(scene.gateway.origin, method, target, {
      ...(method === 'GET' || Object.keys(members).length === 0 ? {} : { body: members }),
      headers: { ...headers, ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }) },
    })
    return { isError: status !== 200, body, replayed: isReplayed }
  }
  const ways: Record<string, Ask> = {
    rest,
    'mcp-2025': async (name, input, idempotencyKey) =>
      parseResult(await old.callTool({ name, arguments: args(input, idempotencyKey) })),
    'mcp-2026': async (name, input, idempotencyKey) =>
      parseResult(await modern.callTool({ name, arguments: args(input, idempotencyKey) })),
  }
  return {
    old,
    modern,
    rest,
    everywhere: async (operation, buildInput, nameKey) => {
      const results: OperationResult[] = []
      for (const [way, ask] of Object.entries(ways))
        results.push(await ask(operation, buildInput(way), nameKey?.(way)))
      return results
    },
    close: async () => {
      await modern.close()
      await old.close()
    },
  }
}

function parseResult({
  isError,
  content,
  structuredContent,
  _meta,
}: Record<string, unknown>): OperationResult {
  const [first] = z.array(z.looseObject({ text: z.string() })).parse(content)
  const text = record.parse(JSON.parse(first?.text ?? '{}'))
  if (isError !== true) expect(structuredContent).toEqual(text)
  const { replayed, ...body } = text
  const meta = record.catch({}).parse(_meta)['bursar/replayed']
  // `policy_simulate` has a count of that name.
  if (meta === undefined) return { isError: isError === true, body: text, replayed: false }
  expect(meta).toBe(replayed)
  return { isError: isError === true, body, replayed: replayed === true }
}

/** Opens a scene and its transports for a suite. @returns them, within tests and hooks. */
export function openEveryWay(): () => { readonly scene: Scene; readonly ways: Transports } {
  let opened: { scene: Scene; ways: Transports } | undefined
  beforeAll(async () => {
    const scene = await openScene()
    opened = { scene, ways: await openTransports(scene) }
  }, 60_000)
  afterAll(async () => {
    await opened?.ways.close()
    await opened?.scene.close()
  })
  return () => {
    if (opened === undefined) throw new Error('They open before the tests.')
    return opened
  }
}
