/** A paused key buys nothing, with its own money or its owner's; a purchase paid by the owner is not charged again. */
import { expect, it } from 'vitest'
import { createOffer } from '../../mcp/offer.ts'
import { buildCatalogue } from '../../src/kernel/catalogue.ts'
import { tools } from '../../tools/index.ts'
import { onBothEngines } from '../engines.ts'
import { buildKeyPrincipal, newPerson, noon, servicesOn } from '../kernel/scene.ts'

onBothEngines('a key with a payment of its own', (database) => {
  const open = async (status: 'active' | 'paused') => {
    const services = await servicesOn(database())
    const { account } = await newPerson(database())
    const principal = buildKeyPrincipal(account, { scopes: ['fx:pay'], status })
    let sales = 0
    const sell = async () => {
      sales += 1
      return { status: 'payment_required' as const, v1: '{}', v2: '{"x402Version":2}' }
    }
    const offer = createOffer(buildCatalogue(tools, services.settings), services, {
      sell,
      recall: async () => null,
    })
    const caller = {
      principal,
      requestId: 'req_test',
      now: noon,
      clientAddress: '127.0.0.1',
      refundCounts: async () => {},
      toolsets: null,
    }
    const given = { from: 'USD', to: 'EUR', amount: '100', idempotency_key: 'one' }
    const call = async (meta?: Record<string, unknown>) => {
      const { content } = await offer.call(caller, 'x402_fx', given, meta)
      return JSON.parse(content[0].text)
    }
    return { call, principal, sales: () => sales }
  }

  it('can buy while it is active, and cannot while it is paused', async () => {
    const active = await open('active')
    expect(await active.call({ 'x402/payment': {} })).toEqual({ x402Version: 2 })
    expect(active.sales()).toBe(1)
    const paused = await open('paused')
    expect(await paused.call({ 'x402/payment': {} })).toMatchObject({
      code: 'policy_denied',
      violations: [{ rule: 'paused' }],
    })
    expect(paused.sales()).toBe(0)
  })
})
