import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/core/base/clock.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { guardAggregator } from '../../../src/providers/swap-aggregator/guarded.ts'
import { createLifi } from '../../../src/providers/swap-aggregator/lifi.ts'
import type { SwapAggregator, SwapOffer, SwapRequest } from '../../../src/providers/swap-aggregator/port.ts'
import { createSandboxAggregators } from '../../../src/providers/swap-aggregator/sandbox.ts'
import { parsePair } from '../../../src/rails/swaps/pair.ts'
import { askAll, findSilence, quoteSwap } from '../../../src/rails/swaps/quote-swap.ts'
import { movedClock } from '../investing/scene.ts'

const requestFor = (
  changes: Partial<Parameters<typeof parsePair>[0]> = {},
  amountIn = 100_000_000n,
): SwapRequest => ({
  ...parsePair({ fromToken: 'USDC', toToken: 'USDT', fromChain: 'base', toChain: 'arbitrum', ...changes }),
  amountIn,
  slippageBps: 50,
  sender: `0x${'1'.repeat(40)}`,
})
const offering = (tool: string, offer: Partial<SwapOffer>): SwapAggregator => ({
  tool,
  quote: async () => ({
    status: 'offered',
    offer: {
      amountOut: 1n,
      amountOutMin: 1n,
      outUsdMicros: null,
      fees: [],
      gasUsdMicros: 0n,
      priceImpactBps: null,
      durationSec: 10,
      ...offer,
    },
  }),
})
const failing = (tool: string, message: string): SwapAggregator => ({
  tool,
  quote: () => Promise.reject(new Error(message)),
})
/** Ends only on the abort signal, like a hung connection. */
const hanging = (tool: string): SwapAggregator => ({
  tool,
  quote: (_request, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('timeout')), { once: true })
    }),
})

