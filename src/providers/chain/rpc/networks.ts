/** Addresses of the chain's tokens and of the contracts behind accounts. */
import { concat, getCreate2Address, pad } from 'viem'
import { assetDecimals, type Stablecoin } from '../../../money/money.ts'
import type { Address, Hex } from '../../chain.ts'
import { agentAllowanceCode, walletSetupCode } from '../contracts/account-contracts.artifact.ts'

/** The chain that every adapter implements or simulates. */
export const baseSepolia = { id: 84532, name: 'base-sepolia' } as const

/** A token as the sandbox deploys it. `authorizations`: whether it supports EIP-2612 and EIP-3009. */
export interface SandboxToken {
  readonly address: Address
  readonly name: string
  readonly version: string
  readonly decimals: number
  readonly authorizations: boolean
}

/**
 * USDC and EURC have their Base Sepolia addresses and EIP-712 domains. USDT and PYUSD have no contract there; their
 * permanent addresses are the last 20 bytes of keccak256 of `bursar sandbox USDT` and `bursar sandbox PYUSD`.
 */
export const sandboxTokens = {
  USDC: {
    address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    name: 'USDC',
    version: '2',
    decimals: assetDecimals.USDC,
    authorizations: true,
  },
  USDT: {
    address: '0x2AD9130de195E411b8A6D4f7aE29A4d1EEdabc73',
    name: 'Tether USD',
    version: '1',
    decimals: assetDecimals.USDT,
    authorizations: false,
  },
  EURC: {
    address: '0x808456652fdb597867f38412077A9182bf77359F',
    name: 'EURC',
    version: '2',
    decimals: assetDecimals.EURC,
    authorizations: true,
  },
  PYUSD: {
    address: '0x935898f508eA25a9dAD4e35c5201031ff564b172',
    name: 'PayPal USD',
    version: '1',
    decimals: assetDecimals.PYUSD,
    authorizations: true,
  },
} as const satisfies Record<Stablecoin, SandboxToken>

/** Token addresses by symbol. */
export type TokenAddresses = Readonly<Record<Stablecoin, Address>>

export const sandboxTokenAddresses: TokenAddresses = {
  USDC: sandboxTokens.USDC.address,
  USDT: sandboxTokens.USDT.address,
  EURC: sandboxTokens.EURC.address,
  PYUSD: sandboxTokens.PYUSD.address,
}

/** Address at which clients expect Multicall3. @see https://www.multicall3.com */
export const multicallAddress: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'

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
}

/** Deployer that exists on nearly every chain. @see https://github.com/Arachnid/deterministic-deployment-proxy */
export const commonDeployer: Address = '0x4e59b44847b379578588920cA78FbF26c0B4956C'

/** Our own contracts; their code determines their address, which is the same on every chain. */
export const ownContracts = {
  allowances: ownContract(agentAllowanceCode),
  walletSetup: ownContract(walletSetupCode),
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
}

/** Module through which the EntryPoint operates a Safe. */
export const safe4337Module = { name: 'Safe4337Module', type: 'erc4337', version: '0.3.0' } as const

/** Module through which agents spend from a Safe; only the Safe's owner can change it. */
export const allowanceModule = { name: 'AgentAllowance', type: 'allowance', version: '1.0.0' } as const

/** Converts an address to lower case, for comparisons. */
export function lowerCaseAddress(address: Address): Address {
  return `0x${address.slice(2).toLowerCase()}`
}
