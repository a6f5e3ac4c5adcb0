/**
 * The smart account of an account: a Safe of one owner. Its address follows from the account's id and its first owner, so it
 * is the same before it is deployed and on every new chain. The gateway's own key owns it (the 4337 module is on), or a
 * passkey does (and the allowance module, too, by which agents spend).
 */
import {
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  getCreate2Address,
  keccak256,
  numberToHex,
  pad,
  stringToHex,
  zeroAddress,
} from 'viem'
import { type Stablecoin, stablecoins } from '../../../money/money.ts'
import {
  type Address,
  CARDS_AGENT,
  type ChainAllowance,
  type Hex,
  type Wallet,
  type WalletOwner,
} from '../../chain.ts'
import { allowanceAbi, safeAbi, walletSetupAbi } from '../contracts/abi.ts'
import { intentSignerCode } from '../contracts/account-contracts.artifact.ts'
import { type AccountContracts, type OwnContract, ownContract, type TokenAddresses } from '../rpc/networks.ts'

/** Where the precompile for P-256 stands (RIP-7212); what is tried first, before the verifier that is a contract. */
const P256_PRECOMPILE = 0x100n

/** What one whole token counts as in an allowance, in millionths of a US dollar. A euro is taken dear: the owner set a limit. */
export const allowancePrices = {
  USDC: 1_000_000n,
  USDT: 1_000_000n,
  PYUSD: 1_000_000n,
  EURC: 1_250_000n,
} as const

/**
 * What agents may spend a day of a wallet before its owner has said anything, in millionths of a US dollar: enough to try
 * things in a sandbox. Where tokens are of worth it is nothing.
 */
export const DEVELOPMENT_STARTER_MICROS = 1_000_000_000n

/** What cards may spend a day of a wallet that its owner holds, before that owner has said anything: as much, of their own. */
export const DEVELOPMENT_CARDS_MICROS = 1_000_000_000n

/** The account whose Safe spends for agents. No account of a person can have this id. */
const DELEGATE = 'bursar:delegate'

/** Whose keys and contracts wallets are made of. @property starterMicros what agents may spend a day before an owner said, and cards. */
export interface WalletMaker {
  readonly contracts: AccountContracts
  readonly tokens: TokenAddresses
  readonly proxyCode: Hex
  readonly gatewayOwner: Address
  readonly starterMicros: bigint
  readonly cardsMicros: bigint
}

/** A Safe, deployed or not. @property creation the data that makes the proxy factory create it. */
export interface SafeAccount {
  readonly address: Address
  readonly creation: Hex
}

/** Addresses and calls of wallets. Nothing here asks the chain. */
export interface Wallets {
  safeOf(wallet: Pick<Wallet, 'accountId' | 'origin'>): SafeAccount
  /** The Safe by which the gateway spends from others' allowances. */
  readonly delegate: Wallet
  /** What an agent may spend of a wallet once its owner has it, as its setup or its hand-over says. */
  firstAllowance(wallet: Pick<Wallet, 'cardCover'>, agentId: string): ChainAllowance
  /** The address that stands for an owner in a Safe, and the contract to be deployed there, if it is one. */
  signerOf(owner: WalletOwner): { readonly address: Address; readonly contract?: OwnContract }
  /** The call that a Safe of the gateway's makes of itself, to belong to another owner. */
  handOver(wallet: Pick<Wallet, 'owner' | 'cardCover'>): Hex
}

