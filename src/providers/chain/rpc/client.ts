/** Client of a node: viem's public client, tuned for nearby and remote nodes. */
import { createPublicClient, defineChain, type PublicClient } from 'viem'
import { baseSepolia } from './networks.ts'
import { batchTransport } from './transport.ts'

/** Connection options. @property pollingIntervalMs first pause between receipt polls. */
export interface ClientOptions {
  readonly url: string
  readonly pollingIntervalMs: number
  readonly timeoutMs: number
  /** Maximum calls per request; 1 for public nodes, which limit or reject batches. */
  readonly batchSize: number
}

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

/** Options for a node on this machine or network, which answers quickly. */
export function localNodeOptions(url: string): ClientOptions {
  return { url, pollingIntervalMs: 10, timeoutMs: 5_000, batchSize: 40 }
}

/** Options for an external node. */
export function remoteNodeOptions(url: string): ClientOptions {
  return { url, pollingIntervalMs: 500, timeoutMs: 5_000, batchSize: 1 }
}
