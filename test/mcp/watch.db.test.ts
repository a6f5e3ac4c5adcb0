/** The stream of a session: its notifications, and its end. */
import { expect, it } from 'vitest'
import { mcpHandler } from '../../mcp/http.ts'
import { buildCatalogue } from '../../src/kernel/catalogue.ts'
import { insertKey } from '../../src/people/identity/store.ts'
import { openMcpSession } from '../../src/people/mcp-sessions/sessions.ts'
import { tools } from '../../tools/index.ts'
import { onBothEngines } from '../engines.ts'
import { buildKeyPrincipal, newPerson, noon, nothingForSale, origin, servicesOn } from '../kernel/scene.ts'

onBothEngines('the stream of an MCP session', (database) => {
  const watch = async (ending = new AbortController()) => {
    const { account } = await newPerson(database())
    const principal = buildKeyPrincipal(account, { scopes: ['wallets:read'] })
    await insertKey(database(), account.id, { ...principal.key, secretHash: null })
    const services = await servicesOn(database())
    const handle = mcpHandler(buildCatalogue(tools, services.settings), services, {
      seller: nothingForSale,
      ending: ending.signal,
    })
    const id = await openMcpSession(database(), { keyId: principal.key.id, capabilities: {}, now: noon })
    const request = new Request(`${origin}/mcp`, {
      headers: { host: 'bursar.example', accept: 'text/event-stream', 'mcp-session-id': id },
    })
    const from = {
      requestId: 'req_test',
      now: noon,
      clientAddress: '127.0.0.1',
      refundCounts: async () => {},
    }
    const response = await handle({ request, body: new Uint8Array(), principal, ...from })
    expect(response.status).toBe(200)
    return { response, keyId: principal.key.id }
  }
  const change = (id: string, values: { scopes: string[] } | { status: 'revoked' }) =>
    database().kysely.updateTable('access_key').set(values).where('id', '=', id).execute()

  it('announces changed tools when the key’s scopes change, and ends when the key is revoked', async () => {
    const { response, keyId } = await watch()
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    await change(keyId, { scopes: ['wallets:read', 'wallets:transfer'] })
    expect((await reader?.read())?.value).toBe(
      'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n',
    )
    await change(keyId, { status: 'revoked' })
    expect(await reader?.read()).toEqual({ done: true, value: undefined })
  }, 20_000)

  it('ends at once at shutdown', async () => {
    const ending = new AbortController()
    const { response } = await watch(ending)
    ending.abort()
    expect(await response.text()).toBe('')
  }, 2_000)
})
