/** Each seller of the sandbox, honest or not: a purchase ends unpaid, or paid once, and says which. */
import { setTimeout as pause } from 'node:timers/promises'
import { createPublicClient, http, parseAbiItem } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Agent, newAgent } from '../../journeys/agent.ts'
import { sharedGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person, requestJson } from '../../journeys/people.ts'
import { hasAnvil } from '../selling/x402/world.ts'

const hex = z.templateLiteral(['0x', z.string()])
const credentials = z.object({
  chain: z.object({ rpcUrl: z.string(), tokens: z.object({ USDC: hex }) }),
})
const list = z.object({ sellers: z.array(z.object({ name: z.string(), url: z.string() })) })
const events = [
  parseAbiItem('event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)'),
  parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)'),
]

const policy = {
  perTransaction: { max: '1' },
  dailyBudget: { max: '5' },
  categories: { allow: ['x402'] },
}

describe.skipIf(!hasAnvil())('the sellers of the sandbox', () => {
  const gateway = { origin: sharedGateway() }
  let owner: Person
  let agent: Agent
  let urls: ReadonlyMap<string, string>
  let countPayments: () => Promise<number>

  beforeAll(async () => {
    const { chain } = credentials.parse(
      (await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body,
    )
    const client = createPublicClient({ chain: baseSepolia, transport: http(chain.rpcUrl) })
    // An idle purse goes back to its wallet by an authorization, too.
    countPayments = async () => {
      const { body: wallet } = await owner.send('GET', '/api/wallets')
      const home = String(wallet.safeAddress).toLowerCase()
      const logs = await client.getLogs({ address: chain.tokens.USDC, events, fromBlock: 0n, strict: true })
      const authorized = new Set(
        logs.flatMap((log) => (log.eventName === 'AuthorizationUsed' ? [log.transactionHash] : [])),
      )
      const transfers = logs.flatMap((log) => (log.eventName === 'Transfer' ? [log] : []))
      // Others buy on this chain, too.
      const purses = new Set(
        transfers.flatMap(({ args }) => (args.from.toLowerCase() === home ? [args.to] : [])),
      )
      return transfers.filter(
        ({ args, transactionHash }) =>
          authorized.has(transactionHash) && purses.has(args.from) && args.to.toLowerCase() !== home,
      ).length
    }
    const { sellers } = list.parse((await requestJson(gateway.origin, 'GET', '/sandbox/sellers')).body)
    urls = new Map(sellers.map(({ name, url }) => [name, url]))
    owner = await newGuest(gateway.origin)
    agent = await newAgent()
    await owner.send('POST', '/api/agents/keys', {
      name: 'Buyer',
      publicKey: agent.jwk,
      scopes: ['purchases:pay', 'wallets:read'],
      policy,
    })
  }, 120_000)
  afterAll(async () => {}, 60_000)

  const buy = async (input: object, idempotencyKey: string) => {
    const response = await agent.fetch({
      method: 'POST',
      url: `${gateway.origin}/api/purchases`,
      body: JSON.stringify({ maxAmount: '0.1', ...input }),
      idempotencyKey,
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const usdc = async () => {
    const { body } = await owner.send('GET', '/api/wallets')
    const { balances, purse } = z
      .object({
        balances: z.array(z.object({ token: z.string(), amount: z.string(), held: z.string() })),
        purse: z.array(z.object({ asset: z.string(), amount: z.string() })),
      })
      .parse(body)
    const wallet = balances.find(({ token }) => token === 'USDC')
    const units = (text: string | undefined) => Math.round(Number(text ?? '0') * 1e6)
    return units(wallet?.amount) + units(wallet?.held) + units(purse[0]?.amount)
  }

  /** The outcome that each seller leads to, the price that is gone in millionths, and the payments on the chain. */
  const outcomes: Readonly<
    Record<string, { body: object; spent: number; payments: number; input?: object }>
  > = {
    weather: {
      body: { status: 'delivered', charged: '0.01', protocol: 'x402-v2' },
      spent: 10_000,
      payments: 1,
    },
    report: {
      body: { status: 'delivered', charged: '0.05', protocol: 'x402-v1' },
      spent: 50_000,
      payments: 1,
    },
    image: { body: { status: 'delivered', response: { body: null } }, spent: 20_000, payments: 1 },
    search: {
      body: { status: 'delivered', charged: '0.01' },
      spent: 10_000,
      payments: 1,
      input: { method: 'POST', body: { query: 'rain' } },
    },
    metered: { body: { status: 'delivered', charged: '0.001' }, spent: 1_000, payments: 1 },
    page: { body: { status: 'free', charged: '0', purchaseId: null }, spent: 0, payments: 0 },
    headlines: { body: { status: 'delivered', protocol: 'mpp' }, spent: 10_000, payments: 1 },
    stumbling: { body: { status: 'delivered', charged: '0.01' }, spent: 10_000, payments: 1 },
    'times-out': { body: { status: 'undelivered', charged: '0.01' }, spent: 10_000, payments: 1 },
    'charges-again': { body: { status: 'undelivered', charged: '0.01' }, spent: 10_000, payments: 1 },
    'raises-price': { body: { code: 'terms_not_payable' }, spent: 0, payments: 0 },
    'changes-payee': { body: { code: 'terms_not_payable' }, spent: 0, payments: 0 },
    'redirects-inward': { body: { code: 'seller_failed' }, spent: 0, payments: 0 },
    injects: { body: { status: 'delivered' }, spent: 10_000, payments: 1 },
    endless: { body: { status: 'delivered', response: { truncated: true } }, spent: 10_000, payments: 1 },
    'fake-usdc': {
      body: { code: 'terms_not_payable', reason: 'asset_not_supported' },
      spent: 0,
      payments: 0,
    },
    'hangs-up': { body: { status: 'undelivered' }, spent: 10_000, payments: 1 },
  }

  it.each(Object.entries(outcomes))('%s: ends as it must', async (name, { body, spent, payments, input }) => {
    const [before, paid] = [await usdc(), await countPayments()]
    const bought = await buy({ url: urls.get(name), ...input }, name)
    expect(bought.body).toMatchObject(body)
    const again = await buy({ url: urls.get(name), ...input }, name)
    expect(again.body.code).toBe(bought.body.code)
    expect((await countPayments()) - paid).toBe(payments)
    expect(before - (await usdc())).toBe(spent)
  })

  it('settles-late: ends paid once or unpaid, whatever the seller does later', async () => {
    const [before, paid] = [await usdc(), await countPayments()]
    const bought = await buy({ url: urls.get('settles-late') }, 'settles-late')
    await pause(6_000)
    const after = await countPayments()
    const isPaid = bought.body.status === 'undelivered'
    expect(isPaid || bought.body.code === 'seller_failed').toBe(true)
    expect(after - paid).toBe(isPaid ? 1 : 0)
    expect(before - (await usdc())).toBe(isPaid ? 10_000 : 0)
  })

  it('never-delivers: is waited for in time, and paid once', async () => {
    const paid = await countPayments()
    const bought = await buy({ url: urls.get('never-delivers') }, 'never-delivers')
    expect(bought.body).toMatchObject({ status: 'undelivered', charged: '0.01', response: null })
    expect((await countPayments()) - paid).toBe(1)
  }, 60_000)
})
