/** Bridge's payouts against a strict local server: it refuses unknown members, and answers an idempotency key once. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { silentLog } from '../../../src/core/base/log.ts'
import { createBridgePayouts } from '../../../src/providers/banking/bridge-payouts.ts'
import type { BankRecipient, PayoutOrder } from '../../../src/providers/banking/port.ts'
import { startBridgeServer } from '../../contracts/bridge-server.ts'

const noon = new Date('2026-11-20T12:00:00.000Z')

let server: Awaited<ReturnType<typeof startBridgeServer>>
beforeAll(async () => {
  server = await startBridgeServer()
  server.addCustomer('cust_1')
})
afterAll(() => server.close())
afterEach(() => {
  server.state.interrupt = () => false
})

/** Requests since the last call. */
const takeRequests = () => server.asked.splice(0)
/** Answers every request with a status and nothing else. */
const answerWith = (status: number) => {
  server.state.interrupt = (_asked, response) => {
    response.writeHead(status).end('{}')
    return true
  }
}

/** Answers payouts with an amount to deposit. */
const instruct = (amount: string) => {
  server.state.interrupt = ({ path }, response) => {
    const kept = [...server.transfers.values()].at(-1)
    if (path !== '/v0/transfers' || kept === undefined) return false
    const source_deposit_instructions = { ...kept.source_deposit_instructions, amount }
    response.writeHead(200).end(JSON.stringify({ ...kept, source_deposit_instructions }))
    return true
  }
}

const bridge = () => createBridgePayouts({ url: server.url, apiKey: 'secret', log: silentLog })
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
  for (const [index, each] of accounts.entries())
    expect(await bridge().registerRecipient(each)).toBe(`ext_${index + 1}`)
  expect(takeRequests().map(({ body }) => body)).toMatchObject([
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
  const sent = {
    providerId: 'transfer_1',
    state: 'awaiting_funds',
    depositTo: `0x${'b'.repeat(39)}1`,
  }
  expect(await bridge().sendPayout(order)).toEqual(sent)
  expect(await bridge().sendPayout(order)).toEqual(sent)
  expect(server.transfers.size).toBe(1)
  const [first, second] = takeRequests()
  expect([first?.key, second]).toEqual(['out_1', first])
  expect(first?.body).toMatchObject({
    amount: '100.5',
    source: { payment_rail: 'base', currency: 'usdc' },
    destination: { payment_rail: 'ach', external_account_id: 'ext_1', ach_reference: 'Invoice 42' },
  })
  for (const kept of server.transfers.values()) kept.state = 'payment_processed'
  expect(await bridge().findPayout('transfer_1', noon)).toMatchObject({ state: 'payment_processed' })
})

it.each([
  ['50', 50_000_000n],
  ['1000.0', 1_000_000_000n],
  ['100.50', 100_500_000n],
])('understands deposit instructions of %s', async (amount, units) => {
  instruct(amount)
  const asked = { ...order, id: `out_${amount}`, money: { asset: 'USDC', units } } as const
  expect(await bridge().sendPayout(asked)).toMatchObject({ state: 'awaiting_funds' })
})

it('funds no payout whose deposit instructions differ from it', async () => {
  instruct('1000.5')
  await expect(bridge().sendPayout({ ...order, id: 'out_2' })).rejects.toMatchObject({
    code: 'provider_unavailable',
  })
})

it('tells a refusal from an unknown outcome', async () => {
  answerWith(422)
  await expect(bridge().sendPayout(order)).rejects.toMatchObject({ code: 'payout_rejected' })
  for (const unknown of [409, 429, 500, 503]) {
    answerWith(unknown)
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
