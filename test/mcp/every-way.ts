/** All ways of an agent to the tools, as a table, and one scenario that every row passes. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { Client as Client2026, StreamableHTTPClientTransport as Http2026 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2026 } from '@modelcontextprotocol/client/stdio'
import {
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  exchangeAuthorization,
  registerClient,
  startAuthorization,
} from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Stdio2025 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as Http2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'vitest'
import { z } from 'zod'
import { startBursar } from '../commands/bursar.ts'
import { newAgent } from '../journeys/agent.ts'
import { newOAuthBrowser } from '../journeys/oauth-browser.ts'
import type { Person } from '../journeys/people.ts'

/** A gateway in one mode. @property page origin of its pages, where passkeys work. @property directory of key files. */
export interface Mode {
  readonly origin: string
  readonly page: string
  readonly directory: string
  /** A person with money who can approve. */
  owner(): Promise<Person>
  /** Pays 2 USD with a card at "Corner Shop". */
  purchase(cardId: string): Promise<void>
}

const rows = [
  ['2025', 'HTTP', 'API key'],
  ['2025', 'HTTP', 'agent signature'],
  ['2025', 'HTTP', 'OAuth'],
  ['2025', 'stdio', 'agent signature'],
  ['2026', 'HTTP', 'API key'],
  ['2026', 'HTTP', 'agent signature'],
  ['2026', 'HTTP', 'OAuth'],
  ['2026', 'stdio', 'agent signature'],
] as const
/** Era, transport and credential. */
export type Way = readonly [(typeof rows)[number][0], (typeof rows)[number][1], (typeof rows)[number][2]]

/**
 * Every era, transport and credential, except stdio with an API key and stdio with OAuth: `bursar mcp` has one
 * credential, the agent's own key file, with which it signs each request.
 */
export const everyWay: readonly Way[] = rows

const grant = {
  scopes: [
    'wallets:read',
    'wallets:transfer',
    'investing:read',
    'investing:trade',
    'cards:read',
    'cards:write',
  ],
  policy: {
    perTransaction: { max: '5' },
    dailyBudget: { max: '30' },
    categories: { allow: ['transfer', 'invest', 'card'] },
  },
}

/** A credential of HTTP requests, or of `bursar mcp`. */
type Credential =
  | { readonly headers: Record<string, string> }
  | { readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response> }
  | { readonly keyFile: string }

const text = z.string()

async function createApiKey(owner: Person): Promise<Credential> {
  const { body } = await owner.send('POST', '/api/developer/keys', { name: 'Bot', ...grant })
  return { headers: { authorization: `Bearer ${text.parse(body.key)}` } }
}

async function registerSigner(owner: Person): Promise<Credential> {
  const agent = await newAgent()
  const { body } = await owner.send('POST', '/api/agents/keys/challenge', {})
  const proof = agent.signHash(`0x${Buffer.from(text.parse(body.challenge)).toString('hex')}`)
  const key = { name: 'Bot', publicKey: agent.jwk, proof, ...grant }
  expect(await owner.send('POST', '/api/agents/keys', key)).toMatchObject({ status: 200 })
  return { fetch: agent.fetchLike }
}

/** Registers by the command line, with the owner approving. */
async function registerKeyFile(owner: Person, { origin, directory }: Mode): Promise<Credential> {
  const keyFile = join(directory, `${randomUUID()}.json`)
  const { err, ended } = startBursar([
    'agent',
    'register',
    '--url',
    origin,
    '--name',
    'Bot',
    '--out',
    keyFile,
  ])
  await expect.poll(err, { timeout: 20_000 }).toMatch(/Waiting for the owner/)
  const registration = text.parse(/\/agents\/connect\/(\S+)/.exec(err())?.[1])
  const { body } = await owner.send('GET', `/api/agents/registrations/${registration}`)
  const key = { name: 'Bot', publicKey: body.publicKey, registration, ...grant }
  expect(await owner.send('POST', '/api/agents/keys', key)).toMatchObject({ status: 200 })
  expect(await ended).toMatchObject({ code: 0 })
  return { keyFile }
}

