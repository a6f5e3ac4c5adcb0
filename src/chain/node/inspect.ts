/** External inspection of a chain: queries its node and, unlike connecting, changes nothing. */

import { z } from 'zod'
import { type ChainName, chainFacts } from '../../core/money/chains.ts'
import type { Hex, UptoSupport } from '../../providers/chain/port.ts'
import { callProvider } from '../../providers/http-client.ts'
import { canonicalContracts, permit2Address, uptoProxyAddress } from '../rpc/networks.ts'
import { findAnvil } from './anvil-process.ts'

/** Result of an inspection. @property date node's clock from the response header; null if absent. */
export interface ChainSight {
  readonly chainId: number
  readonly expectedChainId: number
  readonly blockNumber: bigint
  readonly blockAt: Date
  readonly hasEntryPoint: boolean
  /** Whether payments by the x402 scheme `upto` can be made. */
  readonly uptoSupport: UptoSupport
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
    sponsorKey,
    uptoHashes,
  }: {
    readonly name: ChainName
    readonly url: string
    readonly sponsorKey: string | null
    readonly uptoHashes: readonly Hex[]
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
  const [chainId, version, latest, code, balance, ...uptoCodes] = await Promise.all([
    request('eth_chainId'),
    request('web3_clientVersion').catch(() => ''),
    request('eth_getBlockByNumber', ['latest', false]),
    request('eth_getCode', [canonicalContracts.entryPoint, 'latest']),
    readBalance(request, sponsorKey),
    ...[permit2Address, uptoProxyAddress].map((address) => request('eth_getCode', [address, 'latest'])),
  ])
  const { number, timestamp } = block.parse(latest)
  return {
    chainId: Number(quantity.parse(chainId)),
    expectedChainId: chainFacts(name).id,
    blockNumber: BigInt(number),
    blockAt: new Date(Number(timestamp) * 1_000),
    uptoSupport: await judgeUptoCode(uptoCodes, new Set(uptoHashes)),
    hasEntryPoint: typeof code === 'string' && code.length > 2,
    sponsorBalance: balance,
    isDevelopment: typeof version === 'string' && /anvil|hardhat|ganache/i.test(version),
    date,
  }
}

async function judgeUptoCode(codes: readonly unknown[], hashes: ReadonlySet<Hex>): Promise<UptoSupport> {
  const { judgeUptoSupport } = await import('../relay/permits.ts')
  return judgeUptoSupport(
    codes.map((code) =>
      typeof code === 'string' && code !== '0x' ? (`0x${code.slice(2)}` as const) : undefined,
    ),
    hashes,
  )
}

async function readBalance(
  request: (method: string, params?: readonly unknown[]) => Promise<unknown>,
  sponsorKey: string | null,
): Promise<bigint | null> {
  if (sponsorKey === null) return null
  const { privateKeyToAddress } = await import('viem/accounts')
  const address = privateKeyToAddress(`0x${sponsorKey.slice(2)}`)
  return BigInt(quantity.parse(await request('eth_getBalance', [address, 'latest'])))
}
