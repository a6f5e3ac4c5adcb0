/** External inspection of a chain: queries its node and, unlike connecting, changes nothing. */

import { z } from 'zod'
import { type ChainName, chainFacts } from '../../core/money/chains.ts'
import type { Address, ContractSupport, Hex } from '../../providers/chain/port.ts'
import { callProvider } from '../../providers/http-client.ts'
import { canonicalContracts, schemeContracts } from '../rpc/networks.ts'
import { findAnvil } from './anvil-process.ts'

/** Result of an inspection. @property date node's clock from the response header; null if absent. */
export interface ChainSight {
  readonly chainId: number
  readonly expectedChainId: number
  readonly blockNumber: bigint
  readonly blockAt: Date
  readonly hasEntryPoint: boolean
  /** Whether payments by schemes of x402 with contracts of their own can be made. */
  readonly support: Readonly<Record<keyof typeof schemeContracts, ContractSupport>>
  /** Wei; null if gas is free. */
  readonly sponsorBalance: bigint | null
  /** True if it is a development node, which the gateway sets up itself. */
  readonly isDevelopment: boolean
  readonly date: Date | null
}

const quantity = z.string().regex(/^0x[0-9a-f]+$/i)
const block = z.looseObject({ number: quantity, timestamp: quantity })

/** Finds the binary of the local chain. @throws Error with instructions when there is none. */
export const locateAnvil = findAnvil

/**
 * Queries a node.
 * @param signal ends the wait.
 * @throws Error when it does not answer like a node; the message never contains the URL.
 */
export async function inspectChain(
  {
    name,
    url,
    sponsor,
    x402Hashes,
  }: {
    readonly name: ChainName
    readonly url: string
    /** Address that pays for gas. */
    readonly sponsor: Address | null
    readonly x402Hashes: readonly Hex[]
  },
  signal: AbortSignal,
): Promise<ChainSight> {
  let date: Date | null = null
  const request = async (method: string, params: readonly unknown[] = []): Promise<unknown> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const headers = { 'content-type': 'application/json' }
    const response = await callProvider({ url, method: 'POST', headers, body, signal })
    const dateHeader = response.headers.get('date')
    date = dateHeader === null ? null : new Date(dateHeader)
    if (!response.ok) throw new Error(`it answers ${response.status}`)
    const { result, error } = z
      .looseObject({ result: z.unknown(), error: z.looseObject({ message: z.string() }).optional() })
      .parse(JSON.parse(response.text))
    if (error !== undefined) throw new Error(`${method}: ${error.message.slice(0, 120)}`)
    return result
  }
  const judge = (scheme: keyof typeof schemeContracts) =>
    judgeScheme(request, schemeContracts[scheme], new Set(x402Hashes))
  const [chainId, version, latest, code, balance, upto, channels, escrow] = await Promise.all([
    request('eth_chainId'),
    request('web3_clientVersion').catch(() => ''),
    request('eth_getBlockByNumber', ['latest', false]),
    request('eth_getCode', [canonicalContracts.entryPoint, 'latest']),
    readBalance(request, sponsor),
    judge('upto'),
    judge('batch-settlement'),
    judge('auth-capture'),
  ])
  const { number, timestamp } = block.parse(latest)
  return {
    chainId: Number(quantity.parse(chainId)),
    expectedChainId: chainFacts(name).id,
    blockNumber: BigInt(number),
    blockAt: new Date(Number(timestamp) * 1_000),
    support: { upto, 'batch-settlement': channels, 'auth-capture': escrow },
    hasEntryPoint: typeof code === 'string' && code.length > 2,
    sponsorBalance: balance,
    isDevelopment: typeof version === 'string' && /anvil|hardhat|ganache/i.test(version),
    date,
  }
}

type Request = (method: string, params?: readonly unknown[]) => Promise<unknown>

async function judgeScheme(
  request: Request,
  contracts: readonly Address[],
  hashes: ReadonlySet<Hex>,
): Promise<ContractSupport> {
  const { judgeContractSupport } = await import('../relay/contract-support.ts')
  const codes = await Promise.all(contracts.map((address) => request('eth_getCode', [address, 'latest'])))
  return judgeContractSupport(
    codes.map((code) =>
      typeof code === 'string' && code !== '0x' ? (`0x${code.slice(2)}` as const) : undefined,
    ),
    hashes,
  )
}

async function readBalance(request: Request, sponsor: Address | null): Promise<bigint | null> {
  if (sponsor === null) return null
  return BigInt(quantity.parse(await request('eth_getBalance', [sponsor, 'latest'])))
}