describe('a swap quote', () => {
  it('tells a chain that does not answer from a route that does not exist', async () => {
    const local = (one: SwapAggregator): SwapAggregator => ({ ...one, isLocal: true })
    const venue = { chain: {}, at: new Date() } as unknown as NonNullable<SwapRequest['venue']>
    const ask = async (all: readonly SwapAggregator[]) => {
      const { best, failed } = await askAll(all, { ...requestFor(), venue })
      return [best, findSilence(all, failed)?.code]
    }
    expect(await ask([local(failing('cctp', 'unavailable'))])).toEqual([undefined, 'provider_unavailable'])
    const none: SwapAggregator = {
      tool: 'cctp',
      quote: async () => ({ status: 'none', reason: 'no_route' }),
    }
    expect(await ask([local(none)])).toEqual([undefined, undefined])
    expect(await ask([failing('stranger', 'unavailable')])).toEqual([undefined, undefined])
  })

  it('never uses an offer of nothing, or an implausibly high one', async () => {
    const wrong = [
      offering('nothing', { amountOut: 0n, amountOutMin: 0n }),
      offering('moon', { amountOut: 10n ** 40n }),
      offering('units', { amountOut: 100n * 10n ** 18n }),
      offering('debt', { amountOut: 99_000_000n, gasUsdMicros: -5_000_000n }),
      offering('turned', { amountOut: 99_000_000n, amountOutMin: 99_000_001n }),
    ]
    const honest = offering('honest', { amountOut: 98_000_000n })
    const { best, alternatives, failed } = await quoteSwap([...wrong, honest], requestFor())
    expect([best.tool, alternatives]).toEqual(['honest', []])
    expect(failed).toEqual(
      wrong.map(({ tool }) => ({ tool, reason: tool === 'units' ? 'implausible' : 'bad_answer' })),
    )
    await expect(quoteSwap(wrong, requestFor())).rejects.toMatchObject({ code: 'no_route' })
  })

  it.each([
    ['a dollar for a dollar', {}, 100_000_000n, 125_010_000n, 125_010_001n],
    ['much for little', {}, 100_000_000n, 100_000_000n, 999_900_000_000n],
    ['a coin for dollars', { toToken: 'WETH' }, 3_400_000_000n, 10n ** 19n, 10n ** 19n + 10n ** 14n],
  ])('never returns far more than its input: %s', async (_what, pair, amountIn, believed, dropped) => {
    const request = requestFor(pair, amountIn)
    const [honest, overpricing] = [
      offering('a', { amountOut: believed }),
      offering('b', { amountOut: dropped }),
    ]
    const { best, alternatives, failed } = await quoteSwap([overpricing, honest], request)
    expect([best.tool, alternatives]).toEqual(['a', []])
    expect(failed).toEqual([{ tool: 'b', reason: 'implausible' }])
  })

  it.each([
    ['a duration of 1e300', { durationSec: 1e300 }],
    ['an invalid duration', { durationSec: Number.NaN }],
    ['a negative duration', { durationSec: -1 }],
    ['an impact of 1e300', { priceImpactBps: 1e300 }],
    ['an impossible gas cost', { gasUsdMicros: 10n ** 30n }],
    ['an impossible value', { outUsdMicros: 10n ** 30n }],
    [
      'a fee below zero',
      { fees: [{ name: 'x', amount: '1', token: 'USDC', usdMicros: -1n, included: false }] },
    ],
  ])('drops an offer with %s alone', async (_what, changes) => {
    const [honest, overpricing] = [
      offering('a', { amountOut: 98_000_000n }),
      offering('b', { amountOut: 99_000_000n, ...changes }),
    ]
    const { best, failed } = await quoteSwap([overpricing, honest], requestFor())
    expect([best.tool, failed]).toEqual(['a', [{ tool: 'b', reason: 'bad_answer' }]])
  })

  it.each([
    ['an exponent for dollars', '"toAmountUSD":1e300'],
    ['a duration beyond numbers', '"executionDuration":1e300'],
    ['dollars of a hundred digits', `"toAmountUSD":"${'9'.repeat(100)}"`],
    ['units of a thousand digits', `"toAmount":"${'9'.repeat(1_000)}"`],
    ['units with an exponent', '"toAmount":"1e9"'],
    ['units that are a number', '"toAmount":99000000'],
    ['units of null', '"toAmount":null'],
  ])('survives %s from an aggregator', async (_what, lie) => {
    const estimate = { toAmount: '99000000', toAmountMin: '98000000', executionDuration: 10 }
    const name = lie.slice(1, lie.indexOf('"', 1))
    const members = Object.entries(estimate).filter(([member]) => member !== name)
    const text = [...members.map(([member, value]) => `"${member}":${JSON.stringify(value)}`), lie].join()
    const server = createServer((_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(`{"estimate":{${text}}}`),
    )
    await once(server.listen(0, '127.0.0.1'), 'listening')
    // A listening server has an address object with a port.
    const { port } = server.address() as AddressInfo
    try {
      const overpricing = createLifi({ url: `http://127.0.0.1:${port}`, apiKey: null })
      const { best, failed } = await quoteSwap(
        [overpricing, offering('a', { amountOut: 98_000_000n })],
        requestFor(),
      )
      expect([best.tool, failed]).toEqual(['a', [{ tool: 'lifi', reason: 'bad_answer' }]])
    } finally {
      server.close()
    }
  })

  it('has the highest net amount after fees and gas, at one price for all', async () => {
    const { best, alternatives } = await quoteSwap(
      [
        // A higher gross amount, consumed by gas and a fee on top.
        offering('gas', { amountOut: 100_000_000n, gasUsdMicros: 2_100_000n }),
        offering('fee', {
          amountOut: 100_000_000n,
          fees: [{ name: 'bridge', amount: '1.5', token: 'ETH', usdMicros: 1_500_000n, included: false }],
        }),
        // With its own price of the token it would win.
        offering('boast', { amountOut: 98_000_000n, outUsdMicros: 200_000_000n }),
        offering('plain', {
          amountOut: 99_000_000n,
          fees: [{ name: 'share', amount: '9', token: 'USDT', usdMicros: 9_000_000n, included: true }],
        }),
      ],
      requestFor(),
    )
    expect([best, ...alternatives].map(({ tool, netUsdMicros }) => [tool, netUsdMicros])).toEqual([
      ['plain', 99_000_000n],
      ['fee', 98_500_000n],
      ['boast', 98_000_000n],
      ['gas', 97_900_000n],
    ])
  })

  it('uses the median of the vendors’ prices for a token that is not a dollar', async () => {
    const weth = (usd: bigint) => ({ amountOut: 10n ** 18n, outUsdMicros: usd * 1_000_000n })
    const { best, alternatives } = await quoteSwap(
      [
        offering('high', weth(9_000n)),
        offering('mid', { ...weth(3_000n), gasUsdMicros: 1_000_000n }),
        offering('low', weth(2_000n)),
      ],
      requestFor({ toToken: 'WETH' }, 3_400_000_000n),
    )
    expect(new Set([best, ...alternatives].map(({ netUsdMicros }) => netUsdMicros))).toEqual(
      new Set([3_000_000_000n, 2_999_000_000n]),
    )
    expect(alternatives.at(-1)?.tool).toBe('mid')
  })

  it('prefers the faster of two with equal net amounts', async () => {
    const { best } = await quoteSwap(
      [offering('slow', { durationSec: 60 }), offering('fast', { durationSec: 6 })],
      requestFor(),
    )
    expect(best.tool).toBe('fast')
  })

  it('is never worse than an alternative', async () => {
    const offers = fc.array(
      fc.record({
        amountOut: fc.bigInt({ min: 1n, max: 10n ** 12n }),
        outUsdMicros: fc.option(fc.bigInt({ min: 0n, max: 10n ** 14n })),
        gasUsdMicros: fc.bigInt({ min: 0n, max: 10n ** 10n }),
        onTop: fc.bigInt({ min: 0n, max: 10n ** 10n }),
      }),
      { minLength: 1, maxLength: 6 },
    )
    await fc.assert(
      fc.asyncProperty(offers, fc.constantFrom('USDT', 'WETH', 'DAI'), async (asked, toToken) => {
        const aggregators = asked.map(({ onTop, ...offer }, at) =>
          offering(`a${at}`, {
            ...offer,
            fees: [{ name: 'f', amount: '1', token: 'USDC', usdMicros: onTop, included: false }],
          }),
        )
        const quote = await quoteSwap(aggregators, requestFor({ toToken })).catch((error: Failure) => error)
        if (quote instanceof Failure) {
          expect(quote.code).toBe('no_route')
          return
        }
        const { best, alternatives, failed } = quote
        expect(alternatives.length + failed.length).toBe(asked.length - 1)
        expect(best.netUsdMicros >= 0n).toBe(true)
        for (const { netUsdMicros } of alternatives) expect(netUsdMicros <= best.netUsdMicros).toBe(true)
      }),
    )
    const real = fc.record({
      cents: fc.bigInt({ min: 1n, max: 10n ** 9n }),
      fromChain: fc.constantFrom('ethereum', 'base', 'polygon', 'solana'),
      toChain: fc.constantFrom('arbitrum', 'optimism', 'solana'),
    })
    await fc.assert(
      fc.asyncProperty(real, async ({ cents, ...chains }) => {
        const names = { fromToken: 'USDC', toToken: 'USDT', ...chains }
        const quote = await quoteSwap(createSandboxAggregators(), requestFor(names, cents * 10_000n)).catch(
          () => undefined,
        )
        for (const { netUsdMicros } of quote?.alternatives ?? [])
          expect(netUsdMicros <= (quote?.best.netUsdMicros ?? 0n)).toBe(true)
      }),
    )
  })

  it('varies with amount and route among the sandbox’s aggregators', async () => {
    const cheapest = async (dollars: bigint, changes = {}) =>
      (await quoteSwap(createSandboxAggregators(), requestFor(changes, dollars * 1_000_000n))).best.tool
    expect(await cheapest(20n)).toBe('sandbox-share')
    expect(await cheapest(1_000n)).toBe('sandbox-gas')
    expect(await cheapest(50_000n)).toBe('sandbox-flat')
    // Where gas is expensive, and where the aggregator with a percentage fee has no route.
    expect(await cheapest(1_000n, { fromChain: 'ethereum' })).not.toBe('sandbox-gas')
    expect(await cheapest(20n, { toChain: 'solana' })).toBe('sandbox-gas')
  })

  it('succeeds when some aggregators fail, and lists them with reasons', async () => {
    const { best, failed } = await quoteSwap(
      [
        failing('broken', 'bad_answer'),
        failing('odd', 'connect ECONNREFUSED 10.0.0.1 with key s3cret'),
        hanging('slow'),
        { tool: 'other', quote: async () => ({ status: 'none', reason: 'no_route' }) },
        offering('good', {}),
      ],
      requestFor(),
      100,
    )
    expect(best.tool).toBe('good')
    expect(failed).toEqual([
      { tool: 'broken', reason: 'bad_answer' },
      { tool: 'odd', reason: 'unavailable' },
      { tool: 'slow', reason: 'timeout' },
      { tool: 'other', reason: 'no_route' },
    ])
  })

  it('omits an offer that fees and gas consume', async () => {
    const eaten = offering('eaten', { amountOut: 1_000_000n, gasUsdMicros: 1_000_001n })
    const { best, alternatives, failed } = await quoteSwap([eaten, offering('good', {})], requestFor())
    expect([best.tool, alternatives]).toEqual(['good', []])
    expect(failed).toEqual([{ tool: 'eaten', reason: 'no_route' }])
    // Not a temporary failure.
    await expect(quoteSwap([eaten], requestFor())).rejects.toMatchObject({
      code: 'no_route',
      members: { retryAfter: 60, hint: expect.stringContaining('another amount') },
    })
    await expect(quoteSwap([eaten, failing('a', 'timeout')], requestFor())).rejects.toMatchObject({
      code: 'no_route',
      members: { retryAfter: 5 },
    })
  })

  it('fails when all aggregators fail, or none is configured', async () => {
    await expect(
      quoteSwap([failing('a', 'unavailable'), hanging('b')], requestFor(), 50),
    ).rejects.toMatchObject({
      code: 'no_route',
      message: expect.stringContaining('a: unavailable, b: timeout'),
    })
    await expect(quoteSwap([], requestFor())).rejects.toMatchObject({ code: 'no_route' })
  })

  it('waits at most until its deadline, even for an aggregator that ignores it', async () => {
    const deaf: SwapAggregator = { tool: 'deaf', quote: () => new Promise(() => {}) }
    const startedAt = performance.now()
    const { failed } = await quoteSwap([deaf, offering('good', {})], requestFor(), 150)
    expect(performance.now() - startedAt).toBeLessThan(600)
    expect(failed).toEqual([{ tool: 'deaf', reason: 'timeout' }])
  })
})

describe('the breaker', () => {
  const ask = (aggregator: SwapAggregator) =>
    aggregator.quote(requestFor(), AbortSignal.timeout(500)).then(
      ({ status }) => status,
      (error: Error) => error.message,
    )

  it('opens after five consecutive failures, and closes when a background probe succeeds', async () => {
    const clock = movedClock()
    let isUp = false
    let asked = 0
    const shaky: SwapAggregator = {
      tool: 'shaky',
      quote: async () => {
        asked += 1
        if (!isUp) throw new Error('unavailable')
        return { status: 'none', reason: 'no_route' }
      },
    }
    const guarded = guardAggregator(shaky, { clock, log: silentLog })
    for (let at = 0; at < 5; at += 1) expect(await ask(guarded)).toBe('unavailable')
    expect(await ask(guarded)).toBe('circuit_open')
    expect(asked).toBe(5)
    clock.forward(29_999)
    expect(await ask(guarded)).toBe('circuit_open')
    expect(asked).toBe(5)
    // Half open: one call is let through, and its failure opens the breaker for as long again.
    clock.forward(1)
    expect([await ask(guarded), await ask(guarded), asked]).toEqual(['circuit_open', 'circuit_open', 6])
    isUp = true
    clock.forward(30_000)
    expect(await ask(guarded)).toBe('circuit_open')
    await pause(1)
    expect([await ask(guarded), asked]).toEqual(['none', 8])
  })

  it('counts consecutive failures only', async () => {
    let at = 0
    const shaky: SwapAggregator = {
      tool: 'shaky',
      quote: async () => {
        at += 1
        if (at % 5 !== 0) throw new Error('unavailable')
        return { status: 'none', reason: 'no_route' }
      },
    }
    const guarded = guardAggregator(shaky, { clock: movedClock(), log: silentLog })
    for (let call = 0; call < 30; call += 1) expect(await ask(guarded)).not.toBe('circuit_open')
  })
})

describe('a hung aggregator', () => {
  const server = createServer(() => {})
  let dead: SwapAggregator
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    // A listening server has an address object with a port.
    const { port } = server.address() as AddressInfo
    dead = createLifi({ url: `http://127.0.0.1:${port}`, apiKey: null })
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  it('costs nothing after a while: the fiftieth quote takes as long as without it', {
    timeout: 60_000,
  }, async () => {
    // Each of the others is as fast as a real one at its best.
    const others = createSandboxAggregators().map(
      (each): SwapAggregator => ({
        tool: each.tool,
        quote: async (request, signal) => {
          await pause(60)
          return each.quote(request, signal)
        },
      }),
    )
    const guarded = guardAggregator(dead, { clock: systemClock, log: silentLog })
    const timeQuote = async (aggregators: readonly SwapAggregator[]) => {
      const startedAt = performance.now()
      await quoteSwap(aggregators, requestFor(), 500)
      return performance.now() - startedAt
    }
    const times: number[] = []
    for (let at = 0; at < 49; at += 1) times.push(await timeQuote([guarded, ...others]))
    expect(times.slice(0, 5).every((time) => time >= 490)).toBe(true)
    const middle = async (aggregators: readonly SwapAggregator[]) => {
      const several = []
      for (let at = 0; at < 9; at += 1) several.push(await timeQuote(aggregators))
      return several.sort((one, other) => one - other)[4] ?? 0
    }
    const [withIt, without] = [await middle([guarded, ...others]), await middle(others)]
    expect(withIt).toBeLessThanOrEqual(1.2 * without)
  })
})
