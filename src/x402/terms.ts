/** What a payment must fit, in the words of both generations of x402. They differ in names only; the signed data are the same. */
import { getAddress } from 'viem'
import { decimalOf, type Money } from '../money/money.ts'
import type { Address, Chain } from '../providers/chain.ts'

/** How long a client may take between the challenge and the settlement, in seconds. */
const TIMEOUT_SECONDS = 300

/** The chains that can be paid on: names of the v1 network, and the EIP-712 domain of Circle's USDC there. */
const networks = {
  'base-sepolia': { v1: 'base-sepolia', v2: 'eip155:84532', domain: { name: 'USDC', version: '2' } },
  base: { v1: 'base', v2: 'eip155:8453', domain: { name: 'USD Coin', version: '2' } },
} as const

/** What is sold, for how much, to whom it is paid. @property units of USDC (1 USDC = 1_000_000n). */
export interface Terms {
  readonly network: (typeof networks)[keyof typeof networks]
  readonly asset: Address
  readonly payTo: Address
  readonly units: bigint
  /** The price as a decimal string. */
  readonly price: string
  readonly path: string
  /** The absolute URL of what is sold, from the configured origin: a Host header must not choose it. */
  readonly resource: `${string}://${string}`
  readonly description: string
}

/** What terms are made of. @property origin the configured public origin, such as `http://127.0.0.1:8787`. */
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

/** The terms of a sale. @throws Error where the chain cannot be paid on or the price is not in USDC: a wrong configuration. */
export function termsOf({ chain, payTo, price, origin, path, description }: TermsInput): Terms {
  if (!isKnownNetwork(chain.name)) throw new Error(`x402 payments are not known on the chain ${chain.name}`)
  if (price.asset !== 'USDC') throw new Error(`x402 prices are in USDC, not in ${price.asset}`)
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

/** The same terms at another price. */
export function withPrice(terms: Terms, units: bigint): Terms {
  return { ...terms, units, price: decimalOf({ asset: 'USDC', units }) }
}

/** The requirement as v1 clients read it. @see https://github.com/coinbase/x402/blob/main/specs/x402-specification-v1.md */
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

/** The requirement as v2 clients read it, and give it back. @see https://github.com/coinbase/x402/tree/main/specs */
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
