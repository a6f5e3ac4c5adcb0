/** The connection to a node: viem's public client, tuned for a node nearby or far away. */
import { createPublicClient, defineChain, type PublicClient } from 'viem'
import { baseSepolia } from './networks.ts'
import { batchTransport } from './transport.ts'

/** How to talk to a node. @property pollingIntervalMs the first pause before a receipt is asked for again. */
export interface ClientOptions {
  readonly url: string
  readonly pollingIntervalMs: number
  readonly timeoutMs: number
  /** How many calls may share a request; 1 for public nodes, which limit or refuse that. */
  readonly batchSize: number
}

/** A client of one node. */
export type NodeClient = PublicClient

/** Connects to a node; nothing is sent yet. */
export function createNodeClient({
  url,
  pollingIntervalMs,
  timeoutMs,
  batchSize,
}: ClientOptions): NodeClient {
  const chain = defineChain({
    id: baseSepolia.id,
    name: baseSepolia.name,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  })
  return createPublicClient({
    chain,
    transport: batchTransport({ url, timeoutMs, batchSize }),
    pollingInterval: pollingIntervalMs,
    cacheTime: 0,
  })
}

/** For a node on this machine or network, which answers at once. */
export function nearby(url: string): ClientOptions {
  return { url, pollingIntervalMs: 10, timeoutMs: 5_000, batchSize: 40 }
}

/** For a node of somebody else's. */
export function remoteNodeOptions(url: string): ClientOptions {
  return { url, pollingIntervalMs: 500, timeoutMs: 5_000, batchSize: 1 }
}
