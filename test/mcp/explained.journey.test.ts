/** What agents are told about what they did, over REST and both generations of MCP, with one key. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openEveryWay } from './ways.ts'

const payee = `0x${'1'.repeat(40)}`
const decided = z.object({
  decisions: z.tuple([z.looseObject({ decisionId: z.string(), receipt: z.string(), verified: z.boolean() })]),
})

describe('what happened, as an agent reads it', () => {
  const opened = openEveryWay()

  it('an undelivered purchase says what is known, also when it is bought', async () => {
    const url = `${opened().scene.gateway.origin}/sandbox/sellers/hangs-up`
    const buy = () =>
      opened().ways.everywhere(
        'purchases_buy',
        () => ({ url, maxAmount: '0.05' }),
        () => 'hangs-up',
      )
    const bought = await buy()
    expect(bought.map(({ body }) => body)).toMatchObject([
      { status: 'undelivered', attempts: 3, askedAgain: false, lastFailure: expect.any(String) },
      { status: 'undelivered', attempts: 6, askedAgain: true, expiresAt: bought[0]?.body.expiresAt },
      { status: 'undelivered', attempts: 9, askedAgain: true, expiresAt: expect.stringMatching(/Z$/) },
    ])
    const id = String(bought[0]?.body.purchaseId)
    for (const { body } of await opened().ways.everywhere('purchases_get', () => ({ id })))
      expect(body).toMatchObject({
        attempts: 9,
        // Reading asks no seller.
        askedAgain: false,
        lastFailure: expect.any(String),
        expiresAt: bought[0]?.body.expiresAt,
      })
    for (const { body } of await opened().ways.everywhere('activity_list', () => ({ kind: 'purchase' })))
      expect(body.entries).toMatchObject([
        { status: 'undelivered', amount: expect.stringMatching(/^0\.\d+$/) },
      ])
  })

  it('one decision is found by its id and by what it was about, with a verified receipt', async () => {
    const sent = await opened().ways.rest('wallets_transfer', { destination: payee, amount: '1' }, 'decided')
    const { transferId, decisionId } = z
      .looseObject({ transferId: z.string(), decisionId: z.string() })
      .parse(sent.body)
    for (const input of [{ id: decisionId }, { object: transferId }])
      for (const { body } of await opened().ways.everywhere('agents_decisions', () => input)) {
        const [decision] = decided.parse(body).decisions
        expect(decision).toMatchObject({ decisionId, verdict: 'allow', verified: true })
        expect(decision.receipt.split('.')).toHaveLength(3)
      }
    for (const { body } of await opened().ways.everywhere('agents_decisions', () => ({ object: 'tx_none' })))
      expect(body.decisions).toEqual([])
  })

  it('a simulation takes the chain by every name that its schema lists', async () => {
    const simulate = (chain: string) =>
      opened().ways.everywhere('policy_simulate', () => ({
        spend: { category: 'transfer', amount: '1', chain },
      }))
    const [own, alias] = [await simulate('base-sepolia'), await simulate('base')]
    for (const { body } of own) expect(body).toMatchObject({ decision: 'allow' })
    expect(alias).toEqual(own)
    expect(await simulate('arbitrum')).toEqual(await simulate('arbitrum-sepolia'))
    for (const { tools } of [await opened().ways.old.listTools(), await opened().ways.modern.listTools()]) {
      const schema = tools.find(({ name }) => name === 'policy_simulate')?.inputSchema
      const { chain } = z
        .object({
          properties: z.object({
            spend: z.looseObject({ properties: z.looseObject({ chain: z.unknown() }) }),
          }),
        })
        .parse(schema).properties.spend.properties
      for (const name of ['base', 'base-sepolia', 'arbitrum', 'arbitrum-sepolia'])
        expect(JSON.stringify(chain)).toContain(`"${name}"`)
    }
  })

  it('the payment of an FX quote that the owner’s wallet paid is found by its id', async () => {
    const bought = await opened().ways.modern.callTool({
      name: 'x402_fx',
      arguments: { from: 'USD', to: 'EUR', amount: '10', idempotency_key: 'quote' },
    })
    const { payment, rate } = z
      .looseObject({ rate: z.string(), payment: z.looseObject({ id: z.string(), transaction: z.string() }) })
      .parse(bought.structuredContent)
    for (const { body } of await opened().ways.everywhere('x402_payments_get', () => ({ id: payment.id })))
      expect(body).toMatchObject({
        status: 'settled',
        transaction: payment.transaction,
        result: { rate, payment: { id: payment.id } },
      })
    const response = await fetch(`${opened().scene.gateway.origin}/api/x402/payments/${payment.id}`)
    expect(response.status).toBe(404)
  })

  it('the sandbox’s chain may be called by the name of the chain that it stands for', async () => {
    const input = { destination: payee, amount: '1', chain: 'base' }
    for (const { body } of await opened().ways.everywhere(
      'wallets_transfer',
      () => input,
      (way) => `base-${way}`,
    ))
      expect(body).toMatchObject({ chain: 'base-sepolia', amount: '1' })
    for (const { body } of await opened().ways.everywhere(
      'wallets_transfer',
      () => ({ ...input, chain: 'solana' }),
      (way) => `solana-${way}`,
    ))
      expect(body).toMatchObject({
        code: 'chain_not_supported',
        hint: expect.stringContaining('base-sepolia'),
      })
    const { tools } = await opened().ways.modern.listTools()
    const transfer = tools.find(({ name }) => name === 'wallets_transfer')
    expect(transfer?.inputSchema.properties?.chain).toMatchObject({
      enum: expect.arrayContaining(['base-sepolia', 'base']),
    })
  })

  it('a limit sell says at which price it was sized, and over MCP how to follow it by tools', async () => {
    const sells = await opened().ways.everywhere(
      'investing_order',
      () => ({ symbol: 'VTI', side: 'sell', notional: '1', limitPrice: '1000000', type: 'limit' }),
      (way) => `sell-${way}`,
    )
    for (const { isError, body } of sells) {
      expect(isError).toBe(false)
      expect(body).toMatchObject({ status: 'accepted', qty: '0.000001000', sizedAt: '1000000.00' })
    }
    const [rest, old, modern] = sells.map(({ body }) => String(body.next))
    expect(rest).toContain('GET /api/investing/orders')
    for (const next of [old, modern]) {
      expect(next).not.toContain('/api/')
      expect(next).toMatch(/investing_orders_cancel \{"id":"ord_/)
    }
  })

  it('a part of a holding is sold by its quantity', async () => {
    const holding = z.object({ holdings: z.array(z.looseObject({ symbol: z.string() })) })
    const { holdings } = holding.parse((await opened().ways.rest('investing_portfolio', {})).body)
    const [first] = holdings
    const part = '0.050000000'
    const { content, structuredContent } = await opened().ways.modern.callTool({
      name: 'investing_order',
      arguments: { symbol: first?.symbol, side: 'sell', qty: part, idempotency_key: 'part' },
    })
    expect([structuredContent, content]).toMatchObject([{ qty: part, side: 'sell' }, {}])
    for (const { body } of await opened().ways.everywhere('activity_list', () => ({
      kind: 'order',
      search: String(first?.symbol),
    })))
      expect(body.entries).toMatchObject(
        expect.arrayContaining([expect.objectContaining({ direction: 'in' })]),
      )
  })
})
