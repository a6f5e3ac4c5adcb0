/** Bridge's payouts against a strict local fake: it refuses unknown members, and answers an idempotency key once. */
import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { silentLog } from '../../../src/base/log.ts'
import { createBridgePayouts } from '../../../src/providers/banking/bridge-payouts.ts'
import type { BankRecipient, PayoutOrder } from '../../../src/providers/banking.ts'

const noon = new Date('2026-11-20T12:00:00.000Z')
const CHAIN_ADDRESS = '0x00000000000000000000000000000000000000Aa'

const owner = {
  account_owner_name: z.string(),
  account_owner_type: z.literal('individual'),
  first_name: z.string(),
  last_name: z.string(),
  address: z
    .strictObject({
      street_line_1: z.string(),
      city: z.string(),
      state: z.string().regex(/^[A-Z]{2}$/),
      postal_code: z.string(),
      country: z.string().regex(/^[A-Z]{3}$/),
    })
    .optional(),
}
const externalAccount = z.discriminatedUnion('account_type', [
  z.strictObject({
    ...owner,
    currency: z.literal('usd'),
    account_type: z.literal('us'),
    account: z.strictObject({
      account_number: z.string(),
      routing_number: z.string(),
      checking_or_savings: z.enum(['checking', 'savings']),
    }),
  }),
  z.strictObject({
    ...owner,
    currency: z.literal('eur'),
    account_type: z.literal('iban'),
    iban: z.strictObject({
      account_number: z.string(),
      bic: z.string().optional(),
      country: z.string().regex(/^[A-Z]{3}$/),
    }),
  }),
  z.strictObject({
    ...owner,
    currency: z.literal('gbp'),
    account_type: z.literal('gb'),
    account: z.strictObject({ account_number: z.string(), sort_code: z.string() }),
  }),
])
const transfer = z.strictObject({
  client_reference_id: z.string(),
  on_behalf_of: z.literal('cust_1'),
  amount: z.string().regex(/^\d+(\.\d{1,2})?$/),
  source: z.strictObject({
    payment_rail: z.enum(['base', 'base_sepolia']),
    currency: z.literal('usdc'),
    from_address: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  }),
  destination: z.strictObject({
    payment_rail: z.enum(['ach', 'sepa', 'faster_payments']),
    currency: z.enum(['usd', 'eur', 'gbp']),
    external_account_id: z.literal('ext_1'),
    ach_reference: z.string().max(10).optional(),
    sepa_reference: z.string().min(6).optional(),
  }),
})

let server: Server
let url = ''
let status = 200
let depositAmount: string | null = null
const answered = new Map<string, string>()
const bodies: unknown[] = []

function answerTo(path: string, body: unknown): unknown {
  if (path === '/v0/customers/cust_1/external_accounts') {
    externalAccount.parse(body)
    return { id: 'ext_1', active: true }
  }
  if (path === '/v0/transfers') {
    const { client_reference_id, amount } = transfer.parse(body)
    return {
      id: 'transfer_1',
      state: 'awaiting_funds',
      client_reference_id,
      source_deposit_instructions: {
        to_address: CHAIN_ADDRESS,
        amount: depositAmount ?? amount,
        currency: 'usdc',
      },
    }
  }
  if (path === '/v0/transfers/transfer_1') return { id: 'transfer_1', state: 'payment_processed' }
  if (path === '/v0/exchange_rates?from=usd&to=eur') return { sell_rate: '0.9137', buy_rate: '0.93' }
  throw new Error(`unknown path ${path}`)
}

