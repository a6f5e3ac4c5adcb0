/**
 * Supported swap tokens and chains, with the addresses that their issuers publish and dated reference prices. Trades
 * use live prices; reference prices only feed the sandbox's aggregators and replace missing prices.
 */

import { type ChainToken, chains } from './chains.ts'

/** Supported chains. Ids are EIP-155 for EVM chains. */
export const swapChains = {
  ethereum: chains.ethereum,
  base: chains.base,
  arbitrum: chains.arbitrum,
  optimism: chains.optimism,
  polygon: chains.polygon,
  solana: { id: null, isTest: false },
  'base-sepolia': chains['base-sepolia'],
  'arbitrum-sepolia': chains['arbitrum-sepolia'],
} as const

export type SwapChain = keyof typeof swapChains

/** Decimals, and approximate value in millionths of a USD on 28 June 2024. */
const tokens = {
  USDC: { decimals: 6, usdMicros: 1_000_000n },
  USDT: { decimals: 6, usdMicros: 1_000_000n },
  EURC: { decimals: 6, usdMicros: 1_070_500n },
  PYUSD: { decimals: 6, usdMicros: 1_000_000n },
  DAI: { decimals: 18, usdMicros: 1_000_000n },
  ETH: { decimals: 18, usdMicros: 3_400_000_000n },
  WETH: { decimals: 18, usdMicros: 3_400_000_000n },
  WBTC: { decimals: 8, usdMicros: 60_500_000_000n },
  SOL: { decimals: 9, usdMicros: 143_000_000n },
  POL: { decimals: 18, usdMicros: 560_000n },
} as const

export type SwapSymbol = keyof typeof tokens

/** Dollar stablecoins, whose price is not queried. */
const dollars: ReadonlySet<string> = new Set(['USDC', 'USDT', 'PYUSD', 'DAI'])

const NATIVE = '0x0000000000000000000000000000000000000000'

/** Addresses of the tokens that the table of chains has. */
function mapAddresses({ tokens }: { readonly tokens: Readonly<Record<string, ChainToken>> }) {
  return Object.fromEntries(Object.entries(tokens).map(([symbol, { address }]) => [symbol, address]))
}

/** Token addresses. Null: the sandbox deploys the token, and only its own aggregators support it. */
const addresses: Readonly<Record<SwapChain, Partial<Record<SwapSymbol, string | null>>>> = {
  ethereum: {
    ...mapAddresses(chains.ethereum),
    USDT: '0xdAC17F958D2ee523a2206206994597C13D831ec7',
    EURC: '0x1aBaEA1f7C830bD89Acc67eC4af516284b1bC33c',
    PYUSD: '0x6c3ea9036406852006290770BEdFcAbA0e23A0e8',
    DAI: '0x6B175474E89094C44Da98b954EedeAC495271d0F',
    WETH: '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2',
    WBTC: '0x2260FAC5E5542a773Aa44fBCfeDf7C193bc2C599',
    ETH: NATIVE,
  },
  base: {
    ...mapAddresses(chains.base),
    USDT: '0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2',
    DAI: '0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb',
    WETH: '0x4200000000000000000000000000000000000006',
    ETH: NATIVE,
  },
  arbitrum: {
    ...mapAddresses(chains.arbitrum),
    USDT: '0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9',
    PYUSD: '0x46850aD61C2B7d64d08c9C754F45254596696984',
    DAI: '0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1',
    WETH: '0x82aF49447D8a07e3bd95BD0d56f35241523fBab1',
    WBTC: '0x2f2a2543B76A4166549F7aaB2e75Bef0aefC5B0f',
    ETH: NATIVE,
  },
  optimism: {
    ...mapAddresses(chains.optimism),
    USDT: '0x94b008aA00579c1307B0EF2c499aD98a8ce58e58',
    DAI: '0xDA10009cBd5D07dd0CeCc66161FC93D7c9000da1',
    WETH: '0x4200000000000000000000000000000000000006',
    WBTC: '0x68f180fcCe6836688e9084f035309E29Bf0A2095',
    ETH: NATIVE,
  },
  polygon: {
    ...mapAddresses(chains.polygon),
    USDT: '0xc2132D05D31c914a87C6611C10748AEb04B58e8F',
    DAI: '0x8f3Cf7ad23Cd3CaDbD9735AFf958023239c6A063',
    WETH: '0x7ceB23fD6bC0adD59E62ac25578270cFf1b9f619',
    WBTC: '0x1BFD67037B42Cf73acF2047067bd4F2C47D9BfD6',
    POL: NATIVE,
  },
  solana: {
    USDC: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    USDT: 'Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB',
    EURC: 'HzwqbKZw8HxMN6bF2yFZNrht3c2iXXzpKcFu7uBEDKtr',
    PYUSD: '2b1kV6DkPAnxd5ixfnxCpjxmKwqjjaYmCZfHsFu24GXo',
    SOL: '11111111111111111111111111111111',
  },
  'base-sepolia': {
    ...mapAddresses(chains['base-sepolia']),
    USDT: null,
    PYUSD: null,
    ETH: NATIVE,
    WETH: '0x4200000000000000000000000000000000000006',
  },
  'arbitrum-sepolia': {
    USDC: chains['arbitrum-sepolia'].tokens.USDC.address,
    USDT: null,
    EURC: null,
    PYUSD: null,
    ETH: NATIVE,
  },
}

/** @property usdMicros reference price. @property isDollar the token is a dollar stablecoin. */
export interface SwapToken {
  readonly symbol: SwapSymbol
  readonly chain: SwapChain
  readonly chainId: number | null
  readonly address: string | null
  readonly decimals: number
  readonly usdMicros: bigint
  readonly isDollar: boolean
  /** The token is pegged to a currency, so its reference price stays accurate. */
  readonly isPegged: boolean
}

export const swapChainNames = Object.keys(swapChains).filter(isSwapChain)

export function isSwapChain(text: string): text is SwapChain {
  return Object.hasOwn(swapChains, text)
}

export function symbolsOn(chain: SwapChain): readonly string[] {
  return Object.keys(addresses[chain])
}

/** Looks up a token, ignoring case; undefined if the chain does not have it. */
export function findSwapToken(chain: SwapChain, text: string): SwapToken | undefined {
  const symbol = text.toUpperCase()
  if (!isSymbol(symbol)) return undefined
  const address = addresses[chain][symbol]
  if (address === undefined) return undefined
  const chainId = swapChains[chain].id
  const isDollar = dollars.has(symbol)
  return {
    symbol,
    chain,
    chainId,
    address,
    ...tokens[symbol],
    isDollar,
    isPegged: isDollar || symbol === 'EURC',
  }
}

function isSymbol(text: string): text is SwapSymbol {
  return Object.hasOwn(tokens, text)
}

/** Value in millionths of a USD, rounded down. @param price millionths of a USD per token. */
export function worthInMicros(units: bigint, decimals: number, price: bigint): bigint {
  return (units * price) / 10n ** BigInt(decimals)
}
