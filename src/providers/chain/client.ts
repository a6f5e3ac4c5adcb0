/** The connection to a node: viem's public client over HTTP, tuned for a node nearby or far away. */
import { BaseError, createPublicClient, defineChain, type HttpTransport, http, type PublicClient } from 'viem'
import { baseSepolia } from './networks.ts'

/** How to talk to a node. @property pollingIntervalMs how often a receipt is asked for while it is awaited. */
export interface ClientOptions {
  readonly url: string
  readonly pollingIntervalMs: number
  readonly timeoutMs: number
}

/** A client of one node. Requests are never retried here: whoever waits knows better whether that is safe. */
export type NodeClient = PublicClient

/** Connects to a node; nothing is sent yet. */
export function createNodeClient({ url, pollingIntervalMs, timeoutMs }: ClientOptions): NodeClient {
  const chain = defineChain({
    id: baseSepolia.id,
    name: baseSepolia.name,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  })
  return createPublicClient({
    chain,
    transport: steady(http(url, { retryCount: 0, timeout: timeoutMs })),
    pollingInterval: pollingIntervalMs,
    cacheTime: 0,
  })
}

/** How often a read is asked again that met a new block. */
const ATTEMPTS = 5

/**
 * Asks again where the block a read was for is gone before it was read, as happens on a development node that prunes its
 * history and mines many blocks. Such a refusal comes before anything is executed.
 */
function steady(transport: HttpTransport): HttpTransport {
  return (config) => {
    const made = transport(config)
    const { request } = made
    return {
      ...made,
      async request(body) {
        for (let attempt = 1; ; attempt += 1) {
          try {
            return await request(body)
          } catch (error) {
            if (attempt === ATTEMPTS || !isBlockGone(error)) throw error
          }
        }
      },
    }
  }
}

function isBlockGone(error: unknown): boolean {
  return error instanceof BaseError && error.details.startsWith('BlockOutOfRangeError')
}
