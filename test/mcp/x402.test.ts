/** A caller with a wallet of its own buys over MCP: the owner pays nothing, and no payment is taken twice. */
import { x402Client } from '@x402/core/client'
import type { PaymentPayload, PaymentRequired } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { askJson } from '../journeys/people.ts'
import { openScene, type Scene } from './scene.ts'
import { openWays } from './ways.ts'

const bought = z.looseObject({
  quoteId: z.string(),
  payment: z.looseObject({ payer: z.string(), transaction: z.string() }),
})
const query = { from: 'USD', to: 'EUR', amount: '100' }

/** What is called the same in both clients. */
interface Caller {
  callTool(call: {
    name: string
    arguments: Record<string, unknown>
    _meta?: Record<string, unknown>
  }): Promise<Record<string, unknown>>
}

describe.each(['2025', '2026'] as const)('x402 over MCP of %s', (era) => {
  let scene: Scene
  let client: Caller
  let close = async () => {}
  let payer: { address: string; privateKey: `0x${string}` }
  let wallet: x402Client
  let balance: () => Promise<unknown>
  beforeAll(async () => {
    scene = await openScene()
    const { origin } = scene.gateway
    payer = z
      .object({ payer: z.object({ address: z.string(), privateKey: z.templateLiteral(['0x', z.string()]) }) })
      .parse((await askJson(origin, 'GET', '/sandbox/credentials')).body).payer
    wallet = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(payer.privateKey)))
    const { body: guest } = await askJson(origin, 'POST', '/api/auth/guest', { body: {} })
    const session = { authorization: `Bearer ${guest.sessionToken}` }
    const { body: made } = await askJson(origin, 'POST', '/api/developer/keys', {
      body: {
        name: 'Buyer',
        scopes: ['fx:pay', 'wallets:read'],
        policy: {
          perTransaction: { max: '5' },
          dailyBudget: { max: '5' },
          categories: { allow: ['transfer'] },
        },
      },
      headers: session,
    })
    const keyed = { ...scene, demoApiKey: String(made.key) }
    const ways = await openWays(keyed)
    client = era === '2025' ? ways.old : ways.modern
    balance = async () => (await ways.rest('wallets_get', {})).body.balances
    close = () => ways.close()
  }, 60_000)
  afterAll(async () => {
    await close()
    await scene?.close()
  })

  let number = 0
  const call = async (given: Record<string, string>, payment?: unknown) => {
    number += 1
    const { content, isError, structuredContent, _meta } = await client.callTool({
      name: 'x402_fx',
      arguments: { ...given, idempotency_key: `x402-${number}` },
      ...(payment === undefined ? {} : { _meta: { 'x402/payment': payment } }),
    })
    const [first] = z.array(z.object({ text: z.string() })).parse(content)
    const text = z.record(z.string(), z.unknown()).parse(JSON.parse(first?.text ?? '{}'))
    return { isError, structuredContent, _meta, text }
  }
  const signed = async (terms: Record<string, unknown>): Promise<PaymentPayload> =>
    // What the gateway asks for is what the client checks by itself.
    wallet.createPaymentPayload(terms as unknown as PaymentRequired)

  it('tells a key that may not pay how to pay by itself, and sells for that payment once', async () => {
    const before = await balance()
    const refused = await call(query)
    expect(refused.isError).toBe(true)
    expect(refused.text).toMatchObject({ code: 'policy_denied', x402Version: 2 })
    const payment = await signed(refused.text)
    const sold = await call(query, payment)
    expect(sold.isError).not.toBe(true)
    const { quoteId, payment: paid } = bought.parse(sold.text)
    expect(paid.payer.toLowerCase()).toBe(payer.address.toLowerCase())
    expect(sold.structuredContent).toEqual(sold.text)
    expect(sold._meta).toMatchObject({
      'x402/payment-response': { success: true, transaction: paid.transaction },
    })
    expect(await balance()).toEqual(before)
    // The same payment is the same purchase, whichever way it comes.
    expect((await call(query, payment)).text.quoteId).toBe(quoteId)
    const overRest = await askJson(
      scene.gateway.origin,
      'GET',
      `/api/x402/fx?${new URLSearchParams(query)}`,
      {
        headers: { 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') },
      },
    )
    expect([overRest.status, overRest.body.quoteId]).toEqual([200, quoteId])
    const reused = await call({ ...query, amount: '200' }, payment)
    expect(reused.text.code).toBe('payment_reused')
  })

  it('names what does not fit, and asks again', async () => {
    const { text: terms } = await call(query)
    const payment = await signed(terms)
    const { signature } = payment.payload
    const forged = {
      ...payment,
      payload: { ...payment.payload, signature: `${signature}`.replace(/.{8}$/, '00000000') },
    }
    const asked = await call(query, forged)
    expect(asked.isError).toBe(true)
    expect(asked.text).toMatchObject({ x402Version: 2, error: expect.stringContaining('signature') })
    expect(asked.text.accepts).toEqual(terms.accepts)
    expect((await call(query, 'money')).text.code).toBe('invalid_request')
    expect((await call({ ...query, amount: '-1' }, payment)).text.code).toBe('invalid_request')
    expect((await call(query, payment)).isError).not.toBe(true)
  })

  it('takes a payment of the first generation too', async () => {
    // The generations differ in the envelope alone: what is signed is the same.
    const { payload } = await signed((await call(query)).text)
    const sold = await call(query, { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload })
    expect(sold.isError).not.toBe(true)
    expect(sold._meta).toMatchObject({ 'x402/payment-response': { success: true } })
  })
})
