import { beforeAll, expect, it } from 'vitest'
import type { Services } from '../../../src/kernel/context.ts'
import quote from '../../../tools/swaps/quote.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { newSignedIn, type SignedIn } from '../../people/identity/signed-in.ts'

const usual = { fromToken: 'USDC', toToken: 'USDT', fromChain: 'base', toChain: 'arbitrum', amountIn: '100' }

onBothEngines('swap quotes', (database) => {
  let services: Services
  let person: SignedIn
  beforeAll(async () => {
    services = await servicesOn(database())
    person = await newSignedIn(services)
  })
  const quoteWith = async (changes: object = {}) => (await person.call(quote, { ...usual, ...changes })).body

  it('have every member of the contract, and are stored for half a minute', async () => {
    const body = await quoteWith({ amountIn: 100.5 })
    expect(body).toEqual({
      id: expect.stringMatching(/^quote_/),
      tool: 'sandbox-share',
      order: 'CHEAPEST',
      fromToken: 'USDC',
      fromChain: 'base',
      amountIn: '100.5',
      toToken: 'USDT',
      toChain: 'arbitrum',
      amountOut: '100.36935',
      amountOutMin: '99.867503',
      executable: false,
      slippageBps: 50,
      fees: [{ name: 'share', amount: '0.09045', token: 'USDT', amountUsd: '0.09045', included: true }],
      gasUsd: '0.012',
      priceImpactBps: 0,
      durationSec: 8,
      expiresAt: new Date(noon.getTime() + 30_000).toISOString(),
      netOutUsd: '100.35735',
      alternatives: [
        expect.objectContaining({ tool: 'sandbox-gas' }),
        expect.objectContaining({ tool: 'sandbox-flat' }),
      ],
      failed: [],
    })
    const kept = await database()
      .kysely.selectFrom('swap_quote')
      .selectAll()
      .where('id', '=', String(body.id))
      .executeTakeFirst()
    expect(kept).toMatchObject({ account_id: person.accountId, answer: body })
    expect(kept?.expires_at).toEqual(new Date(noon.getTime() + 30_000))
  })

  it('default to the source chain, and accept tokens and chains in any case', async () => {
    const { toChain: _, ...here } = usual
    expect((await person.call(quote, { ...here, toToken: 'weth', amountIn: '5' })).body).toMatchObject({
      toToken: 'WETH',
      toChain: 'base',
    })
    expect(await quoteWith({ fromChain: 'Base', toChain: 'ARBITRUM' })).toMatchObject({
      fromChain: 'base',
      toChain: 'arbitrum',
    })
    expect(await quoteWith({ fromToken: 'ETH', amountIn: '0.123456789012345678' })).toMatchObject({
      amountIn: '0.123456789012345678',
    })
  })

  it.each([
    ['the same token on the same chain', { toToken: 'usdc', toChain: 'base' }, 'toToken', 'another'],
    ['an unknown token', { fromToken: 'DOGE' }, 'fromToken', 'USDC'],
    ['a token that the chain has not', { toToken: 'SOL' }, 'toToken', 'WBTC'],
    ['an unknown chain', { fromChain: 'tron' }, 'fromChain', 'solana'],
    ['an unknown target', { toChain: 'basis' }, 'toChain', 'arbitrum'],
    ['more digits than the token has', { amountIn: '1.0000001' }, 'amountIn', 'fewer'],
  ])('reject %s, and list the supported values', async (_name, changes, path, hint) => {
    await expect(quoteWith(changes)).rejects.toMatchObject({
      code: 'invalid_request',
      members: { issues: [{ path }], hint: expect.stringContaining(hint) },
    })
  })

  it.each([
    ['no target token', { toToken: undefined }],
    ['no amount', { amountIn: undefined }],
    ['nothing', { amountIn: '0' }],
    ['an unknown member', { slippage: 1 }],
  ])('reject %s', async (_name, changes) => {
    await expect(quoteWith(changes)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it.each([
    ['a tiny amount', { fromToken: 'ETH', amountIn: '0.000000000000000001' }],
    ['less than gas takes', { amountIn: '0.01' }],
    ['an amount beyond the liquidity', { amountIn: '1000000000000' }],
  ])('find no route for %s, and suggest another amount', async (_name, changes) => {
    const refusal = await quoteWith(changes).catch((error: unknown) => error)
    expect(refusal).toMatchObject({
      code: 'no_route',
      members: { hint: expect.stringContaining('Name another amount'), retryAfter: 60 },
    })
  })

  it('do not go from a test chain to a real one', async () => {
    await expect(quoteWith({ fromChain: 'base-sepolia' })).rejects.toMatchObject({
      code: 'pair_not_supported',
    })
    expect(
      await quoteWith({ fromChain: 'base-sepolia', toChain: 'base-sepolia', toToken: 'EURC' }),
    ).toMatchObject({
      toChain: 'base-sepolia',
    })
  })
})
