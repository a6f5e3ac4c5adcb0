/** Metrics of a running gateway, and access to them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { postCall } from '../../mcp/post-call.ts'

const credentials = z.object({ demoApiKey: z.string(), payer: z.object({ address: z.string() }) })
const destination = '0x00000000000000000000000000000000000dead1'

async function scrape(gateway: Gateway, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(`${gateway.origin}/metrics`, { headers })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  return response.text()
}

/** The value of a series; undefined if it is missing. */
function findFigure(text: string, series: string): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

describe('the metrics of a sandbox', () => {
  let gateway: Gateway
  let key: string
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated', RATE_RAILS: '2/60', LOG_LEVEL: 'info' })
    key = credentials.parse(await (await fetch(`${gateway.origin}/sandbox/credentials`)).json()).demoApiKey
  })
  afterAll(() => gateway?.stop())
  const send = (amount: string) =>
    fetch(`${gateway.origin}/api/wallets/transfer`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ destination, amount, signature: 'sandbox' }),
    })

  it('label requests by their declared route, and never by the requested path', async () => {
    await fetch(`${gateway.origin}/api/wallets/transfers/tx_00000000000000000000000000`)
    await fetch(`${gateway.origin}/made-up/by-${destination}`)
    await fetch(`${gateway.origin}/api/wallets`, { method: 'DELETE' })
    const text = await scrape(gateway)
    const count = 'bursar_http_request_duration_seconds_count'
    expect(
      findFigure(text, `${count}{method="GET",route="/api/wallets/transfers/:id",status="401"}`),
    ).toBeGreaterThan(0)
    expect(findFigure(text, `${count}{method="GET",route="none",status="404"}`)).toBe(1)
    expect(findFigure(text, `${count}{method="DELETE",route="/api/wallets",status="405"}`)).toBe(1)
    expect(text).not.toContain('made-up')
    expect(text).not.toContain('tx_0000')
  })

  it('count decisions by verdict, violated rules, and provider latency', async () => {
    const allowed = z
      .object({ decisionId: z.string(), transferId: z.string() })
      .parse(await (await send('1')).json())
    const denied = z.object({ decisionId: z.string() }).parse(await (await send('26')).json())
    const text = await scrape(gateway)
    expect(findFigure(text, 'bursar_decisions_total{path="operation",verdict="allow"}')).toBe(1)
    expect(findFigure(text, 'bursar_decisions_total{path="operation",verdict="deny"}')).toBe(1)
    expect(findFigure(text, 'bursar_violations_total{path="operation",rule="per_transaction"}')).toBe(1)
    const provider = 'bursar_provider_call_duration_seconds_count'
    expect(findFigure(text, `${provider}{provider="chain",operation="submit",outcome="ok"}`)).toBe(1)
    expect(
      findFigure(text, `${provider}{provider="screening",operation="screen",outcome="ok"}`),
    ).toBeGreaterThan(0)
    expect(findFigure(text, 'bursar_ledger_drift{asset="USDC",chain="base-sepolia"}')).toBe(0)
    expect(findFigure(text, 'bursar_open{kind="transfers"}')).toBe(0)
    expect(findFigure(text, 'bursar_up{part="database"}')).toBe(1)
    expect(text).toContain('nodejs_eventloop_lag_seconds')
    // No personal data.
    for (const secret of [key, destination, 'acct_', 'key_', allowed.transferId])
      expect(text).not.toContain(secret)
    // The log names the decision of each request.
    const named = (decisionId: string) =>
      gateway
        .output()
        .split('\n')
        .filter((line) => line.includes('"msg":"request"') && line.includes(decisionId)).length
    // It comes through a pipe, and may come after the answer.
    for (const { decisionId } of [allowed, denied]) await expect.poll(() => named(decisionId)).toBe(1)
  })

  it('show that public pages cost no more compressed than plain', async () => {
    const cost = async (path: string, encoding: string) => {
      const cpu = async () => findFigure(await scrape(gateway), 'process_cpu_seconds_total') ?? 0
      const read = async () => {
        const response = await fetch(`${gateway.origin}${path}`, { headers: { 'accept-encoding': encoding } })
        expect(response.headers.get('content-encoding')).toBe(encoding === 'gzip' ? 'gzip' : null)
        expect(response.headers.get('vary')).toContain('Accept-Encoding')
        return (await response.arrayBuffer()).byteLength
      }
      // The first reader pays for what all others get.
      await read()
      const before = await cpu()
      for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 10 }, read))
      return (await cpu()) - before
    }
    await cost('/docs', 'gzip')
    const path = '/api/openapi.json'
    // The gateway works in the background too: the least of three is what the pages cost.
    const [plain, compressed]: [number[], number[]] = [[], []]
    for (let times = 0; times < 3; times += 1) {
      plain.push(await cost(path, 'identity'))
      compressed.push(await cost(path, 'gzip'))
    }
    expect(Math.min(...compressed)).toBeLessThan(Math.min(...plain))
  }, 60_000)

  it('count card authorizations, with the reason of each decline', async () => {
    const post = (path: string, body: object, token = '') =>
      fetch(`${gateway.origin}${path}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(body),
      })
    const { sessionToken } = z
      .object({ sessionToken: z.string() })
      .parse(await (await post('/api/auth/guest', {})).json())
    const headers = { authorization: `Bearer ${sessionToken}` }
    const { cards } = z
      .object({ cards: z.array(z.object({ id: z.string() })) })
      .parse(await (await fetch(`${gateway.origin}/api/cards`, { headers })).json())
    const cardId = cards[0]?.id ?? ''
    const buy = async (amount: string) => {
      const bought = await post('/sandbox/authorizations', {
        cardId,
        amount,
        merchant: 'Corner Shop',
        mcc: '5411',
      })
      expect(bought.status).toBe(200)
    }
    await buy('12.50')
    await post('/api/cards/settings', { cardId, freeze: true }, sessionToken)
    await buy('1')
    const text = await scrape(gateway)
    expect(findFigure(text, 'bursar_decisions_total{path="card",verdict="allow"}')).toBe(1)
    expect(findFigure(text, 'bursar_decisions_total{path="card",verdict="deny"}')).toBe(1)
    expect(text).toMatch(/bursar_violations_total\{path="card",rule="card_frozen"\} 1/)
    expect(text).not.toContain(cardId)
  })

  it('count MCP calls by tool and outcome, and rejections by rate class', async () => {
    const call = (name: string) => postCall(gateway.origin, key, name, {}).then((response) => response.text())
    await call('wallets_get')
    await call('swaps_quote')
    await call('made_up_tool')
    for (let at = 0; at < 4; at += 1) await fetch(`${gateway.origin}/api/rails`)
    const text = await scrape(gateway)
    const count = 'bursar_mcp_call_duration_seconds_count'
    expect(findFigure(text, `${count}{tool="wallets_get",outcome="ok"}`)).toBe(1)
    expect(text).toMatch(/mcp_call_duration_seconds_count\{tool="swaps_quote",outcome="\w+"\} 1/)
    expect(text).not.toContain('made_up_tool')
    expect(findFigure(text, 'bursar_rate_limited_total{class="rails"}')).toBe(2)
  })

  it('are rejected with a credential in the query, like every path', async () => {
    const response = await fetch(`${gateway.origin}/metrics?token=abc`)
    expect([response.status, (await response.text()).includes('credential_in_query')]).toEqual([400, true])
  })
})

describe('metrics behind a token', () => {
  const token = 'watching-needs-this-token'
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated', METRICS_TOKEN: token })
  })
  afterAll(() => gateway?.stop())

  it('require the token', async () => {
    for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: `Basic ${token}` }]) {
      const response = await fetch(`${gateway.origin}/metrics`, { headers })
      expect(response.status).toBe(401)
      expect(await response.text()).not.toContain('bursar_up')
    }
    expect(await scrape(gateway, { authorization: `Bearer ${token}` })).toContain('bursar_up')
  })
})

describe.skipIf(testServerUrl === undefined)('metrics while the database is unavailable', () => {
  it('are served, and report the outage', async () => {
    const { url, drop } = await createTestDatabase(testServerUrl ?? '')
    const gateway = await startGateway({ CHAIN: 'simulated', DATABASE_URL: url })
    try {
      const connected = await scrape(gateway)
      expect(findFigure(connected, 'bursar_up{part="database"}')).toBe(1)
      expect(findFigure(connected, 'bursar_database_connections{state="idle"}')).toBeGreaterThan(0)
      await drop()
      await expect
        .poll(async () => findFigure(await scrape(gateway), 'bursar_up{part="database"}'), {
          timeout: 20_000,
          interval: 500,
        })
        .toBe(0)
      const outage = await scrape(gateway)
      expect(findFigure(outage, 'bursar_up{part="chain"}')).toBe(1)
      expect(outage).not.toContain('bursar_open')
      expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(503)
      expect((await fetch(`${gateway.origin}/healthz`)).status).toBe(200)
    } finally {
      await gateway.stop()
    }
  })
})
