/** The swap aggregator port's contract, on every adapter: requests, offers, and every failure. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findSwapToken, type SwapChain, type SwapToken } from '../../src/core/money/swap-tokens.ts'
import { createAcross } from '../../src/providers/swap-aggregator/across.ts'
import { createLifi } from '../../src/providers/swap-aggregator/lifi.ts'
import type { SwapAggregator, SwapRequest } from '../../src/providers/swap-aggregator/port.ts'
import { createRelay } from '../../src/providers/swap-aggregator/relay.ts'
import { createSandboxAggregators } from '../../src/providers/swap-aggregator/sandbox.ts'
import { createZeroEx } from '../../src/providers/swap-aggregator/zeroex.ts'
import { json, listenLocally } from './local-server.ts'

const sender = `0x${'1'.repeat(40)}`
function token(chain: SwapChain, symbol: string): SwapToken {
  const found = findSwapToken(chain, symbol)
  if (found === undefined) throw new Error(`${symbol} is not on ${chain}`)
  return found
}
const request: SwapRequest = {
  from: token('base', 'USDC'),
  to: token('arbitrum', 'USDT'),
  amountIn: 100_000_000n,
  slippageBps: 50,
  sender,
}
const usdt = { symbol: 'USDT', decimals: 6 }
const soon = () => AbortSignal.timeout(400)

/** Each vendor's answer, in its published shape, and the offer read from it. */
const vendors: readonly {
  readonly tool: string
  readonly create: (url: string) => SwapAggregator
  readonly answer: unknown
  readonly offer: object
  readonly asked: { method: string; path: string; query: object; body?: object; headers: object }
}[] = [
  {
    tool: 'lifi',
    create: (url) => createLifi({ url, apiKey: 'a-key' }),
    answer: {
      id: 'q',
      type: 'lifi',
      tool: 'across',
      estimate: {
        fromAmount: '100000000',
        toAmount: '99700000',
        toAmountMin: '99200000',
        toAmountUSD: '99.65',
        executionDuration: 31.5,
        feeCosts: [
          { name: 'LIFI Fixed Fee', amount: '250000', amountUSD: '0.25', included: true, token: usdt },
          { name: 'Bridge Fee', amount: '100000', amountUSD: '0.1000001', included: false, token: usdt },
        ],
        gasCosts: [
          { type: 'SEND', amount: '1', amountUSD: '0.02', token: { symbol: 'ETH', decimals: 18 } },
          { type: 'APPROVE', amount: '1', amountUSD: '0.01', token: { symbol: 'ETH', decimals: 18 } },
        ],
      },
    },
    offer: {
      amountOut: 99_700_000n,
      amountOutMin: 99_200_000n,
      outUsdMicros: 99_650_000n,
      fees: [
        { name: 'LIFI Fixed Fee', amount: '0.25', token: 'USDT', usdMicros: 250_000n, included: true },
        { name: 'Bridge Fee', amount: '0.1', token: 'USDT', usdMicros: 100_001n, included: false },
      ],
      gasUsdMicros: 30_000n,
      priceImpactBps: null,
      durationSec: 32,
    },
    asked: {
      method: 'GET',
      path: '/v1/quote',
      query: {
        fromChain: '8453',
        toChain: '42161',
        fromToken: request.from.address,
        toToken: request.to.address,
        fromAmount: '100000000',
        fromAddress: sender,
        slippage: '0.005',
      },
      headers: { 'x-lifi-api-key': 'a-key' },
    },
  },
  {
    tool: 'relay',
    create: (url) => createRelay({ url, apiKey: null }),
    answer: {
      steps: [],
      fees: {
        gas: { currency: { symbol: 'ETH' }, amountFormatted: '0.00001', amountUsd: '0.034' },
        relayer: { currency: { symbol: 'USDC' }, amountFormatted: '0.12', amountUsd: '0.119999' },
        app: { currency: { symbol: 'USDC' }, amountFormatted: '-0.01', amountUsd: '-0.01' },
      },
      details: {
        currencyOut: { amount: '99870000', amountUsd: '99.80', minimumAmount: '99370000' },
        totalImpact: { usd: '-0.2', percent: '-0.20' },
        timeEstimate: 4,
      },
    },
    offer: {
      amountOut: 99_870_000n,
      amountOutMin: 99_370_000n,
      outUsdMicros: 99_800_000n,
      fees: [
        { name: 'relayer', amount: '0.12', token: 'USDC', usdMicros: 119_999n, included: true },
        { name: 'app', amount: '-0.01', token: 'USDC', usdMicros: 0n, included: true },
      ],
      gasUsdMicros: 34_000n,
      priceImpactBps: 20,
      durationSec: 4,
    },
    asked: {
      method: 'POST',
      path: '/quote/v2',
      query: {},
      body: {
        user: sender,
        originChainId: 8453,
        destinationChainId: 42161,
        originCurrency: request.from.address,
        destinationCurrency: request.to.address,
        amount: '100000000',
        tradeType: 'EXACT_INPUT',
      },
      headers: { 'content-type': 'application/json' },
    },
  },
  {
    tool: '0x',
    create: (url) => createZeroEx({ url, apiKey: 'a-key' }),
    answer: {
      liquidityAvailable: true,
      quotes: [
        {
          sellAmount: '100000000',
          buyAmount: '99600000',
          minBuyAmount: '99100000',
          estimatedTimeSeconds: 12,
          fees: {
            integratorFee: null,
            integratorFees: null,
            zeroExFee: { amount: '150000', token: request.to.address, type: 'volume' },
            bridgeNativeFee: {
              amount: '100000000000000',
              token: '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE',
              type: 'native',
            },
          },
          gasCosts: { chainType: 'evm', gasPrice: '10000000', gasLimit: '300000' },
        },
      ],
    },
    offer: {
      amountOut: 99_600_000n,
      amountOutMin: 99_100_000n,
      outUsdMicros: null,
      fees: [
        { name: '0x', amount: '0.15', token: 'USDT', usdMicros: 150_000n, included: true },
        { name: 'bridge', amount: '0.0001', token: 'ETH', usdMicros: 340_000n, included: false },
      ],
      // 3 * 10^12 wei at 3,400 USD.
      gasUsdMicros: 10_200n,
      priceImpactBps: null,
      durationSec: 12,
    },
    asked: {
      method: 'GET',
      path: '/cross-chain/quotes',
      query: {
        originChain: '8453',
        destinationChain: '42161',
        sellToken: request.from.address,
        buyToken: request.to.address,
        sellAmount: '100000000',
        originAddress: sender,
        sortQuotesBy: 'price',
      },
      headers: { '0x-api-key': 'a-key' },
    },
  },
  {
    tool: 'across',
    create: (url) => createAcross({ url, apiKey: 'a-key' }),
    answer: {
      crossSwapType: 'bridgeableToAny',
      inputAmount: '100000000',
      expectedOutputAmount: '99900000',
      minOutputAmount: '99400000',
      expectedFillTime: 2,
      fees: {
        total: { amount: '90000', amountUsd: '0.09', pct: '900000000000000', token: usdt },
        originGas: { amount: '1', amountUsd: '0.004', token: { symbol: 'ETH', decimals: 18 } },
      },
    },
    offer: {
      amountOut: 99_900_000n,
      amountOutMin: 99_400_000n,
      outUsdMicros: null,
      fees: [{ name: 'total', amount: '0.09', token: 'USDT', usdMicros: 90_000n, included: true }],
      gasUsdMicros: 4_000n,
      priceImpactBps: null,
      durationSec: 2,
    },
    asked: {
      method: 'GET',
      path: '/swap/approval',
      query: {
        tradeType: 'exactInput',
        originChainId: '8453',
        destinationChainId: '42161',
        inputToken: request.from.address,
        outputToken: request.to.address,
        amount: '100000000',
        depositor: sender,
      },
      headers: { authorization: 'Bearer a-key' },
    },
  },
]

