/**
 * The money path end to end, with real clients only: guest, agent, policy, chain, and an anonymous buyer of a quote.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm'
import { wrapFetchWithPayment as wrapFetchV2 } from '@x402/fetch'
import { createPublicClient, erc20Abi, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSigner, wrapFetchWithPayment as wrapFetchV1 } from 'x402-fetch'
import { z } from 'zod'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Agent, newAgent } from './agent.ts'
import { type Gateway, startGateway } from './gateway.ts'

const redisUrl = process.env.TEST_REDIS_URL

const worlds = [
  { name: 'embedded parts', isReal: false, isThere: true },
  {
    name: 'PostgreSQL and Redis',
    isReal: true,
    isThere: testServerUrl !== undefined && redisUrl !== undefined,
  },
]

const DESTINATION = '0x00000000000000000000000000000000000A11cE'
const hex = z.templateLiteral(['0x', z.string()])
const credentials = z.object({
  demoApiKey: z.string(),
  chain: z.object({ rpcUrl: z.string(), chainId: z.int(), tokens: z.object({ USDC: hex }) }),
  payer: z.object({ address: hex, privateKey: hex }),
})
const wallet = z.object({
  safeAddress: hex,
  balances: z.array(z.object({ token: z.string(), amount: z.string(), held: z.string() })),
})
const problem = z.object({
  code: z.string(),
  violations: z.array(z.object({ rule: z.string(), remaining: z.string().nullable() })).optional(),
})
const quote = z.object({
  from: z.string(),
  to: z.string(),
  result: z.string(),
  payment: z.object({ transaction: hex, payer: hex, amount: z.string() }),
})

describe.each(worlds)('the money path on $name', ({ isReal, isThere }) => {
  describe.runIf(isThere)('', () => {
    let env: Record<string, string> = {}
    let dropDatabase = async () => {}
    let gateway: Gateway
    let session: string
    let agent: Agent

    beforeAll(async () => {
      if (isReal) {
        const database = await createTestDatabase(testServerUrl ?? '')
        dropDatabase = database.drop
        env = { DATABASE_URL: database.url, REDIS_URL: redisUrl ?? '' }
      }
      gateway = await startGateway(env)
    })
    afterAll(async () => {
      await gateway?.stop()
      await dropDatabase()
    })

    const api = (path: string, init: RequestInit = {}) => fetch(`${gateway.origin}${path}`, init)
    const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
      api(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
    const transferBody = (amount: string) => ({
      destination: DESTINATION,
      amount,
      token: 'USDC',
      signature: 'sandbox',
    })
    const transfer = (amount: string, idempotencyKey: string) =>
      agent.fetch({
        method: 'POST',
        url: `${gateway.origin}/api/wallets/transfer`,
        body: JSON.stringify(transferBody(amount)),
        idempotencyKey,
      })
    const readWallet = async () =>
      wallet.parse(
        await (await api('/api/wallets', { headers: { authorization: `Bearer ${session}` } })).json(),
      )
    const usdcOf = (read: z.output<typeof wallet>) => read.balances.find(({ token }) => token === 'USDC')
    const readCredentials = async () => credentials.parse(await (await api('/sandbox/credentials')).json())
    const onChain = async (address: `0x${string}`) => {
      const { chain } = await readCredentials()
      const client = createPublicClient({ chain: baseSepolia, transport: http(chain.rpcUrl) })
      return client.readContract({
        address: chain.tokens.USDC,
        abi: erc20Abi,
        functionName: 'balanceOf',
        args: [address],
      })
    }
    const mcpClient = async () => {
      const client = new Client({ name: 'journey', version: '1' })
      const transport = new StreamableHTTPClientTransport(new URL('/mcp', gateway.origin), {
        fetch: agent.fetchLike,
      })
      // // The SDK's transport type declares optional members without `undefined`; the value comes from the SDK.
      await client.connect(transport as Parameters<Client['connect']>[0])
      return client
    }
    const callTransfer = async (client: Client, amount: string, idempotencyKey: string) => {
      const result = await client.callTool({
        name: 'wallets_transfer',
        arguments: { ...transferBody(amount), idempotency_key: idempotencyKey },
      })
      const [first] = z.array(z.object({ text: z.string() })).parse(result.content)
      return { isError: result.isError === true, body: JSON.parse(first?.text ?? '{}') }
    }

    it('gives a guest a session and a funded wallet', async () => {
      const response = await post('/api/auth/guest', {})
      expect(response.status).toBe(200)
      expect(response.headers.get('set-cookie')).toMatch(/^bursar_session=.*HttpOnly/)
      session = z.object({ sessionToken: z.string() }).parse(await response.json()).sessionToken
      const read = await readWallet()
      expect(usdcOf(read)).toMatchObject({ amount: '1000', held: '0' })
      expect(await onChain(read.safeAddress)).toBe(1_000_000_000n)
    })

    it('registers an agent with 5 USD a transaction and 12 USD a day', async () => {
      agent = await newAgent()
      const response = await post(
        '/api/agents/keys',
        {
          name: 'Journey agent',
          publicKey: agent.jwk,
          scopes: ['wallets:read', 'wallets:transfer'],
          policy: {
            perTransaction: { max: 5 },
            dailyBudget: { max: '12' },
            categories: { allow: ['transfer'] },
          },
        },
        { authorization: `Bearer ${session}` },
      )
      expect(await response.json()).toMatchObject({
        keyId: agent.keyId,
        status: 'active',
        usage: { used: '0', remaining: '12' },
      })
      expect(response.status).toBe(200)
    })

    it('permits two transfers of 5, and denies the third over REST and MCP', async () => {
      for (const key of ['first', 'second']) {
        const response = await transfer('5', key)
        expect(await response.json()).toMatchObject({
          status: 'confirmed',
          amount: '5',
          token: 'USDC',
          gasSponsored: true,
        })
        expect(response.status).toBe(200)
      }
      const denied = await transfer('5', 'third')
      expect(denied.status).toBe(403)
      const again = await transfer('5', 'third')
      expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([403, 'true'])
      const overRest = problem.parse(await denied.json())
      const client = await mcpClient()
      const overMcp = await callTransfer(client, '5', 'third-over-mcp')
      expect(overMcp.isError).toBe(true)
      for (const answer of [overRest, problem.parse(overMcp.body)]) {
        expect(answer.code).toBe('policy_denied')
        expect(answer.violations).toEqual([expect.objectContaining({ rule: 'daily_budget', remaining: '2' })])
      }
      await client.close()
    })

    it('answers a repeated idempotency key with the first transfer, over REST and MCP', async () => {
      const again = await transfer('5', 'second')
      expect(again.status).toBe(200)
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      const client = await mcpClient()
      const overMcp = await callTransfer(client, '5', 'second')
      expect(overMcp.body).toEqual({ ...z.looseObject({}).parse(await again.json()), replayed: true })
      await client.close()
    })

    it('moves exactly 2 USD in 40 concurrent calls of 1 USD', async () => {
      const client = await mcpClient()
      const calls = Array.from({ length: 40 }, async (_, at) => {
        if (at % 2 === 0) return (await transfer('1', `race-${at}`)).status === 200
        return !(await callTransfer(client, '1', `race-${at}`)).isError
      })
      const results = await Promise.all(calls)
      expect(results.filter((moved) => moved)).toHaveLength(2)
      await client.close()
    })

    it('keeps the chain and the ledger equal', async () => {
      const read = await readWallet()
      expect(usdcOf(read)).toMatchObject({ amount: '988', held: '0' })
      expect(await onChain(read.safeAddress)).toBe(988_000_000n)
      expect(await onChain(DESTINATION)).toBe(12_000_000n)
    })

    it('lists only the tools that a key’s scopes allow', async () => {
      const client = await mcpClient()
      const { tools } = await client.listTools()
      expect(tools.map(({ name }) => name).sort()).toEqual([
        'activity_list',
        'agents_decisions',
        'approvals_get',
        'approvals_request',
        'approvals_withdraw',
        'context',
        'policy_simulate',
        'rails_list',
        'transfers_gasless',
        'wallets_get',
        'wallets_transfer',
        'wallets_transfers_get',
        'wallets_transfers_list',
        'x402_payments_get',
      ])
      const self = await client.callTool({ name: 'context', arguments: {} })
      expect(self.structuredContent).toMatchObject({
        principal: 'key',
        keyId: agent.keyId,
        usage: { used: '12', remaining: '0', count: 4 },
      })
      await client.close()
    })

    it('sells an FX quote to an unmodified client of each x402 generation', async () => {
      const { payer, chain } = await readCredentials()
      const url = `${gateway.origin}/api/x402/fx?from=USD&to=EUR&amount=100`
      expect((await fetch(url)).status).toBe(402)
      const before = await onChain(payer.address)
      const fetchV1 = wrapFetchV1(fetch, await createSigner('base-sepolia', payer.privateKey))
      const client = new x402Client().register(
        `eip155:${chain.chainId}`,
        new ExactEvmScheme(privateKeyToAccount(payer.privateKey)),
      )
      const fetchV2 = wrapFetchV2(fetch, client)
      for (const [fetchPaid, receipt] of [
        [fetchV1, 'x-payment-response'],
        [fetchV2, 'payment-response'],
      ] as const) {
        const response = await fetchPaid(url, { method: 'GET' })
        expect(response.status).toBe(200)
        expect(response.headers.get(receipt)).toBeTruthy()
        expect(quote.parse(await response.json())).toMatchObject({
          from: 'USD',
          to: 'EUR',
          payment: { payer: payer.address, amount: '0.01' },
        })
      }
      expect(before - (await onChain(payer.address))).toBe(20_000n)
    })

    it('charges the owner’s wallet for a quote over MCP, under the key’s policy', async () => {
      const { demoApiKey } = await readCredentials()
      const client = new Client({ name: 'journey', version: '1' })
      const transport = new StreamableHTTPClientTransport(new URL('/mcp', gateway.origin), {
        requestInit: { headers: { authorization: `Bearer ${demoApiKey}` } },
      })
      await client.connect(transport as Parameters<Client['connect']>[0])
      const result = await client.callTool({
        name: 'x402_fx',
        arguments: { from: 'EUR', to: 'INR', amount: '50', idempotency_key: 'fx-1' },
      })
      expect(result.isError ?? false).toBe(false)
      expect(quote.parse(result.structuredContent)).toMatchObject({
        from: 'EUR',
        to: 'INR',
        payment: { amount: '0.01' },
      })
      await client.close()
    })

    it('answers controls_unavailable, and sells nothing, while the rail controls cannot be read', async () => {
      const blind = await startGateway({
        ...env,
        RAIL_CONTROLS_URL: 'http://127.0.0.1:9/controls',
        CHAIN: 'simulated',
      })
      try {
        const response = await fetch(`${blind.origin}/api/x402/fx?from=USD&to=EUR&amount=100`)
        expect(response.status).toBe(503)
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
        expect(await response.json()).toMatchObject({ code: 'controls_unavailable', reason: 'plan_limit' })
      } finally {
        await blind.stop()
      }
    })

    it('stops within 10 s of SIGTERM', async () => {
      expect(await gateway.stop()).toBe(0)
    })
  })
})
