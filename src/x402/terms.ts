/** Payment terms in the form of both x402 generations, which differ only in names. */
import { getAddress } from 'viem'
import { decimalOf, type Money } from '../money/money.ts'
import type { Address, Chain } from '../providers/chain.ts'

/** Maximum time between challenge and settlement, in seconds. */
const TIMEOUT_SECONDS = 300

/** Supported chains: network names and the EIP-712 domain of Circle's USDC. */
const networks = {
  'base-sepolia': { v1: 'base-sepolia', v2: 'eip155:84532', domain: { name: 'USDC', version: '2' } },
  base: { v1: 'base', v2: 'eip155:8453', domain: { name: 'USD Coin', version: '2' } },
} as const

/** @property units of USDC (1 USDC = 1_000_000n). */
export interface Terms {
  readonly network: (typeof networks)[keyof typeof networks]
  readonly asset: Address
  readonly payTo: Address
  readonly units: bigint
  /** The price as a decimal string. */
  readonly price: string
  readonly path: string
  /** Absolute URL of the resource, from the configured origin; the Host header must not influence it. */
  readonly resource: `${string}://${string}`
  readonly description: string
}

/** @property origin configured public origin, such as `http://127.0.0.1:8787`. */
export interface TermsInput {
  readonly chain: Pick<Chain, 'name' | 'tokens'>
  readonly payTo: string
  readonly price: Money
  readonly origin: string
  readonly path: string
  readonly description: string
}

function isKnownNetwork(name: string): name is keyof typeof networks {
  return Object.hasOwn(networks, name)
}

/** @throws Error when the chain is not supported or the price is not in USDC. */
export function termsOf({ chain, payTo, price, origin, path, description }: TermsInput): Terms {
  if (!isKnownNetwork(chain.name))
    throw new Error(`x402 payments are not supported on the chain ${chain.name}`)
  if (price.asset !== 'USDC') throw new Error(`x402 prices must be in USDC, not ${price.asset}`)
  const { protocol, host } = new URL(origin)
  return {
    network: networks[chain.name],
    asset: getAddress(chain.tokens.USDC),
    payTo: getAddress(payTo),
    units: price.units,
    price: decimalOf(price),
    path,
    resource: `${protocol.slice(0, -1)}://${host}${path}`,
    description,
  }
}

export function withPrice(terms: Terms, units: bigint): Terms {
  return { ...terms, units, price: decimalOf({ asset: 'USDC', units }) }
}

/** @see https://github.com/coinbase/x402/blob/main/specs/x402-specification-v1.md */
export function requirementV1({ network, asset, payTo, units, resource, description }: Terms) {
  return {
    scheme: 'exact',
    network: network.v1,
    maxAmountRequired: units.toString(),
    resource,
    description,
    mimeType: 'application/json',
    payTo,
    maxTimeoutSeconds: TIMEOUT_SECONDS,
    asset,
    outputSchema: { input: { type: 'http', method: 'GET', discoverable: true } },
    extra: network.domain,
  }
}

/** v2 clients send this requirement back. @see https://github.com/coinbase/x402/tree/main/specs */
export function requirementV2({ network, asset, payTo, units }: Terms) {
  return {
    scheme: 'exact',
    network: network.v2,
    amount: units.toString(),
    asset,
    payTo,
    maxTimeoutSeconds: TIMEOUT_SECONDS,
    extra: { ...network.domain },
  }
}