describe.each(vendors)('swap aggregator: $tool', ({ tool, create, answer, offer, asked }) => {
  const questions: { request: IncomingMessage; body: string }[] = []
  let respond: (response: ServerResponse, at: number) => void = () => {}
  const server = createServer(async (incoming, response) => {
    questions.push({ request: incoming, body: await text(incoming) })
    respond(response, questions.length)
  })
  let aggregator: SwapAggregator
  beforeAll(async () => {
    aggregator = create(await listenLocally(server))
  })
  beforeEach(() => {
    questions.length = 0
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  it('sends the vendor’s documented request, and reads the offer', async () => {
    respond = json(answer)
    expect(aggregator.tool).toBe(tool)
    expect(await aggregator.quote(request, soon())).toEqual({ status: 'offered', offer })
    const [question] = questions
    const url = new URL(question?.request.url ?? '', 'http://vendor')
    expect([question?.request.method, url.pathname]).toEqual([asked.method, asked.path])
    expect(Object.fromEntries(url.searchParams)).toMatchObject(asked.query)
    expect(question?.request.headers).toMatchObject(asked.headers)
    if (asked.body !== undefined) expect(JSON.parse(question?.body ?? '')).toMatchObject(asked.body)
  })

  it('returns no route when the vendor has none', async () => {
    for (const status of [400, 404, 422]) {
      respond = json({ message: 'No available quotes for the requested transfer' }, status)
      expect(await aggregator.quote(request, soon())).toEqual({ status: 'none', reason: 'no_route' })
    }
  })

  it('is not called for unsupported routes', async () => {
    const unsupported = { status: 'none', reason: 'unsupported_route' }
    for (const changes of [
      { to: token('solana', 'USDC') },
      { sender: null },
      { from: token('base-sepolia', 'PYUSD') },
    ])
      expect(await aggregator.quote({ ...request, ...changes }, soon())).toEqual(unsupported)
    expect(questions).toEqual([])
  })

  it.each([
    ['500', json({}, 500), 'unavailable'],
    ['401', json({}, 401), 'unavailable'],
    ['429', json({}, 429), 'unavailable'],
    [
      'a redirect',
      (response: ServerResponse) => void response.writeHead(302, { location: '/' }).end(),
      'unavailable',
    ],
    ['invalid JSON', (response: ServerResponse) => void response.end('<html>'), 'bad_answer'],
    ['an unexpected document', json({ quotes: 'none' }), 'bad_answer'],
    ['a hang-up', (response: ServerResponse) => void response.destroy(), 'unavailable'],
    ['silence', () => {}, 'timeout'],
  ])('fails on %s, with the reason', async (_name, next, reason) => {
    respond = next
    await expect(aggregator.quote(request, soon())).rejects.toThrow(new RegExp(`^${reason}$`))
  })

  it('retries once when that is safe', async () => {
    respond = (response, at) => (at === 1 ? void response.destroy() : json(answer)(response))
    const quoted = aggregator.quote(request, soon())
    if (asked.method === 'GET') expect(await quoted).toMatchObject({ status: 'offered' })
    else await expect(quoted).rejects.toThrow('unavailable')
    expect(questions).toHaveLength(asked.method === 'GET' ? 2 : 1)
  })
})

describe('the executable offers of LI.FI', () => {
  const questions: string[] = []
  let made: object = {}
  const server = createServer((incoming, response) => {
    questions.push(incoming.url ?? '')
    json(made)(response)
  })
  let origin = ''
  beforeAll(async () => {
    origin = await listenLocally(server)
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  const desk = `0x${'d'.repeat(40)}` as const
  const diamond = `0x${'1'.repeat(40)}`
  const estimate = {
    toAmount: '99700000',
    toAmountMin: '99200000',
    toAmountUSD: '99.65',
    executionDuration: 0,
    approvalAddress: diamond,
  }
  const venue = {
    chain: { name: 'base', swapDesk: desk, tokens: { USDC: desk } },
    at: new Date(0),
  }
  const quoteLocally = () =>
    createLifi({ url: origin, apiKey: null }).quote(
      { ...request, to: token('base', 'USDT'), venue: venue as never },
      soon(),
    )

  it('are asked for the desk, which makes the call and gets what it buys', async () => {
    made = { estimate, transactionRequest: { to: diamond, data: '0x1234', value: '0x0' } }
    expect(await quoteLocally()).toMatchObject({
      status: 'offered',
      offer: { call: { target: diamond, spender: diamond, data: '0x1234' } },
    })
    const { searchParams } = new URL(questions.at(-1) ?? '', origin)
    expect([searchParams.get('fromAddress'), searchParams.get('toAddress')]).toEqual([desk, desk])
  })

  it('are prices only where the call needs native coin, or there is none', async () => {
    for (const transactionRequest of [{ to: diamond, data: '0x1234', value: '0x5' }, null, undefined]) {
      made = { estimate, transactionRequest }
      const answer = await quoteLocally()
      expect(answer).toMatchObject({ status: 'offered' })
      expect(answer).not.toMatchObject({ offer: { call: expect.anything() } })
    }
  })
})

const modelled = createSandboxAggregators().filter(({ isLocal }) => isLocal !== true)

describe.each(modelled.map((each) => [each.tool, each] as const))(
  'swap aggregator: %s',
  (_tool, aggregator) => {
    const offerFor = async (changes: Partial<SwapRequest> = {}) => {
      const answer = await aggregator.quote({ ...request, ...changes }, soon())
      if (answer.status === 'none') throw new Error(answer.reason)
      return answer.offer
    }

    it('offers less than the input, and at least its minimum', async () => {
      const offer = await offerFor()
      expect(offer.amountOut < request.amountIn).toBe(true)
      expect(offer.amountOutMin < offer.amountOut).toBe(true)
      expect(offer.gasUsdMicros > 0n).toBe(true)
    })

    it('offers more for a larger input', async () => {
      const amounts = [1_000_000n, 10n ** 9n, 10n ** 12n]
      const [little = 0n, more = 0n, most = 0n] = await Promise.all(
        amounts.map(async (amountIn) => (await offerFor({ amountIn })).amountOut),
      )
      expect(little < more && more < most).toBe(true)
    })

    it('returns no route when the fee exceeds the amount', async () => {
      expect(await aggregator.quote({ ...request, amountIn: 1n }, soon())).toEqual({
        status: 'none',
        reason: 'no_route',
      })
    })
  },
)