async function obtainAccessToken(owner: Person, { origin, page }: Mode): Promise<Credential> {
  const redirectUrl = 'http://127.0.0.1:39997/callback'
  const found = await discoverOAuthProtectedResourceMetadata(`${origin}/mcp`)
  const issuer = text.parse(found.authorization_servers?.[0])
  const metadata = await discoverAuthorizationServerMetadata(issuer)
  if (metadata === undefined) throw new Error('the authorization server has no metadata')
  const clientInformation = await registerClient(issuer, {
    metadata,
    clientMetadata: {
      client_name: 'Bot',
      redirect_uris: [redirectUrl],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
  })
  const known = { metadata, clientInformation, resource: new URL(found.resource) }
  const scope = grant.scopes.join(' ')
  const { authorizationUrl, codeVerifier } = await startAuthorization(issuer, {
    ...known,
    redirectUrl,
    scope,
  })
  const browser = newOAuthBrowser(page, owner.token)
  const back = await browser.authorize(authorizationUrl, { decision: 'approve', ...grant })
  const authorizationCode = text.parse(back.searchParams.get('code'))
  const { access_token: token } = await exchangeAuthorization(issuer, {
    ...known,
    authorizationCode,
    codeVerifier,
    redirectUri: redirectUrl,
  })
  return { headers: { authorization: `Bearer ${token}` } }
}

/** The members that the clients of both eras have in common. */
interface AnyClient {
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<Record<string, unknown>>
  close(): Promise<void>
}

async function connect([era, transport, credential]: Way, owner: Person, mode: Mode): Promise<AnyClient> {
  const given =
    transport === 'stdio'
      ? await registerKeyFile(owner, mode)
      : await { 'API key': createApiKey, 'agent signature': registerSigner, OAuth: obtainAccessToken }[
          credential
        ](owner, mode)
  const url = new URL('/mcp', mode.origin)
  const fetch = 'fetch' in given ? { fetch: given.fetch } : {}
  const http = 'headers' in given ? { requestInit: { headers: given.headers } } : fetch
  const args = 'keyFile' in given ? ['mcp', '--url', mode.origin, '--key', given.keyFile] : []
  const command = { command: process.execPath, args: ['.build/bin/main.js', ...args] }
  const info = { name: 'test', version: '1' }
  if (era === '2025') {
    const client = new Client2025(info)
    const opened = 'keyFile' in given ? new Stdio2025(command) : new Http2025(url, http)
    // The SDK's transport type declares optional members without `undefined`; the value comes from the SDK.
    await client.connect(opened as Parameters<Client2025['connect']>[0])
    return client
  }
  const client = new Client2026(info, { capabilities: {}, versionNegotiation: { mode: 'auto' } })
  await client.connect('keyFile' in given ? new Stdio2026(command) : new Http2026(url, http))
  expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28')
  return client
}

const members = z.looseObject({ id: text.optional() })

/**
 * Pays and reads it back; orders, cancels the order; is denied, asks and is approved; issues a card, freezes it and
 * reads its purchases.
 */
export async function passEveryTool(way: Way, mode: Mode): Promise<void> {
  const owner = await mode.owner()
  const client = await connect(way, owner, mode)
  const call = async (name: string, given: Record<string, unknown>) => {
    const { content } = await client.callTool({ name, arguments: given })
    const [first] = z.array(z.looseObject({ text })).parse(content)
    return members.parse(JSON.parse(first?.text ?? ''))
  }
  try {
    const payment = { destination: `0x${'1'.repeat(40)}`, amount: '1', token: 'USDC' }
    const paid = await call('wallets_transfer', { ...payment, idempotency_key: 'payment' })
    expect(paid).toMatchObject({ amount: '1', replayed: false })
    await expect
      .poll(() => call('wallets_transfers_get', { id: paid.transferId }), { timeout: 20_000 })
      .toMatchObject({ state: 'confirmed', amount: '1', transactionHash: expect.any(String) })

    const order = { symbol: 'VTI', side: 'buy', type: 'limit', limitPrice: '1', notional: '4' }
    const placed = await call('investing_order', { ...order, idempotency_key: 'order' })
    expect(placed).toMatchObject({ status: 'accepted' })
    expect(await call('investing_orders_cancel', { id: placed.id })).toMatchObject({ status: 'canceled' })
    expect(await call('investing_orders_list', {})).toMatchObject({
      orders: [{ id: placed.id, status: 'canceled' }],
    })

    const input = { ...payment, amount: '8', idempotency_key: 'exception' }
    expect(await call('wallets_transfer', input)).toMatchObject({ code: 'policy_denied' })
    const asking = { operation: 'wallets_transfer', input, reason: 'Invoice 17 is due.' }
    const asked = await call('approvals_request', asking)
    expect(asked).toMatchObject({ status: 'pending', violations: [{ rule: 'per_transaction' }] })
    const approval = `/api/approvals/${text.parse(asked.approvalId)}`
    expect(await owner.send('POST', approval, { decision: 'approve' })).toMatchObject({ status: 200 })
    expect(await call('approvals_get', { id: asked.approvalId })).toMatchObject({
      status: 'approved',
      answer: { amount: '8' },
    })
    expect(await call('wallets_transfer', input)).toMatchObject({ amount: '8', replayed: true })

    const { id } = await call('cards_issue', { nickname: 'Office', idempotency_key: 'card' })
    const cardId = text.parse(id)
    await mode.purchase(cardId)
    const frozen = await call('cards_settings', { cardId, freeze: true })
    expect(frozen).toMatchObject({ card: { status: 'frozen' } })
    expect(await call('cards_transactions', { id: cardId })).toMatchObject({
      transactions: [{ amount: '2', merchant: expect.stringMatching(/Corner Shop/) }],
    })
  } finally {
    await client.close()
  }
}
