import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAnvilChain } from '../../../../src/chain/node/anvil.ts'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import { signedPaymentTypes } from '../../../../src/core/base/signed-payment-types.ts'
import { Failure } from '../../../../src/core/failures/failure.ts'
import type { Chain } from '../../../../src/providers/chain/port.ts'
import {
  baseUsdc,
  misleadingFetch,
  newCustomer,
  openShop,
  origin,
  parseJsonText,
  path,
  payTo,
  type Shop,
  spyingFetch,
  tamperingFetch,
  toBase64,
  toText,
} from './scene.ts'
import { hasAnvil } from './world.ts'

const generations = ['v1', 'v2'] as const
const chains: readonly (readonly [string, () => Promise<Chain>])[] = [
  ...(hasAnvil()
    ? [
        [
          'anvil',
          () => startAnvilChain({ name: 'base-sepolia', log: silentLog, binary: process.env.ANVIL_BIN }),
        ] as const,
      ]
    : []),
  ['the simulated chain', () => createSimulatedChain({ clock: systemClock, log: silentLog })],
]

describe.each(chains)('the paywall on %s', (_name, open) => {
  let chain: Chain
  let shop: Shop
  beforeAll(async () => {
    chain = await open()
    shop = await openShop(chain)
  })
  afterAll(async () => {
    await shop.close()
    await chain.close()
  })

  const income = () => chain.readBalance('USDC', payTo)
  const requestShop = (headers: Record<string, string> = {}) => fetch(shop.url, { headers })

  it('challenges both generations at once, for the configured resource regardless of the Host', async () => {
    const response = await requestShop({
      Host: 'evil.test',
      'X-Forwarded-Host': 'evil.test',
      'X-Forwarded-Proto': 'http',
    })
    expect(response.status).toBe(402)
    expect(response.headers.get('cache-control')).toBe('no-store')
    const resource = `${origin}${path}`
    const requirement = { scheme: 'exact', payTo, asset: chain.tokens.USDC, maxTimeoutSeconds: 300 }
    const body: unknown = await response.json()
    expect(body).toMatchObject({
      x402Version: 1,
      accepts: [{ ...requirement, network: 'base-sepolia', maxAmountRequired: '10000', resource }],
    })
    expect(parseJsonText(response.headers.get('PAYMENT-REQUIRED') ?? '')).toMatchObject({
      x402Version: 2,
      resource: { url: resource },
      accepts: [
        { ...requirement, network: 'eip155:84532', amount: '10000' },
        { ...requirement, scheme: 'upto', network: 'eip155:84532', amount: '10000' },
        { ...requirement, scheme: 'batch-settlement', network: 'eip155:84532', amount: '10000' },
      ],
    })
    expect(JSON.stringify(body) + toText(response.headers.get('PAYMENT-REQUIRED') ?? '')).not.toContain(
      'evil',
    )
  })

  it('answers a browser with the same challenge', async () => {
    const response = await requestShop({ Accept: 'text/html', 'User-Agent': 'Mozilla/5.0' })
    expect(response.status).toBe(402)
    expect(response.headers.get('content-type')).toContain('application/json')
  })

  it.each([
    ['v1', 'X-PAYMENT-RESPONSE', 'base-sepolia'],
    ['v2', 'PAYMENT-RESPONSE', 'eip155:84532'],
  ] as const)('sells to an unmodified %s client, once', async (generation, receipt, network) => {
    const customer = await newCustomer(chain, 15_000n)
    const [before, sold] = [await income(), await shop.sold()]
    const response = await customer[generation](shop.url)
    const body: unknown = await response.json()
    expect({ status: response.status, body }).toEqual({
      status: 200,
      body: {
        quoteId: 'quote_1',
        result: '92.5',
        payment: {
          id: expect.stringMatching(/^pay_/),
          transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
          network,
          amount: '0.01',
          asset: 'USDC',
          payer: customer.address,
        },
      },
    })
    expect(parseJsonText(response.headers.get(receipt) ?? '')).toMatchObject({
      success: true,
      payer: customer.address,
    })
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await income()).toBe(before + 10_000n)
    expect(await chain.readBalance('USDC', customer.address)).toBe(5_000n)
    expect(await shop.sold()).toBe(sold + 1)
  })

  it('serves many customers at once', async () => {
    const before = await income()
    const customers = await Promise.all(Array.from({ length: 8 }, () => newCustomer(chain, 10_000n)))
    const responses = await Promise.all(
      customers.map((customer, index) => customer[index % 2 === 0 ? 'v1' : 'v2'](shop.url)),
    )
    expect(responses.map(({ status }) => status)).toEqual(Array(8).fill(200))
    expect(await income()).toBe(before + 80_000n)
  })

  it.each(generations)('never charges for a failed delivery (%s)', async (generation) => {
    const customer = await newCustomer(chain, 10_000n)
    const { deliver } = shop
    shop.deliver = () => Promise.reject(new Failure('rates_unavailable', 'Too old.'))
    const response = await customer[generation](shop.url)
    shop.deliver = deliver
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ code: 'rates_unavailable' })
    expect(await chain.readBalance('USDC', customer.address)).toBe(10_000n)
  })

  const wrong: readonly (readonly [string, (text: string) => string, Record<'v1' | 'v2', string>])[] = [
    [
      'amount',
      (text) => text.replaceAll('"10000"', '"9999"'),
      { v1: 'value_mismatch', v2: 'value_mismatch' },
    ],
    [
      'recipient',
      (text) => text.replaceAll(payTo, `0x${'1'.repeat(40)}`),
      { v1: 'recipient_mismatch', v2: 'recipient_mismatch' },
    ],
    [
      'network',
      (text) =>
        text
          .replaceAll('"base-sepolia"', '"base"')
          .replaceAll('eip155:84532', 'eip155:8453')
          .replaceAll(chain.tokens.USDC, baseUsdc),
      { v1: 'invalid_network', v2: 'invalid_network' },
    ],
    [
      'time',
      (text) => text.replaceAll('"maxTimeoutSeconds":300', '"maxTimeoutSeconds":1'),
      { v1: 'valid_before', v2: 'valid_before' },
    ],
    [
      'token',
      (text) => text.replaceAll('"name":"USDC"', '"name":"USD Coin"'),
      { v1: 'signature', v2: 'signature' },
    ],
  ]
  describe.each(generations)('a %s payment', (generation) => {
    it.each(wrong)(
      'a payment with the wrong %s gets a fresh challenge with the reason',
      async (_what, change, reasons) => {
        const reason = reasons[generation]
        const customer = await newCustomer(chain, 1_000_000n, misleadingFetch(change))
        const sold = await shop.sold()
        const response = await customer[generation](shop.url)
        expect(response.status).toBe(402)
        const body: unknown = await response.json()
        expect(body).toMatchObject({
          x402Version: 1,
          error: expect.stringContaining(reason),
          accepts: [{ payTo }],
        })
        const required = parseJsonText(response.headers.get('PAYMENT-REQUIRED') ?? '')
        expect(required).toMatchObject({ x402Version: 2, error: expect.stringContaining(reason) })
        expect(await shop.sold()).toBe(sold)
        expect(await chain.readBalance('USDC', customer.address)).toBe(1_000_000n)
      },
    )

    it('may carry members that only its client knows', async () => {
      const more = generation === 'v1' ? { asset: chain.tokens.USDC } : { extensions: null }
      const customer = await newCustomer(
        chain,
        10_000n,
        tamperingFetch((payment) => {
          const { payload, ...envelope } = JSON.parse(JSON.stringify(payment))
          const authorization = { ...payload.authorization, memo: 'x' }
          return { ...envelope, ...more, payload: { ...payload, authorization, hint: 1 } }
        }),
      )
      expect((await customer[generation](shop.url)).status).toBe(200)
      expect(await chain.readBalance('USDC', customer.address)).toBe(0n)
    })

    it('a payment of a payer without money gets a fresh challenge', async () => {
      const customer = await newCustomer(chain, 9_999n)
      const response = await customer[generation](shop.url)
      expect(response.status).toBe(402)
      expect(await response.json()).toMatchObject({ error: expect.stringContaining('balance') })
    })

    it('signed by another account gets a fresh challenge', async () => {
      const forge = (payment: unknown) =>
        JSON.parse(JSON.stringify(payment).replace(/"signature":"0x..../, '"signature":"0xabcd'))
      const customer = await newCustomer(chain, 10_000n, tamperingFetch(forge))
      const response = await customer[generation](shop.url)
      expect(response.status).toBe(402)
      expect(await response.json()).toMatchObject({ error: expect.stringContaining('signature') })
    })

    it('is charged once and answered identically when repeated', async () => {
      const spy = spyingFetch()
      const customer = await newCustomer(chain, 20_000n, spy.fetch)
      const bought = await customer[generation](shop.url)
      expect(bought.status).toBe(200)
      const sold = await shop.sold()
      const again = await requestShop(spy.payment())
      expect(again.status).toBe(200)
      expect(await again.json()).toEqual(await bought.json())
      const receipt = generation === 'v1' ? 'X-PAYMENT-RESPONSE' : 'PAYMENT-RESPONSE'
      expect(again.headers.get(receipt)).toBe(bought.headers.get(receipt))
      expect(await shop.sold()).toBe(sold)
      expect(await chain.readBalance('USDC', customer.address)).toBe(10_000n)
      expect(JSON.stringify(shop.logged)).not.toContain(Object.values(spy.payment())[0])
    })
  })

  it.each([
    ['X-PAYMENT', 'garbage'],
    ['X-PAYMENT', '%%%'],
    ['X-PAYMENT', toBase64({ x402Version: 2 })],
    ['X-PAYMENT', toBase64({ x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: {} })],
    ['PAYMENT-SIGNATURE', 'garbage'],
    ['PAYMENT-SIGNATURE', toBase64([])],
    [
      'PAYMENT-SIGNATURE',
      toBase64({
        x402Version: 2,
        accepted: { scheme: 'exact', network: 'eip155:84532' },
        payload: { signature: '0x' },
      }),
    ],
  ])('rejects the undecodable %s %s', async (header, value) => {
    const response = await requestShop({ [header]: value })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_request', issues: [{ path: header }] })
  })

  it('takes a payment that is valid since this second, though no block was mined since', async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    await chain.mint([{ token: 'USDC', to: account.address, units: 10_000n }])
    await sleep(2_500)
    const now = BigInt(Math.floor(Date.now() / 1000))
    const authorization = {
      from: account.address,
      to: payTo,
      value: 10_000n,
      validAfter: now - 1n,
      validBefore: now + 300n,
      nonce: `0x${randomBytes(32).toString('hex')}`,
    } as const
    const signature = await account.signTypedData({
      domain: { name: 'USDC', version: '2', chainId: chain.id, verifyingContract: chain.tokens.USDC },
      types: signedPaymentTypes,
      primaryType: 'TransferWithAuthorization',
      message: authorization,
    })
    const texts = Object.entries(authorization).map(([name, value]) => [name, value.toString()])
    const payload = { signature, authorization: Object.fromEntries(texts) }
    const payment = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }
    expect((await requestShop({ 'X-PAYMENT': toBase64(payment) })).status).toBe(200)
  })

  it('challenges a payment on an unsupported kind of chain afresh', async () => {
    const payment = { x402Version: 1, scheme: 'exact', network: 'solana', payload: { transaction: 'AQ==' } }
    const response = await requestShop({ 'X-PAYMENT': toBase64(payment) })
    expect(response.status).toBe(402)
    expect(await response.json()).toMatchObject({ error: 'invalid_network' })
  })

  it('rejects two payments on one request', async () => {
    const response = await requestShop({ 'X-PAYMENT': 'e30=', 'PAYMENT-SIGNATURE': 'e30=' })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'ambiguous_credentials' })
  })
})
