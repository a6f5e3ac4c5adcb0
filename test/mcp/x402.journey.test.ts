/** A caller with a wallet of its own buys over MCP: the owner is not charged, and no payment is accepted twice. */
import { x402Client } from '@x402/core/client'
import type { PaymentPayload, PaymentRequired } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { requestJson } from '../journeys/people.ts'
import { openScene, type Scene } from './scene.ts'
import { openTransports } from './ways.ts'

const bought = z.looseObject({
  quoteId: z.string(),
  payment: z.looseObject({ payer: z.string(), transaction: z.string() }),
})
const query = { from: 'USD', to: 'EUR', amount: '100' }

/** The members that both clients have in common. */
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
  let buyer: Caller
  let close = async () => {}
  let payer: { address: string; privateKey: `0x${string}` }
  let wallet: x402Client
  let balance: () => Promise<unknown>
  beforeAll(async () => {
    scene = await openScene()
    const { origin } = scene.gateway
    payer = z
      .object({ payer: z.object({ address: z.string(), privateKey: z.templateLiteral(['0x', z.string()]) }) })
      .parse((await requestJson(origin, 'GET', '/sandbox/credentials')).body).payer
    wallet = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(payer.privateKey)))
    const { body: guest } = await requestJson(origin, 'POST', '/api/auth/guest', { body: {} })
    const session = { authorization: `Bearer ${guest.sessionToken}` }
    const { body: made } = await requestJson(origin, 'POST', '/api/developer/keys', {
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
    const keyed = { ...scene, apiKey: String(made.key) }
    const ways = await openTransports(keyed)
    buyer = era === '2025' ? ways.old : ways.modern
    client = buyer
    balance = async () => (await ways.rest('wallets_get', {})).body.balances
    close = () => ways.close()
  }, 60_000)
  afterAll(async () => {
    await close()
    await scene?.close()
  })

  let number = 0
  const newName = () => {
    number += 1
    return `x402-${number}`
  }
  const call = async (given: Record<string, string>, payment?: unknown, name: unknown = newName()) => {
    const { content, isError, structuredContent, _meta } = await client.callTool({
      name: 'x402_fx',
      arguments: { ...given, ...(name === null ? {} : { idempotency_key: name }) },
      ...(payment === undefined ? {} : { _meta: { 'x402/payment': payment } }),
    })
    const [first] = z.array(z.object({ text: z.string() })).parse(content)
    const text = z.record(z.string(), z.unknown()).parse(JSON.parse(first?.text ?? '{}'))
    return { isError, structuredContent, _meta, text }
  }
  const signed = async (terms: Record<string, unknown>): Promise<PaymentPayload> =>
    // The client validates the gateway's terms by itself.
    wallet.createPaymentPayload(terms as unknown as PaymentRequired)

  it('returns payment terms to a key without payment scope, and sells once for that payment', async () => {
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
    // The same payment is the same purchase, over either transport.
    expect((await call(query, payment)).text.quoteId).toBe(quoteId)
    const overRest = await requestJson(
      scene.gateway.origin,
      'GET',
      `/api/x402/fx?${new URLSearchParams(query)}`,
      {
        headers: { 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') },
      },
    )
    expect([overRest.status, overRest.body.quoteId]).toEqual([200, quoteId])
    // In any spelling, too.
    const spelled = { from: 'usd', to: 'Eur', amount: '100.00' }
    expect((await call(spelled, payment)).text.quoteId).toBe(quoteId)
    const reused = await call({ ...query, amount: '200' }, payment)
    expect(reused.text.code).toBe('payment_reused')
  })

  it('buys once per idempotency key, with any payment or none', async () => {
    const name = newName()
    const { text: terms } = await call(query, undefined, name)
    // A purchase refused for the owner's money succeeds under the same key with a payment.
    const [one, two] = [await signed(terms), await signed(terms)]
    const sold = await Promise.all([call(query, one, name), call(query, two, name)])
    const [first] = sold
    expect(sold.map(({ isError }) => isError)).not.toContain(true)
    expect(new Set(sold.map(({ text }) => bought.parse(text).quoteId)).size).toBe(1)
    // One of the two concurrent calls bought it; each later one gets the stored answer.
    expect(sold.filter(({ text }) => text.replayed === false)).toHaveLength(1)
    for (const payment of [one, two, undefined, 'money'])
      expect((await call(query, payment, name)).text).toEqual({ ...first.text, replayed: true })
    const other = { ...query, amount: '200' }
    expect((await call(other, two, name)).text.code).toBe('idempotency_key_reused')
    expect((await call(other, undefined, name)).text.code).toBe('idempotency_key_reused')
  })

  it('is not charged for a purchase that the owner’s money paid for under the key', async () => {
    const { text: terms } = await call(query)
    const ways = await openTransports(scene)
    client = era === '2025' ? ways.old : ways.modern
    const name = newName()
    const first = await call(query, undefined, name)
    expect(first.isError).not.toBe(true)
    const again = await call(query, await signed(terms), name)
    expect(again.text).toEqual({ ...first.text, replayed: true })
    client = buyer
    await ways.close()
  })

  it('describes the payment’s location in MCP terms', async () => {
    const refused = await call(query)
    expect(refused.text.error).toBe('_meta["x402/payment"] is required')
    for (const payment of [{ x402Version: 2 }, { x402Version: 1 }]) {
      const { text } = await call(query, payment)
      expect(text).toMatchObject({ code: 'invalid_request', issues: [{ path: '_meta["x402/payment"]' }] })
      expect(JSON.stringify(text)).not.toMatch(/header|X-PAYMENT|PAYMENT-SIGNATURE/i)
    }
  })

  it('rejects an invalid idempotency key', async () => {
    const payment = await signed((await call(query)).text)
    for (const name of [null, '', 'a b', 7]) {
      const { text } = await call(query, payment, name)
      expect(text).toMatchObject({ code: 'invalid_request', issues: [{ path: 'idempotency_key' }] })
    }
    expect((await call(query, payment)).isError).not.toBe(true)
  })

  it('names invalid members, and sends the terms again', async () => {
    const { text: terms } = await call(query)
    const payment = await signed(terms)
    const { signature } = payment.payload
    const forged = {
      ...payment,
      payload: { ...payment.payload, signature: `${signature}`.replace(/.{8}$/, '00000000') },
    }
    const refusal = await call(query, forged)
    expect(refusal.isError).toBe(true)
    expect(refusal.text).toMatchObject({ x402Version: 2, error: expect.stringContaining('signature') })
    expect(refusal.text.accepts).toEqual(terms.accepts)
    expect((await call(query, 'money')).text.code).toBe('invalid_request')
    expect((await call({ ...query, amount: '-1' }, payment)).text.code).toBe('invalid_request')
    expect((await call(query, payment)).isError).not.toBe(true)
  })

  it('accepts a payment of the first generation too', async () => {
    // The generations differ only in the envelope: the signed message is the same.
    const { payload } = await signed((await call(query)).text)
    const sold = await call(query, { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload })
    expect(sold.isError).not.toBe(true)
    expect(sold._meta).toMatchObject({ 'x402/payment-response': { success: true } })
  })
})
