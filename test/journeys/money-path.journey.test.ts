/**
 * The money path end to end, with real clients only: guest, agent, policy, chain, and an anonymous buyer of a quote.
 */
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm'
import { wrapFetchWithPayment as wrapFetchV2 } from '@x402/fetch'
import { createPublicClient, erc20Abi, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSigner, wrapFetchWithPayment as wrapFetchV1 } from 'x402-fetch'
import { z } from 'zod'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { callMcp, connectMcp } from '../mcp/client.ts'
import { walletTools } from '../mcp/wallet-tools.ts'
import { newAgent } from './agent.ts'
import { type Gateway, sharedGateway, startGateway } from './gateway.ts'
import { newGuest, type Person, personFrom, requestJson } from './people.ts'
import { redisUrl, worlds } from './worlds.ts'

const hex = z.templateLiteral(['0x', z.string()])
const credentials = z.object({
  chain: z.object({ rpcUrl: z.string(), chainId: z.int(), tokens: z.object({ USDC: hex }) }),
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

describe.each(worlds.filter(({ isThere }) => isThere))('the money path on $name', ({ isReal }) => {
  let origin: string
  let gateway: Gateway | undefined
  let dropDatabase = async () => {}

  beforeAll(async () => {
    if (!isReal) {
      origin = sharedGateway()
      return
    }
    const database = await createTestDatabase(testServerUrl ?? '')
    dropDatabase = database.drop
    gateway = await startGateway({ DATABASE_URL: database.url, REDIS_URL: redisUrl ?? '' })
    origin = gateway.origin
  })
  afterAll(async () => {
    await gateway?.stop()
    await dropDatabase()
  })

  const readWallet = async (person: Person) => wallet.parse((await person.send('GET', '/api/wallets')).body)
  const findUsdc = (read: z.output<typeof wallet>) => read.balances.find(({ token }) => token === 'USDC')
  const readChain = async () =>
    credentials.parse((await requestJson(origin, 'GET', '/sandbox/credentials')).body).chain
  const onChain = async (address: `0x${string}`) => {
    const { rpcUrl, tokens } = await readChain()
    const client = createPublicClient({ chain: baseSepolia, transport: http(rpcUrl) })
    return client.readContract({
      address: tokens.USDC,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [address],
    })
  }
  const newAccount = () => privateKeyToAccount(generatePrivateKey())

  /** A guest with an agent that may spend 5 USD a transaction and 12 USD a day. */
  const newSpender = async () => {
    const [guest, agent] = [await newGuest(origin), await newAgent()]
    const registered = await guest.send('POST', '/api/agents/keys', {
      name: 'Journey agent',
      publicKey: agent.jwk,
      scopes: ['wallets:read', 'wallets:transfer'],
      policy: {
        perTransaction: { max: 5 },
        dailyBudget: { max: '12' },
        categories: { allow: ['transfer'] },
      },
    })
    const destination = newAccount().address
    const buildTransfer = (amount: string) => ({ destination, amount, token: 'USDC', signature: 'sandbox' })
    const transfer = (amount: string, idempotencyKey: string) =>
      agent.fetch({
        method: 'POST',
        url: `${origin}/api/wallets/transfer`,
        body: JSON.stringify(buildTransfer(amount)),
        idempotencyKey,
      })
    return { guest, agent, registered, destination, transfer, buildTransfer }
  }

  it('gives a guest a session and a funded wallet', async () => {
    const response = await fetch(`${origin}/api/auth/guest`, { method: 'POST' })
    expect(response.status).toBe(200)
    expect(response.headers.get('set-cookie')).toMatch(/^bursar_session=.*HttpOnly/)
    const read = await readWallet(personFrom(origin, await response.json()))
    expect(findUsdc(read)).toMatchObject({ amount: '1000', held: '0' })
    expect(await onChain(read.safeAddress)).toBe(1_000_000_000n)
  })

  it('pays for an agent until its budget is used, over REST and MCP, and chain and ledger stay equal', async () => {
    const { guest, agent, registered, destination, transfer, buildTransfer } = await newSpender()
    expect(registered).toMatchObject({
      status: 200,
      body: { keyId: agent.keyId, status: 'active', usage: { used: '0', remaining: '12' } },
    })
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
    const client = await connectMcp(origin, { fetch: agent.fetchLike })
    const overMcp = (amount: string, idempotency_key: string) =>
      callMcp(client, 'wallets_transfer', { ...buildTransfer(amount), idempotency_key })
    const denied = await transfer('5', 'third')
    expect(denied.status).toBe(403)
    const deniedAgain = await transfer('5', 'third')
    expect([deniedAgain.status, deniedAgain.headers.get('idempotency-replayed')]).toEqual([403, 'true'])
    const deniedOverMcp = await overMcp('5', 'third-over-mcp')
    expect(deniedOverMcp.isError).toBe(true)
    for (const answer of [problem.parse(await denied.json()), problem.parse(deniedOverMcp.body)]) {
      expect(answer.code).toBe('policy_denied')
      expect(answer.violations).toEqual([expect.objectContaining({ rule: 'daily_budget', remaining: '2' })])
    }
    // The first transfer again, over either transport.
    const again = await transfer('5', 'second')
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
    expect((await overMcp('5', 'second')).body).toEqual({
      ...z.looseObject({}).parse(await again.json()),
      replayed: true,
    })
    expect((await overMcp('2', 'third-in-budget')).isError).toBe(false)

    const self = await client.callTool({ name: 'context', arguments: {} })
    expect(self.structuredContent).toMatchObject({
      principal: 'key',
      keyId: agent.keyId,
      usage: { used: '12', remaining: '0', count: 3 },
    })
    await client.close()
    const read = await readWallet(guest)
    expect(findUsdc(read)).toMatchObject({ amount: '988', held: '0' })
    expect(await onChain(read.safeAddress)).toBe(988_000_000n)
    expect(await onChain(destination)).toBe(12_000_000n)
  })

  it('lists only the tools that a key’s scopes allow', async () => {
    const { agent } = await newSpender()
    const client = await connectMcp(origin, { fetch: agent.fetchLike })
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name).sort()).toEqual(walletTools)
    await client.close()
  })

  it('sells an FX quote to an unmodified client of each x402 generation', async () => {
    const privateKey = generatePrivateKey()
    const payer = privateKeyToAccount(privateKey)
    await requestJson(origin, 'POST', '/sandbox/faucet', {
      body: { address: payer.address, token: 'USDC', amount: '1' },
    })
    const url = `${origin}/api/x402/fx?from=USD&to=EUR&amount=100`
    expect((await fetch(url)).status).toBe(402)
    const fetchV1 = wrapFetchV1(fetch, await createSigner('base-sepolia', privateKey))
    const { chainId } = await readChain()
    const client = new x402Client().register(`eip155:${chainId}`, new ExactEvmScheme(payer))
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
    expect(await onChain(payer.address)).toBe(980_000n)
  })

  it('charges the owner’s wallet for a quote over MCP, under the key’s policy', async () => {
    const guest = await newGuest(origin)
    const { body: made } = await guest.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['fx:pay'],
      policy: {
        perTransaction: { max: '0.01' },
        dailyBudget: { max: '0.01' },
        categories: { allow: ['x402'] },
      },
    })
    const client = await connectMcp(origin, {
      requestInit: { headers: { authorization: `Bearer ${made.key}` } },
    })
    const buy = (idempotency_key: string) =>
      callMcp(client, 'x402_fx', { from: 'EUR', to: 'INR', amount: '50', idempotency_key })
    const bought = await buy('fx-1')
    expect(bought.isError).toBe(false)
    expect(quote.parse(bought.body)).toMatchObject({
      from: 'EUR',
      to: 'INR',
      payment: { amount: '0.01' },
    })
    expect(findUsdc(await readWallet(guest))).toMatchObject({ amount: '999.99', held: '0' })
    expect(await buy('fx-2')).toMatchObject({ isError: true, body: { code: 'policy_denied' } })
    await client.close()
  })
})
