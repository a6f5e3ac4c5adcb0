/** Client of a node: viem's public client, tuned for nearby and remote nodes. */
import {
  BaseError,
  createPublicClient,
  defineChain,
  type PublicClient,
  TimeoutError,
  type Transport,
  type Chain as ViemChain,
} from 'viem'
import { type ChainName, chainFacts, isChainName } from '../../core/money/chains.ts'
import { batchTransport } from './transport.ts'

/** Connection options. @property pollingIntervalMs first pause between receipt polls. */
export interface ClientOptions {
  /** Chain of the node, which signatures and transactions name; {@link requireChainId} compares it. */
  readonly chain: ChainName
  readonly url: string
  readonly pollingIntervalMs: number
  readonly timeoutMs: number
  /** Maximum calls per request; 1 for public nodes, which limit or reject batches. */
  readonly batchSize: number
}

export type NodeClient = PublicClient<Transport, ViemChain>

/** Connects to a node; nothing is sent yet. */
export function createNodeClient({
  chain: name,
  url,
  pollingIntervalMs,
  timeoutMs,
  batchSize,
}: ClientOptions): NodeClient {
  const facts = chainFacts(name)
  const chain = defineChain({
    id: facts.id,
    name,
    nativeCurrency: { name: facts.gasSymbol, symbol: facts.gasSymbol, decimals: 18 },
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
export function localNodeOptions(chain: ChainName, url: string): ClientOptions {
  return { chain, url, pollingIntervalMs: 10, timeoutMs: 5_000, batchSize: 40 }
}

/** Options for an external node. */
export function remoteNodeOptions(chain: ChainName, url: string): ClientOptions {
  return { chain, url, pollingIntervalMs: 500, timeoutMs: 5_000, batchSize: 1 }
}

/** Name of the chain that a client was created for. */
export function requireChainName({ chain: { name } }: NodeClient): ChainName {
  if (!isChainName(name)) throw new Error(`The chain ${name} is unknown.`)
  return name
}

/** Returns a sentence about a node of another chain; undefined for the right one. @param variable names its URL. */
export async function otherChain(client: NodeClient, variable: string): Promise<string | undefined> {
  const chainId = await client.getChainId()
  const { id, name } = client.chain
  return chainId === id ? undefined : `${variable} has chain id ${chainId}; ${name} has chain id ${id}`
}

/** @param variable names the node's URL in the configuration. @throws Error for a node of another chain. */
export async function requireChainId(client: NodeClient, variable: string): Promise<void> {
  const stranger = await otherChain(client, variable)
  if (stranger !== undefined) throw new Error(`The node at ${stranger}.`)
}

/** Checks whether a node did not answer in time. */
export function isTimeout(error: unknown): boolean {
  return error instanceof BaseError && error.walk((cause) => cause instanceof TimeoutError) !== null
}