/** Computes wallets. */
export function createWallets(maker: WalletMaker): Wallets {
  const { contracts, tokens, proxyCode, gatewayOwner, starterMicros, cardsMicros } = maker
  const bytecodeHash = keccak256(concat([proxyCode, pad(contracts.safe, { size: 32 })]))
  const gatewaySetup = setupCall(contracts, gatewayOwner, {
    to: contracts.moduleSetup,
    data: encodeFunctionData({ abi: safeAbi, functionName: 'enableModules', args: [[contracts.module]] }),
  })
  const delegate: Wallet = {
    accountId: DELEGATE,
    origin: { kind: 'gateway' },
    owner: { kind: 'gateway' },
  }
  const allowances = (cardCover = 0n) => ({
    module: contracts.allowances,
    delegate: safeOf(delegate).address,
    daily: starterMicros,
    cards: agentHash(CARDS_AGENT),
    cardsDaily: cardsMicros,
    cardsOnce: cardCover,
    tokens: stablecoins.map((token) => tokens[token]),
    prices: stablecoins.map((token) => allowancePrices[token]),
  })

  function setupOf(origin: WalletOwner): Hex {
    if (origin.kind === 'gateway') return gatewaySetup
    const args = [[contracts.module, contracts.allowances], allowances()] as const
    return setupCall(contracts, signerOf(origin).address, {
      to: contracts.walletSetup,
      data: encodeFunctionData({ abi: walletSetupAbi, functionName: 'setUp', args }),
    })
  }

  function safeOf({ accountId, origin }: Pick<Wallet, 'accountId' | 'origin'>): SafeAccount {
    const setup = setupOf(origin)
    const saltNonce = BigInt(keccak256(stringToHex(accountId)))
    const salt = keccak256(concat([keccak256(setup), numberToHex(saltNonce, { size: 32 })]))
    return {
      address: getCreate2Address({ from: contracts.proxyFactory, salt, bytecodeHash }),
      get creation() {
        const args = [contracts.safe, setup, saltNonce] as const
        return encodeFunctionData({ abi: safeAbi, functionName: 'createProxyWithNonce', args })
      },
    }
  }

  function signerOf(owner: WalletOwner) {
    if (owner.kind === 'gateway') return { address: gatewayOwner }
    if (owner.kind === 'eoa') return { address: owner.address }
    const verifiers = (P256_PRECOMPILE << 160n) | BigInt(contracts.passkeyVerifier)
    const args = encodeAbiParameters(
      [{ type: 'address' }, { type: 'uint256' }, { type: 'uint256' }, { type: 'uint176' }],
      [contracts.passkeySigners, BigInt(owner.x), BigInt(owner.y), verifiers],
    )
    const contract = ownContract(concat([intentSignerCode, args]))
    return { address: contract.address, contract }
  }

  return {
    safeOf,
    delegate,
    signerOf,
    firstAllowance: ({ cardCover = 0n }, agentId) =>
      agentId === CARDS_AGENT
        ? { dailyMicros: cardsMicros, spentMicros: 0n, onceMicros: cardCover, isOwn: true }
        : { dailyMicros: starterMicros, spentMicros: 0n, onceMicros: 0n, isOwn: false },
    handOver: ({ owner, cardCover }) =>
      encodeFunctionData({
        abi: walletSetupAbi,
        functionName: 'handOver',
        args: [[contracts.allowances], allowances(cardCover), gatewayOwner, signerOf(owner).address],
      }),
  }
}

/** What a payment counts as in an allowance, in millionths of a US dollar, rounded up as the module does it. */
export function allowanceValue(token: Stablecoin, units: bigint): bigint {
  return (units * allowancePrices[token] + 999_999n) / 1_000_000n
}

/** The name of an agent in the allowance module. */
export function agentHash(agentId: string): Hex {
  return keccak256(stringToHex(agentId))
}

/** The call by which a Safe lets an agent spend. */
export function setAllowanceCall(delegate: Address, agentId: string, dailyMicros: bigint): Hex {
  const args = [delegate, agentHash(agentId), dailyMicros] as const
  return encodeFunctionData({ abi: allowanceAbi, functionName: 'setAllowance', args })
}

function setupCall(
  { module }: AccountContracts,
  owner: Address,
  { to, data }: { to: Address; data: Hex },
): Hex {
  const args = [[owner], 1n, to, data, module, zeroAddress, 0n, zeroAddress] as const
  return encodeFunctionData({ abi: safeAbi, functionName: 'setup', args })
}
