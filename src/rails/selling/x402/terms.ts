/** Payment terms in the form of both x402 generations, which differ only in names. */
import { getAddress } from 'viem'
import { chainFacts, toCaip2, type V1Network } from '../../../core/money/chains.ts'
import { type Money, toDecimal } from '../../../core/money/money.ts'
import type { Address, Chain } from '../../../providers/chain/port.ts'

/** Maximum time between challenge and settlement, in seconds. */
const TIMEOUT_SECONDS = 300

/** How long a payer that leaves its channel alone waits: rounds of claims fit in, also after an outage of hours. */
export const WITHDRAW_DELAY_SECONDS = 3 * 3600
/** Prices that a channel's deposits must cover at least. */
const DEPOSIT_PRICES = 10n

/** Network names of a chain, null where a version does not know it, and the EIP-712 domain of its USDC. */
export interface SellingNetwork {
  readonly v1: V1Network | null
  readonly v2: `eip155:${number}`
  readonly domain: { readonly name: string; readonly version: string }
}

/** @property units of USDC (1 USDC = 1_000_000n). */
export interface Terms {
  readonly network: SellingNetwork
  readonly asset: Address
  readonly payTo: Address
  readonly units: bigint
  /** Who settles payments by `upto`, which are at most the price; null: they are not taken. */
  readonly uptoFacilitator: Address | null
  /** Who claims from channels; null: no vouchers are taken. */
  readonly channelAuthorizer: Address | null
  /** The price as a decimal string. */
  readonly price: string
  readonly path: string
  /** Absolute URL of the resource, from the configured origin; the Host header must not influence it. */
  readonly resource: `${string}://${string}`
  readonly description: string
  /** Media type of what is sold. */
  readonly mimeType: string
  /** Where refunds are asked for; absent: nowhere. */
  readonly refundUrl?: string
}

/** @property origin configured public origin, such as `http://127.0.0.1:8787`. */
export interface TermsInput {
  readonly chain: Pick<Chain, 'name' | 'tokens'>
  readonly payTo: string
  readonly price: Money
  readonly origin: string
  readonly path: string
  readonly description: string
  readonly mimeType?: string
  /** Null by default. */
  readonly uptoFacilitator?: Address | null
  /** Null by default. */
  readonly channelAuthorizer?: Address | null
}

/** @throws Error when the price is not in USDC. */
export function buildTerms(input: TermsInput): Terms {
  const { chain, payTo, price, origin, path, description, mimeType = 'application/json' } = input
  const { uptoFacilitator = null, channelAuthorizer = null } = input
  if (price.asset !== 'USDC') throw new Error(`x402 prices must be in USDC, not ${price.asset}`)
  const { protocol, host } = new URL(origin)
  const facts = chainFacts(chain.name)
  const usdc = facts.tokens.USDC
  return {
    network: { v1: facts.x402V1, v2: toCaip2(facts), domain: { name: usdc.name, version: usdc.version } },
    asset: getAddress(chain.tokens.USDC),
    payTo: getAddress(payTo),
    units: price.units,
    uptoFacilitator,
    channelAuthorizer,
    price: toDecimal(price),
    path,
    resource: `${protocol.slice(0, -1)}://${host}${path}`,
    description,
    mimeType,
  }
}

export function withPrice(terms: Terms, units: bigint): Terms {
  return { ...terms, units, price: toDecimal({ asset: 'USDC', units }) }
}

/**
 * Requirement of version 1; null on a chain that it does not know.
 * @see https://github.com/coinbase/x402/blob/main/specs/x402-specification-v1.md
 */
export function requirementV1(terms: Terms) {
  const { network, asset, payTo, units, resource, description, mimeType } = terms
  if (network.v1 === null) return null
  return {
    scheme: 'exact',
    network: network.v1,
    maxAmountRequired: units.toString(),
    resource,
    description,
    mimeType,
    payTo,
    maxTimeoutSeconds: TIMEOUT_SECONDS,
    asset,
    outputSchema: { input: { type: 'http', method: 'GET', discoverable: true } },
    extra: network.domain,
  }
}

/** v2 clients send this requirement back. @see https://github.com/coinbase/x402/tree/main/specs */
export function requirementV2({ network, asset, payTo, units, refundUrl }: Terms) {
  return {
    scheme: 'exact',
    network: network.v2,
    amount: units.toString(),
    asset,
    payTo,
    maxTimeoutSeconds: TIMEOUT_SECONDS,
    extra: { ...network.domain, ...(refundUrl === undefined ? {} : { refundUrl }) },
  }
}

/**
 * Requirement of the scheme `upto`: the price is the most that is taken; null where it is not offered.
 * @see https://github.com/coinbase/x402/blob/main/specs/schemes/upto/scheme_upto_evm.md
 */
export function requirementUpto(terms: Terms) {
  const { network, uptoFacilitator } = terms
  if (uptoFacilitator === null) return null
  return {
    ...requirementV2(terms),
    scheme: 'upto',
    extra: { ...network.domain, assetTransferMethod: 'permit2', facilitatorAddress: uptoFacilitator },
  }
}

/** Requirement of the scheme `batch-settlement`: a voucher of a channel, whose deposit is at least ten times the price; null where not offered. */
export function requirementChannel(terms: Terms) {
  const { network, channelAuthorizer, units } = terms
  if (channelAuthorizer === null) return null
  return {
    ...requirementV2(terms),
    scheme: 'batch-settlement',
    extra: {
      ...network.domain,
      receiverAuthorizer: channelAuthorizer,
      withdrawDelay: WITHDRAW_DELAY_SECONDS,
      minDeposit: (units * DEPOSIT_PRICES).toString(),
    },
  }
}

/** What a client of version 2 may choose from, on one chain. */
export function requirementsV2(terms: Terms) {
  return [requirementV2(terms), requirementUpto(terms), requirementChannel(terms)].filter(
    (requirement) => requirement !== null,
  )
}
