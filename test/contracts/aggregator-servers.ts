/**
 * LI.FI and 0x within a chain, as strict as their documents: unknown members, missing keys and malformed addresses are refused. What they
 * offer is the sandbox's market on a local node, so that it can be executed; on wish they lie.
 * @see https://docs.li.fi/api-reference/get-a-quote-for-a-token-transfer @see https://0x.org/docs/api#tag/Swap
 */
import { createServer, type IncomingMessage } from 'node:http'
import { type Address, createPublicClient, encodeFunctionData, getAddress, type Hex, http } from 'viem'
import { z } from 'zod'
import { poolAbi, sandboxPoolAddress } from '../../src/providers/sandbox-market.ts'
import { json, listenLocally } from './local-server.ts'

const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/)
  .transform((text) => getAddress(text))
const units = z
  .string()
  .regex(/^[1-9]\d{0,77}$/)
  .transform(BigInt)

const lifiQuery = z.strictObject({
  fromChain: z.string().regex(/^\d+$/),
  toChain: z.string().regex(/^\d+$/),
  fromToken: address,
  toToken: address,
  fromAmount: units,
  fromAddress: address,
  toAddress: address.optional(),
  slippage: z.coerce.number().positive().max(1),
  order: z.enum(['CHEAPEST', 'FASTEST']),
})

const zeroExQuery = z.strictObject({
  chainId: z.string().regex(/^\d+$/),
  sellToken: address,
  buyToken: address,
  sellAmount: units,
  taker: address,
  recipient: address.optional(),
  slippageBps: z.coerce.number().int().min(0).max(10_000),
})

export const apiKeys = { lifi: 'a-lifi-key', '0x': 'a-zeroex-key' } as const

/** How an offer's call differs from what the offer says. */
export type Lie =
  | 'buys for another'
  | 'takes twice the amount'
  | 'approves another'
  | 'sells another amount'
  | 'asks for coin'

/** @property shares of the market's price that each offers, in basis points. */
export interface AggregatorServers {
  readonly origin: string
  readonly asked: { readonly path: string; readonly status: number }[]
  shares: Record<'lifi' | '0x', number>
  lie: Lie | null
  /** The node on which the market is. */
  rpcUrl: string
  close(): void
}

const STRANGER: Address = '0x00000000000000000000000000000000000000b5'

interface Wish {
  readonly sell: Address
  readonly buy: Address
  readonly amount: bigint
  readonly taker: Address
  readonly slippageBps: number
}

