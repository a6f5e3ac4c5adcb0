/** Addresses of the chain's tokens and of the contracts behind accounts. */
import { concat, getCreate2Address, pad } from 'viem'
import {
  type ChainFacts,
  type ChainName,
  type ChainToken,
  chainFacts,
  chains,
} from '../../core/money/chains.ts'
import { assetDecimals, type Stablecoin, stablecoins } from '../../core/money/money.ts'
import type { Address, Hex, TokenAddresses } from '../../providers/chain/port.ts'
import { channelsAddress, depositCollectorAddress } from '../../providers/payment-channels.ts'
import { escrowAddress, escrowCollectorAddress } from '../../providers/payment-escrow.ts'
import {
  agentAllowanceCode,
  agentAllowanceCodeHash,
  bridgeDeskCode,
  swapDeskCode,
  walletSetupCode,
  walletSetupCodeHash,
} from '../contracts/account-contracts.artifact.ts'

/** A token as the sandbox deploys it. `authorizations`: whether it supports EIP-2612 and EIP-3009. */
export interface SandboxToken extends ChainToken {
  readonly decimals: number
  readonly authorizations: boolean
}

/**
 * Stand-ins for tokens that have no contract of their issuer on a test chain. Their permanent addresses are the last 20
 * bytes of keccak256 of `bursar sandbox USDT`, `… PYUSD` and `… EURC`.
 */
const standIns = {
  USDT: {
    address: '0x2AD9130de195E411b8A6D4f7aE29A4d1EEdabc73',
    name: 'Tether USD',
    version: '1',
    decimals: assetDecimals.USDT,
    authorizations: false,
  },
  PYUSD: {
    address: '0x935898f508eA25a9dAD4e35c5201031ff564b172',
    name: 'PayPal USD',
    version: '1',
    decimals: assetDecimals.PYUSD,
    authorizations: true,
  },
  EURC: {
    address: '0x24C365cf8a067196DA999F5Bf8614D5221FaCcBD',
    name: 'EURC',
    version: '2',
    decimals: assetDecimals.EURC,
    authorizations: true,
  },
} as const satisfies Partial<Record<Stablecoin, SandboxToken>>

const circle = chains['base-sepolia'].tokens

/** Tokens of the sandbox's chain: USDC and EURC with their public addresses and EIP-712 domains, and stand-ins. */
export const sandboxTokens = {
  ...standIns,
  USDC: { ...circle.USDC, decimals: assetDecimals.USDC, authorizations: true },
  EURC: { ...circle.EURC, decimals: assetDecimals.EURC, authorizations: true },
} as const satisfies Record<Stablecoin, SandboxToken>

/** Tokens by symbol. Every chain has USDC. */
export type SandboxTokens = { readonly USDC: SandboxToken } & Readonly<
  Partial<Record<Stablecoin, SandboxToken>>
>

/** Tokens that a development node of a test chain gets. */
export function sandboxTokensOn(name: ChainName): Readonly<Record<Stablecoin, SandboxToken>> {
  return { ...standIns, ...listIssuedTokens(name) }
}

/** Tokens that a chain's issuers have there, in the form that a development node can deploy. */
export function listIssuedTokens(name: ChainName): SandboxTokens {
  const { USDC, EURC } = chainFacts(name).tokens
  const form = { decimals: 6, authorizations: true }
  return { USDC: { ...USDC, ...form }, ...(EURC === undefined ? {} : { EURC: { ...EURC, ...form } }) }
}

/** Addresses of tokens. */
export function mapAddresses(tokens: ChainFacts['tokens']): TokenAddresses {
  const others = stablecoins.flatMap((symbol) => {
    const token = tokens[symbol]
    return token === undefined ? [] : [[symbol, token.address] as const]
  })
  return { ...Object.fromEntries(others), USDC: tokens.USDC.address }
}

/** @throws Error for a token that the chain does not have, which callers have ruled out. */
export function addressIn(tokens: TokenAddresses, token: Stablecoin): Address {
  const address = tokens[token]
  if (address === undefined) throw new Error(`The chain has no ${token}.`)
  return address
}

/**
 * Tokens with a price in the allowances of every wallet with an own signer. They are part of the wallet's setup, so
 * they determine its address: the same list on every chain makes the same address, and a change of the list would
 * move every wallet. Tokens of later chains are added by an operation of the owner, never here.
 */
export const walletTokens: readonly (readonly [symbol: Stablecoin, address: Address])[] = [
  ['USDC', circle.USDC.address],
  ['EURC', circle.EURC.address],
  ['USDT', standIns.USDT.address],
  ['PYUSD', standIns.PYUSD.address],
  ['EURC', standIns.EURC.address],
  ['USDC', chains['arbitrum-sepolia'].tokens.USDC.address],
  ['USDC', chains.base.tokens.USDC.address],
  ['EURC', chains.base.tokens.EURC.address],
  ['USDC', chains.arbitrum.tokens.USDC.address],
  ['USDC', chains.optimism.tokens.USDC.address],
  ['USDC', chains.polygon.tokens.USDC.address],
  ['USDC', chains.ethereum.tokens.USDC.address],
]

