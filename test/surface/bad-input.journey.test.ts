/**
 * Bad input over REST and MCP: each gets its problem with its code, and no money moves. An error in the request itself
 * is answered equally on both; an error in a tool's arguments is answered in its result.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ownContracts, sandboxTokens } from '../../src/chain/rpc/networks.ts'
import { type Agent, type AgentRequest, newAgent } from '../journeys/agent.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { newGuest } from '../journeys/people.ts'

const problem = z.looseObject({
  code: z.string(),
  status: z.int(),
  type: z.string(),
  title: z.string(),
  detail: z.string(),
  requestId: z.string(),
  issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
})
type Problem = z.output<typeof problem>

const fine = {
  destination: '0x00000000000000000000000000000000000A11cE',
  amount: '1',
  token: 'USDC',
  signature: 'sandbox',
}
const written = JSON.stringify(fine)
const amountAs = (text: string) => written.replace('"amount":"1"', `"amount":${text}`)

let gateway: Gateway
let agent: Agent
let session: string
let demoApiKey: string

const url = (path: string) => `${gateway.origin}${path}`
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const json = { 'content-type': 'application/json' }
const acceptsMcp = { ...json, accept: 'application/json, text/event-stream' }

const toolCall = (argumentsText: string, name = 'wallets_transfer') =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${argumentsText}}}`
const withKey = (argumentsText: string) => argumentsText.replace(/\}$/, ',"idempotency_key":"bad-input"}')

async function readProblem(response: Response): Promise<Problem> {
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  const parsed = problem.parse(await response.json())
  expect(parsed.status).toBe(response.status)
  expect(response.headers.get('x-request-id')).toBe(parsed.requestId)
  return parsed
}

async function readToolProblem(response: Response): Promise<Problem> {
  expect(response.status).toBe(200)
  const { result } = z
    .object({
      result: z.object({ isError: z.literal(true), content: z.tuple([z.object({ text: z.string() })]) }),
    })
    .parse(await response.json())
  return problem.parse(JSON.parse(result.content[0].text))
}

const rest = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = bearer(demoApiKey)) =>
  fetch(url('/api/wallets/transfer'), { method: 'POST', headers: { ...json, ...headers }, body })
const mcp = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = bearer(demoApiKey)) =>
  fetch(url('/mcp'), { method: 'POST', headers: { ...acceptsMcp, ...headers }, body })

const readable = z.looseObject({
  balances: z.array(z.unknown()).optional(),
  usage: z.unknown().optional(),
  safeAddress: z.string().optional(),
  sessionToken: z.string().optional(),
  demoApiKey: z.string().optional(),
})
const read = async (path: string, init: RequestInit = {}) =>
  readable.parse(await (await fetch(url(path), init)).json())

beforeAll(async () => {
  gateway = await startGateway({ CHAIN: 'simulated', RATE_MUTATIONS: '100000/60' })
  session = (await read('/api/auth/guest', { method: 'POST', headers: json, body: '{}' })).sessionToken ?? ''
  demoApiKey = (await read('/sandbox/credentials')).demoApiKey ?? ''
  agent = await newAgent()
  const registered = await fetch(url('/api/agents/keys'), {
    method: 'POST',
    headers: { ...json, ...bearer(session) },
    body: JSON.stringify({
      name: 'Bad input',
      publicKey: agent.jwk.x,
      scopes: ['wallets:read', 'wallets:transfer'],
      policy: { perTransaction: { max: 5 }, dailyBudget: { max: 12 }, categories: { allow: ['transfer'] } },
    }),
  })
  expect(registered.status).toBe(200)
})
afterAll(() => gateway?.stop())

describe('bad arguments', () => {
  const rows: readonly [name: string, argumentsText: string, path: string][] = [
    ['a wrong type', amountAs('true'), 'amount'],
    ['an unknown member', written.replace(/\}$/, ',"remark":"hi"}'), 'remark'],
    ['seven decimals in a string', amountAs('"1.0000001"'), 'amount'],
    ['seven decimals in a number', amountAs('1.0000001'), 'amount'],
    ['seven decimals, all zero', amountAs('1.0000000'), 'amount'],
    ['more digits than a float holds', amountAs('0.10000000000000000001'), 'amount'],
    ['a negative number', amountAs('-1'), 'amount'],
    ['a negative string', amountAs('"-1"'), 'amount'],
    ['zero', amountAs('0'), 'amount'],
    ['zero with decimals', amountAs('"0.000000"'), 'amount'],
    ['an exponent that is too large', amountAs('1e13'), 'amount'],
    ['an exponent that is too small', amountAs('1e-7'), 'amount'],
    ['an exponent in a string', amountAs('"1e2"'), 'amount'],
    ['not a number', amountAs('"NaN"'), 'amount'],
    ['over 10^12', amountAs('"1000000000000.000001"'), 'amount'],
    ['a missing amount', written.replace('"amount":"1",', ''), 'amount'],
    ['an unknown token', written.replace('"USDC"', '"DAI"'), 'token'],
    ['an invalid address', written.replace(fine.destination, '0x1234'), 'destination'],
    [
      'a wrong checksum',
      written.replace(fine.destination, '0x00000000000000000000000000000000000a11cE'),
      'destination',
    ],
    ['the zero address', written.replace(fine.destination, `0x${'0'.repeat(40)}`), 'destination'],
    ['the contract of a token', written.replace(fine.destination, sandboxTokens.USDC.address), 'destination'],
    ['the desk of swaps', written.replace(fine.destination, ownContracts.swapDesk.address), 'destination'],
    ['an empty signature', written.replace('"sandbox"', '""'), 'signature'],
    ['an empty object', '{}', 'destination'],
  ]
  it.each(rows)('refuses %s equally over REST and MCP', async (_name, argumentsText, path) => {
    const overRest = await readProblem(await rest(argumentsText))
    const overMcp = await readToolProblem(await mcp(toolCall(withKey(argumentsText).replace('{,', '{'))))
    for (const { code, issues = [] } of [overRest, overMcp]) {
      expect(code).toBe('invalid_request')
      expect(issues.map((issue) => issue.path)).toContain(path)
    }
    expect(overMcp.detail).toBe(overRest.detail)
  })

  it('accepts a number with an exponent', async () => {
    const guest = await newGuest(gateway.origin)
    const sent = await fetch(`${gateway.origin}/api/wallets/transfer`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${guest.token}` },
      body: amountAs('100e-2'),
    })
    expect([sent.status, await sent.json()]).toMatchObject([200, { amount: '1' }])
  })

  it('refuses values that only resemble our number wrapper', async () => {
    for (const trap of [
      '{"isLosslessNumber":true}',
      '{"isLosslessNumber":true,"value":"5"}',
      '{"isLosslessNumber":true,"toString":null}',
      '{"toString":null}',
      '{"constructor":{"prototype":1}}',
    ]) {
      const { status } = await rest(amountAs(trap))
      expect([trap, status]).toEqual([trap, 400])
    }
  })

  it('refuses another chain with chain_not_supported', async () => {
    const elsewhere = written.replace(/\}$/, ',"chain":"polygon"}')
    expect((await readProblem(await rest(elsewhere))).code).toBe('chain_not_supported')
    expect((await readToolProblem(await mcp(toolCall(withKey(elsewhere))))).code).toBe('chain_not_supported')
  })

  it('refuses a sanctioned destination and one under review, with the screening', async () => {
    for (const [ending, result] of [
      ['9999', 'blocked'],
      ['8888', 'review'],
    ] as const) {
      const body = written.replace(fine.destination, `0x${'1'.repeat(36)}${ending}`)
      for (const answer of [
        await readProblem(await rest(body)),
        await readToolProblem(await mcp(toolCall(withKey(body)))),
      ])
        expect(answer).toMatchObject({ code: 'aml_blocked', screening: { result, lists: ['sandbox'] } })
    }
  })

  it('refuses another account’s wallet as not found', async () => {
    const { safeAddress } = await read('/api/wallets', { headers: bearer(session) })
    const body = JSON.stringify({ ...fine, safeAddress })
    expect((await readProblem(await rest(body))).code).toBe('not_found')
  })

  it('requires an idempotency_key over MCP', async () => {
    const answer = await readToolProblem(await mcp(toolCall(written)))
    expect(answer).toMatchObject({ code: 'invalid_request', issues: [{ path: 'idempotency_key' }] })
  })
})

describe('bad requests', () => {
  const both: readonly [
    name: string,
    status: number,
    code: string,
    send: (post: typeof rest, body: string) => Promise<Response>,
  ][] = [
    ['malformed JSON', 400, 'invalid_request', (post, body) => post(body.slice(0, -2))],
    [
      'a member that occurs twice',
      400,
      'invalid_request',
      (post, body) => post(body.replace('{', '{"a":1,"a":2,')),
    ],
    [
      'bytes that are not UTF-8',
      400,
      'invalid_request',
      (post) => post(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])),
    ],
    [
      'too deeply nested JSON',
      400,
      'invalid_request',
      (post) => post(`${'['.repeat(100)}${']'.repeat(100)}`),
    ],
    [
      'an over-long body',
      413,
      'body_too_large',
      (post, body) => post(body.replace('"sandbox"', `"${'s'.repeat(70_000)}"`)),
    ],
    ['no credential', 401, 'unauthenticated', (post, body) => post(body, {})],
    ['an unknown API key', 401, 'unknown_key', (post, body) => post(body, bearer('bsk_sandbox_nobody'))],
    [
      'a forged session token',
      401,
      'unauthenticated',
      (post, body) => post(body, bearer('eyJhbGciOiJub25lIn0.eyJzdWIiOiJhY2N0XzEifQ.')),
    ],
    [
      'two credentials',
      400,
      'ambiguous_credentials',
      (post, body) => post(body, { ...bearer(demoApiKey), cookie: `bursar_session=${session}` }),
    ],
  ]
  it.each(both)('refuses %s equally over REST and MCP', async (_name, status, code, send) => {
    for (const response of [await send(rest, written), await send(mcp, toolCall(withKey(written)))]) {
      const answer = await readProblem(response)
      expect([answer.status, answer.code]).toEqual([status, code])
      if (status === 401) expect(response.headers.get('www-authenticate')).toContain('Bearer')
    }
  })

  it('refuses a body with a content type other than JSON', async () => {
    const response = await rest(written, { ...bearer(demoApiKey), 'content-type': 'text/plain' })
    expect((await readProblem(response)).code).toBe('unsupported_media_type')
    expect(
      (await mcp(toolCall(withKey(written)), { ...bearer(demoApiKey), 'content-type': 'text/plain' })).status,
    ).toBe(415)
  })

  it.each(['token=x', 'API-Key=x', 'q=bsk_sandbox_x', 'x-payment=x', 'a=1&%73ignature=x'])(
    'refuses a credential in the query ?%s on every path',
    async (query) => {
      for (const path of ['/api/wallets', '/mcp', '/nowhere', '/healthz'])
        expect((await readProblem(await fetch(url(`${path}?${query}`)))).code).toBe('credential_in_query')
    },
  )

  it('accepts a change by cookie only from its own origin', async () => {
    const send = (from: Record<string, string>) => rest('{', { cookie: `bursar_session=${session}`, ...from })
    expect((await readProblem(await send({}))).code).toBe('cross_site_request')
    expect((await readProblem(await send({ origin: 'https://evil.example' }))).code).toBe(
      'cross_site_request',
    )
    expect((await readProblem(await send({ origin: gateway.origin }))).code).toBe('invalid_request')
  })

  it('refuses a session at /mcp and a key on a person’s routes', async () => {
    expect((await readProblem(await mcp(toolCall(withKey(written)), bearer(session)))).code).toBe(
      'unauthenticated',
    )
    const response = await fetch(url('/api/agents/keys'), {
      method: 'POST',
      headers: { ...json, ...bearer(demoApiKey) },
      body: '{}',
    })
    expect((await readProblem(response)).code).toBe('insufficient_scope')
  })

  it('refuses /mcp from another page', async () => {
    const response = await mcp(toolCall(withKey(written)), {
      ...bearer(demoApiKey),
      origin: 'https://evil.example',
    })
    expect((await readProblem(response)).code).toBe('cross_site_request')
  })

  it('answers 404 and 405 as problems', async () => {
    expect((await readProblem(await fetch(url('/api/nowhere')))).code).toBe('not_found')
    const response = await fetch(url('/api/wallets'), { method: 'DELETE' })
    expect((await readProblem(response)).code).toBe('method_not_allowed')
    expect(response.headers.get('allow')).toBe('GET')
    expect((await fetch(url('/api/x402/fx?from=USD&to=EUR&amount=1'), { method: 'HEAD' })).status).toBe(405)
  })
})

describe('bad signatures', () => {
  const requests: readonly [name: string, code: string, tamper: (request: AgentRequest) => AgentRequest][] = [
    [
      'that does not cover the body',
      'signature_invalid',
      (request) => ({ ...request, uncovered: ['content-digest'] }),
    ],
    [
      'that does not cover the path',
      'signature_invalid',
      (request) => ({ ...request, uncovered: ['@path'] }),
    ],
    [
      'that does not cover the idempotency key',
      'signature_invalid',
      (request) => ({ ...request, idempotencyKey: 'x', uncovered: ['idempotency-key'] }),
    ],
    ['with another tag', 'signature_invalid', (request) => ({ ...request, parameters: { tag: 'other' } })],
    [
      'with a short nonce',
      'signature_invalid',
      (request) => ({ ...request, parameters: { nonce: 'short' } }),
    ],
    [
      'with too long a lifetime',
      'signature_invalid',
      (request) => ({ ...request, parameters: { expires: new Date(Date.now() + 400_000) } }),
    ],
    [
      'that has expired',
      'signature_expired',
      (request) => ({
        ...request,
        parameters: { created: new Date(Date.now() - 200_000), expires: new Date(Date.now() - 100_000) },
      }),
    ],
    [
      'from the future',
      'signature_expired',
      (request) => ({
        ...request,
        parameters: { created: new Date(Date.now() + 100_000), expires: new Date(Date.now() + 160_000) },
      }),
    ],
  ]
  const paths = [
    ['/api/wallets/transfer', () => written],
    ['/mcp', () => toolCall(withKey(written))],
  ] as const
  const send = async (from: Agent, request: AgentRequest, body = request.body) =>
    fetch(request.url, {
      method: 'POST',
      headers: { ...acceptsMcp, ...(await from.sign(request)) },
      body: body ?? '',
    })

  it.each(requests)('refuses one %s, equally over REST and MCP', async (_name, code, tamper) => {
    for (const [path, body] of paths) {
      const request = tamper({ method: 'POST', url: url(path), body: body() })
      expect((await readProblem(await send(agent, request))).code).toBe(code)
    }
  })

  it('refuses an unknown key', async () => {
    const unknownAgent = await newAgent()
    for (const [path, body] of paths)
      expect(
        (await readProblem(await send(unknownAgent, { method: 'POST', url: url(path), body: body() }))).code,
      ).toBe('unknown_key')
  })

  it('refuses a body that does not match its digest', async () => {
    for (const [path, body] of paths) {
      const response = await send(
        agent,
        { method: 'POST', url: url(path), body: body() },
        body().replace('"1"', '"5"'),
      )
      expect((await readProblem(response)).code).toBe('digest_mismatch')
    }
  })

  it('refuses a signature for another path, method or host', async () => {
    const headers = await agent.sign({ method: 'GET', url: url('/api/agents/self') })
    expect((await readProblem(await fetch(url('/api/wallets'), { headers }))).code).toBe('signature_invalid')
    const elsewhere = await agent.sign({ method: 'GET', url: 'https://bursar.example/api/wallets' })
    expect((await readProblem(await fetch(url('/api/wallets'), { headers: elsewhere }))).code).toBe(
      'signature_invalid',
    )
  })

  it('accepts a signature once', async () => {
    const headers = await agent.sign({ method: 'GET', url: url('/api/wallets') })
    expect((await fetch(url('/api/wallets'), { headers })).status).toBe(200)
    expect((await readProblem(await fetch(url('/api/wallets'), { headers }))).code).toBe('signature_replayed')
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    const signed = await agent.sign({ method: 'POST', url: url('/mcp'), body: list })
    const replay = () =>
      fetch(url('/mcp'), { method: 'POST', headers: { ...acceptsMcp, ...signed }, body: list })
    expect((await replay()).status).toBe(200)
    expect((await readProblem(await replay())).code).toBe('signature_replayed')
  })
})

describe('after all bad input', () => {
  it('no money has moved', async () => {
    const whole = { token: 'USDC', amount: '1000', held: '0', usd: '1000', chain: 'base-sepolia' }
    const { usage } = await read('/api/agents/self', { headers: bearer(demoApiKey) })
    expect(usage).toMatchObject({ used: '0', count: 0 })
    for (const owner of [demoApiKey, session]) {
      const { balances } = await read('/api/wallets', { headers: bearer(owner) })
      expect(balances).toContainEqual(whole)
    }
  })

  it('no secret is in the log', () => {
    for (const secret of [session, demoApiKey.slice(12), agent.jwk.x])
      expect(gateway.output().split('Demo API key')[0]).not.toContain(secret)
    expect(gateway.output()).not.toContain('unexpected error')
  })
})