export async function startAggregators(): Promise<AggregatorServers> {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://vendor')
    const { status, body } = await answer(url, request).catch((error: unknown) => ({
      status: error instanceof z.ZodError ? 400 : 500,
      body: { message: String(error) } as object,
    }))
    servers.asked.push({ path: url.pathname, status })
    json(body, status)(response)
  })
  const servers: AggregatorServers = {
    origin: await listenLocally(server),
    asked: [],
    shares: { lifi: 10_000, '0x': 10_000 },
    lie: null,
    rpcUrl: '',
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }

  async function answer(url: URL, request: IncomingMessage): Promise<{ status: number; body: object }> {
    if (request.method !== 'GET') return { status: 405, body: { message: 'Method Not Allowed' } }
    const query = Object.fromEntries(url.searchParams)
    if (url.pathname === '/v1/quote') {
      if (request.headers['x-lifi-api-key'] !== apiKeys.lifi)
        return { status: 401, body: { message: 'Invalid API key' } }
      const { fromToken, toToken, fromAmount, fromAddress, toAddress, slippage, fromChain, toChain } =
        lifiQuery.parse(query)
      if (fromChain !== toChain) return { status: 404, body: { code: 1_002, message: 'No available quotes' } }
      const wish = { sell: fromToken, buy: toToken, amount: fromAmount, taker: toAddress ?? fromAddress }
      return offerLifi({ ...wish, slippageBps: Math.round(slippage * 10_000) }, fromAddress)
    }
    if (url.pathname === '/swap/allowance-holder/quote') {
      if (request.headers['0x-api-key'] !== apiKeys['0x'])
        return { status: 401, body: { message: 'Unauthorized' } }
      if (request.headers['0x-version'] !== 'v2')
        return { status: 400, body: { name: 'INPUT_INVALID', data: { zid: 'z' } } }
      const { sellToken, buyToken, sellAmount, taker, recipient, slippageBps } = zeroExQuery.parse(query)
      const wish = { sell: sellToken, buy: buyToken, amount: sellAmount, taker: recipient ?? taker }
      return offerZeroEx({ ...wish, slippageBps })
    }
    return { status: 404, body: { message: 'Not Found' } }
  }

  /** @returns what the market pays, the vendor's share of it, and the call. */
  async function trade(wish: Wish, share: number) {
    const { sell, buy, amount, slippageBps } = wish
    const client = createPublicClient({ transport: http(servers.rpcUrl) })
    const paid = await client.readContract({
      address: sandboxPoolAddress,
      abi: poolAbi,
      functionName: 'quote',
      args: [sell, buy, amount],
    })
    const out = (paid * BigInt(share)) / 10_000n
    const least = (out * BigInt(10_000 - slippageBps)) / 10_000n
    const sold = servers.lie === 'takes twice the amount' ? 2n * amount : amount
    const to = servers.lie === 'buys for another' ? STRANGER : wish.taker
    const until = BigInt(Math.floor(Date.now() / 1_000) + 600)
    const data = encodeFunctionData({
      abi: poolAbi,
      functionName: 'swap',
      args: [sell, buy, sold, least, to, until],
    })
    const value = servers.lie === 'asks for coin' ? 1_000n : 0n
    return {
      out,
      least,
      data,
      value,
      spender: servers.lie === 'approves another' ? STRANGER : sandboxPoolAddress,
    }
  }

  async function offerLifi(wish: Wish, from: Address) {
    const { out, least, data, value, spender } = await trade(wish, servers.shares.lifi)
    return {
      status: 200,
      body: {
        type: 'lifi',
        id: crypto.randomUUID(),
        tool: 'pool',
        action: { fromAmount: wish.amount.toString(), fromAddress: from, toAddress: wish.taker },
        estimate: {
          tool: 'pool',
          approvalAddress: spender,
          fromAmount: wish.amount.toString(),
          toAmount: out.toString(),
          toAmountMin: least.toString(),
          executionDuration: 0,
          feeCosts: [],
          gasCosts: [],
        },
        includedSteps: [],
        transactionRequest: {
          from,
          to: sandboxPoolAddress,
          chainId: 84_532,
          data,
          value: `0x${value.toString(16)}`,
          gasPrice: '0x1',
          gasLimit: '0x5b8d8',
        },
      },
    }
  }

  async function offerZeroEx(wish: Wish) {
    const { out, least, data, value, spender } = await trade(wish, servers.shares['0x'])
    const isShort = servers.lie === 'sells another amount'
    return {
      status: 200,
      body: {
        liquidityAvailable: true,
        blockNumber: '1',
        allowanceTarget: spender,
        sellToken: wish.sell.toLowerCase(),
        sellAmount: (isShort ? wish.amount / 2n : wish.amount).toString(),
        buyToken: wish.buy.toLowerCase(),
        buyAmount: out.toString(),
        minBuyAmount: least.toString(),
        fees: { integratorFee: null, integratorFees: null, zeroExFee: null, gasFee: null },
        issues: {
          allowance: { actual: '0', spender },
          balance: null,
          simulationIncomplete: false,
          invalidSourcesPassed: [],
        },
        route: { fills: [], tokens: [] },
        tokenMetadata: {},
        totalNetworkFee: '3000000000000',
        transaction: {
          to: sandboxPoolAddress,
          data: data satisfies Hex,
          gas: '300000',
          gasPrice: '10000000',
          value: value.toString(),
        },
        zid: '0x1',
      },
    }
  }
  return servers
}