/** Address at which clients expect Multicall3. @see https://www.multicall3.com */
export const multicallAddress: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'

/** Permit2 on every chain. @see https://github.com/Uniswap/permit2 */
export const permit2Address: Address = '0x000000000022D473030F116dDEE9F6B43aC78BA3'

/** Proxy of x402 that settles `upto` payments, on every chain. @see https://github.com/coinbase/x402 */
export const uptoProxyAddress: Address = '0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002'

/** Contracts that a scheme of x402 needs beside the token. */
export const schemeContracts = {
  upto: [permit2Address, uptoProxyAddress],
  'batch-settlement': [channelsAddress, depositCollectorAddress],
  'auth-capture': [escrowAddress, escrowCollectorAddress],
} as const satisfies Record<string, readonly [Address, Address]>

/** Contracts behind every smart account. */
export interface AccountContracts {
  readonly entryPoint: Address
  readonly safe: Address
  readonly proxyFactory: Address
  readonly module: Address
  readonly moduleSetup: Address
  readonly passkeySigners: Address
  readonly passkeyVerifier: Address
  readonly allowances: Address
  readonly walletSetup: Address
  readonly swapDesk: Address
  readonly bridgeDesk: Address
}

/** Deployer that exists on nearly every chain. @see https://github.com/Arachnid/deterministic-deployment-proxy */
export const commonDeployer: Address = '0x4e59b44847b379578588920cA78FbF26c0B4956C'

/** Our own contracts; their code determines their address, which is the same on every chain. */
export const ownContracts = {
  allowances: ownContract(agentAllowanceCode),
  walletSetup: ownContract(walletSetupCode),
  swapDesk: ownContract(swapDeskCode),
  bridgeDesk: ownContract(bridgeDeskCode),
} as const

/** A contract created by the common deployer. @property data calldata for the deployer. */
export interface OwnContract {
  readonly address: Address
  readonly data: Hex
}

/** Computes the address at which the common deployer puts creation code with its constructor arguments. */
export function ownContract(bytecode: Hex): OwnContract {
  const salt = pad('0x', { size: 32 })
  return {
    address: getCreate2Address({ from: commonDeployer, salt, bytecode }),
    data: concat([salt, bytecode]),
  }
}

/** Addresses of these contracts on public chains. @see https://github.com/safe-global/safe-modules-deployments */
export const canonicalContracts: AccountContracts = {
  entryPoint: '0x0000000071727De22E5E9d8BAf0edAc6f37da032',
  safe: '0x29fcB43b46531BcA003ddC8FCB67FFE91900C762',
  proxyFactory: '0x4e1DCf7AD4e460CfD30791CCC4F9c8a4f820ec67',
  module: '0x75cf11467937ce3F2f357CE24ffc3DBF8fD5c226',
  moduleSetup: '0x2dd68b007B46fBe91B9A7c3EDa5A7a1063cB5b47',
  passkeySigners: '0xF7488fFbe67327ac9f37D5F722d83Fc900852Fbf',
  passkeyVerifier: '0x445a0683e494ea0c5AF3E83c5159fBE47Cf9e765',
  allowances: ownContracts.allowances.address,
  walletSetup: ownContracts.walletSetup.address,
  swapDesk: ownContracts.swapDesk.address,
  bridgeDesk: ownContracts.bridgeDesk.address,
}

/**
 * keccak256 of the code at the addresses above, where it is known. The installed EntryPoint, Safe and proxy factory
 * deploy to the public addresses, so that their code is the public one; our own code is in the artifacts.
 */
export const codeHashes: Readonly<Partial<Record<keyof AccountContracts, Hex>>> = {
  entryPoint: '0x8db5ff695839d655407cc8490bb7a5d82337a86a6b39c3f0258aa6c3b582fc58',
  safe: '0xb1f926978a0f44a2c0ec8fe822418ae969bd8c3f18d61e5103100339894f81ff',
  proxyFactory: '0x50c3cdc4074750a7a974204a716c999edd37482f907608d960b2b025ee0b3317',
  allowances: agentAllowanceCodeHash,
  walletSetup: walletSetupCodeHash,
}

/** Module through which the EntryPoint operates a Safe. */
export const safe4337Module = { name: 'Safe4337Module', type: 'erc4337', version: '0.3.0' } as const

/** Module through which agents spend from a Safe; only the Safe's owner can change it. */
export const allowanceModule = { name: 'AgentAllowance', type: 'allowance', version: '1.0.0' } as const

/** Converts an address to lower case, for comparisons. */
export function lowerCaseAddress(address: Address): Address {
  return `0x${address.slice(2).toLowerCase()}`
}