beforeAll(async () => {
  server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const text = Buffer.concat(parts).toString()
      const key = String(request.headers['idempotency-key'] ?? '')
      const isPost = request.method === 'POST'
      try {
        if (request.headers['api-key'] !== 'secret' || isPost !== (key !== '')) throw new Error('bad headers')
        const body: unknown = text === '' ? null : JSON.parse(text)
        bodies.push(body)
        const answer = answered.get(key) ?? JSON.stringify(answerTo(request.url ?? '', body))
        if (isPost) answered.set(key, answer)
        response.writeHead(status).end(answer)
      } catch {
        response.writeHead(422).end('{}')
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
})
afterAll(() => new Promise((resolve) => server.close(resolve)))
beforeEach(() => {
  status = 200
  depositAmount = null
  answered.clear()
  bodies.length = 0
})

const bridge = () => createBridgePayouts({ url, apiKey: 'secret', log: silentLog })
const recipient: BankRecipient = {
  id: 'rcp_1',
  currency: 'USD',
  name: 'Grace Brewster Hopper',
  isCompany: false,
  country: 'US',
  account: { scheme: 'aba', routingNumber: '021000021', accountNumber: '123456789', type: 'checking' },
  address: {
    line1: '1 Main St',
    line2: null,
    city: 'New York',
    region: 'NY',
    postalCode: '10001',
    country: 'US',
  },
  customer: 'cust_1',
}
const order: PayoutOrder = {
  id: 'out_1',
  money: { asset: 'USDC', units: 100_500_000n },
  fee: 0n,
  currency: 'USD',
  recipientUnits: 10_050n,
  recipient,
  providerRecipient: 'ext_1',
  reference: 'Invoice 42',
  source: { chain: 'base', address: '0x000000000000000000000000000000000000dEaD' },
}

it('registers bank accounts of every scheme, with countries of three letters', async () => {
  const accounts = [
    recipient,
    {
      ...recipient,
      id: 'rcp_2',
      currency: 'EUR',
      country: 'DE',
      address: null,
      account: { scheme: 'iban', iban: 'DE89370400440532013000', bic: null },
    },
    {
      ...recipient,
      id: 'rcp_3',
      currency: 'GBP',
      country: 'GB',
      address: null,
      account: { scheme: 'uk', sortCode: '123456', accountNumber: '12345678' },
    },
  ] as const
  for (const each of accounts) expect(await bridge().registerRecipient(each)).toBe('ext_1')
  expect(bodies).toMatchObject([
    { first_name: 'Grace', last_name: 'Brewster Hopper', address: { country: 'USA' } },
    { iban: { country: 'DEU' } },
    { account: { sort_code: '123456' } },
  ])
  await expect(bridge().registerRecipient({ ...recipient, customer: null })).rejects.toMatchObject({
    code: 'payout_rejected',
    members: { reason: 'no_customer' },
  })
})

it('sends a payout once, under its own id, and says where to fund it', async () => {
  const sent = { providerId: 'transfer_1', state: 'awaiting_funds', depositTo: CHAIN_ADDRESS }
  expect(await bridge().sendPayout(order)).toEqual(sent)
  expect(await bridge().sendPayout(order)).toEqual(sent)
  expect([...answered.keys()]).toEqual(['out_1'])
  expect(bodies[0]).toMatchObject({
    amount: '100.5',
    source: { payment_rail: 'base', currency: 'usdc' },
    destination: { payment_rail: 'ach', external_account_id: 'ext_1', ach_reference: 'Invoice 42' },
  })
  expect(await bridge().findPayout('transfer_1', noon)).toMatchObject({ state: 'payment_processed' })
})

it('funds no payout whose deposit instructions differ from it', async () => {
  depositAmount = '1000.5'
  await expect(bridge().sendPayout(order)).rejects.toMatchObject({ code: 'provider_unavailable' })
})

it('tells a refusal from an unknown outcome', async () => {
  status = 422
  await expect(bridge().sendPayout(order)).rejects.toMatchObject({ code: 'payout_rejected' })
  for (const unknown of [409, 429, 500, 503]) {
    status = unknown
    await expect(bridge().sendPayout(order)).rejects.toMatchObject({ code: 'provider_unavailable' })
  }
})

it('quotes at the rate of the provider, rounded down to cents, and pays out stablecoins only', async () => {
  const quote = (units: bigint, currency: 'USD' | 'EUR') =>
    bridge().quotePayout({ money: { asset: 'USDC', units }, currency }, noon)
  expect(await quote(100_990_000n, 'EUR')).toMatchObject({
    rate: '0.9137',
    recipientUnits: 9_227n,
    fee: 0n,
  })
  expect(await quote(100_990_000n, 'USD')).toMatchObject({ rate: '1', recipientUnits: 10_099n })
  await expect(quote(100_990_001n, 'USD')).rejects.toMatchObject({
    members: { reason: 'amount_not_in_cents' },
  })
  await expect(
    bridge().quotePayout({ money: { asset: 'USD', units: 10_000n }, currency: 'USD' }, noon),
  ).rejects.toMatchObject({ members: { reason: 'asset_not_supported' } })
})
