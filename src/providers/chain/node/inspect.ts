/** A look at a chain from outside: asks its node and changes nothing, unlike connecting to it. */

import { z } from 'zod'
import { callProvider } from '../../http-client.ts'
import { baseSepolia, canonicalContracts } from '../rpc/networks.ts'
import { findAnvil } from './anvil-process.ts'

/** What was seen. @property date of the node's clock, by its answer's header; null: it tells none. */
export interface ChainSight {
  readonly chainId: number
  readonly expectedChainId: number
  readonly blockNumber: bigint
  readonly blockAt: Date
  readonly hasEntryPoint: boolean
  /** Wei; null: nobody pays for gas. */
  readonly sponsorBalance: bigint | null
  /** Whether it is a development node, which the gateway sets up by itself. */
  readonly isDevelopment: boolean
  readonly date: Date | null
}

const quantity = z.string().regex(/^0x[0-9a-f]+$/i)
const block = z.looseObject({ number: quantity, timestamp: quantity })

/** Where the binary of the local chain is. @throws Error that says what to do where there is none. */
export const locateAnvil = findAnvil

/** Asks a node. @param signal ends the wait. @throws Error where it does not answer as a node does; it never names the URL. */
export async function inspectChain(
  { url, sponsorKey }: { readonly url: string; readonly sponsorKey: string | null },
  signal: AbortSignal,
): Promise<ChainSight> {
  let date: Date | null = null
  const ask = async (method: string, params: readonly unknown[] = []): Promise<unknown> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const headers = { 'content-type': 'application/json' }
    const response = await callProvider({ url, method: 'POST', headers, body, signal })
    const told = response.headers.get('date')
    date = told === null ? null : new Date(told)
    if (!response.ok) throw new Error(`it answers ${response.status}`)
    const { result, error } = z
      .looseObject({ result: z.unknown(), error: z.looseObject({ message: z.string() }).optional() })
      .parse(JSON.parse(response.text))
    if (error !== undefined) throw new Error(`${method}: ${error.message.slice(0, 120)}`)
    return result
  }
  const [chainId, version, latest, code, balance] = await Promise.all([
    ask('eth_chainId'),
    ask('web3_clientVersion').catch(() => ''),
    ask('eth_getBlockByNumber', ['latest', false]),
    ask('eth_getCode', [canonicalContracts.entryPoint, 'latest']),
    balanceOf(ask, sponsorKey),
  ])
  const { number, timestamp } = block.parse(latest)
  return {
    chainId: Number(quantity.parse(chainId)),
    expectedChainId: baseSepolia.id,
    blockNumber: BigInt(number),
    blockAt: new Date(Number(timestamp) * 1_000),
    hasEntryPoint: typeof code === 'string' && code.length > 2,
    sponsorBalance: balance,
    isDevelopment: typeof version === 'string' && /anvil|hardhat|ganache/i.test(version),
    date,
  }
}

async function balanceOf(
  ask: (method: string, params?: readonly unknown[]) => Promise<unknown>,
  sponsorKey: string | null,
): Promise<bigint | null> {
  if (sponsorKey === null) return null
  const { privateKeyToAddress } = await import('viem/accounts')
  const address = privateKeyToAddress(`0x${sponsorKey.slice(2)}`)
  return BigInt(quantity.parse(await ask('eth_getBalance', [address, 'latest'])))
}
