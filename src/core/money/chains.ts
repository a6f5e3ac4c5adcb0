/**
 * The chains: every fact that other files need about one, in one table. A name is a member of `CHAINS`, the `chain` of
 * requests and the place of money in the ledger. Amounts on different chains never mix.
 * @see https://developers.circle.com/stablecoins/usdc-contract-addresses
 * @see https://developers.circle.com/stablecoins/eurc-contract-addresses
 */
import { z } from 'zod'
import type { Stablecoin } from './money.ts'

/**
 * A token as its issuer publishes it. The name and version are those of its EIP-712 domain, which differ between chains
 * and from its symbol. Only tokens whose domain is known are listed; the gateway compares them with the contract.
 */
export interface ChainToken {
  readonly address: `0x${string}`
  readonly name: string
  readonly version: string
}

/** Networks of x402 version 1 that are chains here. @see https://github.com/coinbase/x402/blob/main/specs/x402-specification-v1.md */
export type V1Network = 'base' | 'base-sepolia' | 'polygon'

/** @property tokens Circle's; only these are held, booked and paid with on a public chain. */
export interface ChainFacts {
  /** EIP-155 id. */
  readonly id: number
  /** Network name in x402 version 1; null: that version does not know the chain. */
  readonly x402V1: V1Network | null
  /** True if its money has no value. */
  readonly isTest: boolean
  /** Symbol of the coin that pays for gas. */
  readonly gasSymbol: string
  readonly explorer: string
  /** Average time between blocks. */
  readonly blockMs: number
  /** Circle's number of the chain in CCTP. @see https://developers.circle.com/cctp/cctp-supported-blockchains */
  readonly cctpDomain: number
  /** Blocks above a movement before it is booked. */
  readonly confirmations: bigint
  readonly tokens: { readonly USDC: ChainToken } & Readonly<Partial<Record<Stablecoin, ChainToken>>>
}

/** USDC, with the domain that it has on every chain but Base Sepolia. */
const usdCoin = (address: ChainToken['address']) => ({ address, name: 'USD Coin', version: '2' }) as const

export const chains = {
  'base-sepolia': {
    id: 84532,
    x402V1: 'base-sepolia',
    isTest: true,
    gasSymbol: 'ETH',
    explorer: 'https://sepolia.basescan.org',
    blockMs: 2_000,
    cctpDomain: 6,
    confirmations: 2n,
    tokens: {
      USDC: { address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', name: 'USDC', version: '2' },
      EURC: { address: '0x808456652fdb597867f38412077A9182bf77359F', name: 'EURC', version: '2' },
    },
  },
  'arbitrum-sepolia': {
    id: 421614,
    x402V1: null,
    isTest: true,
    gasSymbol: 'ETH',
    explorer: 'https://sepolia.arbiscan.io',
    blockMs: 250,
    cctpDomain: 3,
    confirmations: 16n,
    tokens: { USDC: usdCoin('0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d') },
  },
  base: {
    id: 8453,
    x402V1: 'base',
    isTest: false,
    gasSymbol: 'ETH',
    explorer: 'https://basescan.org',
    blockMs: 2_000,
    cctpDomain: 6,
    confirmations: 5n,
    tokens: {
      USDC: usdCoin('0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'),
      EURC: { address: '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42', name: 'EURC', version: '2' },
    },
  },
  arbitrum: {
    id: 42161,
    x402V1: null,
    isTest: false,
    gasSymbol: 'ETH',
    explorer: 'https://arbiscan.io',
    blockMs: 250,
    cctpDomain: 3,
    confirmations: 40n,
    tokens: { USDC: usdCoin('0xaf88d065e77c8cC2239327C5EDb3A432268e5831') },
  },
  optimism: {
    id: 10,
    x402V1: null,
    isTest: false,
    gasSymbol: 'ETH',
    explorer: 'https://optimistic.etherscan.io',
    blockMs: 2_000,
    cctpDomain: 2,
    confirmations: 5n,
    tokens: { USDC: usdCoin('0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85') },
  },
  polygon: {
    id: 137,
    x402V1: 'polygon',
    isTest: false,
    gasSymbol: 'POL',
    explorer: 'https://polygonscan.com',
    blockMs: 2_000,
    cctpDomain: 7,
    confirmations: 32n,
    tokens: { USDC: usdCoin('0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359') },
  },
  ethereum: {
    id: 1,
    x402V1: null,
    isTest: false,
    gasSymbol: 'ETH',
    explorer: 'https://etherscan.io',
    blockMs: 12_000,
    cctpDomain: 0,
    confirmations: 12n,
    tokens: { USDC: usdCoin('0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48') },
  },
} as const satisfies Readonly<Record<string, ChainFacts>>

export type ChainName = keyof typeof chains

export const chainNames = Object.keys(chains).filter(isChainName)

export function isChainName(text: string): text is ChainName {
  return Object.hasOwn(chains, text)
}

/** A chain in requests. Names that a deployment does not have are refused where the chain is looked up. */
export const chainInput = z
  .string()
  .min(1)
  .max(40)
  .meta({ enum: [...chainNames] })

/** The facts of a chain, in the form that every chain shares. */
export function chainFacts(name: ChainName): ChainFacts {
  return chains[name]
}

/** Network of a chain in x402 version 2. @see https://chainagnostic.org/CAIPs/caip-2 */
export function toCaip2({ id }: Pick<ChainFacts, 'id'>): `eip155:${number}` {
  return `eip155:${id}`
}

/** Environment variable with the URL of a chain's node, such as `CHAIN_RPC_URL_BASE_SEPOLIA`. */
export function nameRpcVariable(name: ChainName): string {
  return `CHAIN_RPC_URL_${name.toUpperCase().replaceAll('-', '_')}`
}
