/**
 * The smart account of an account: a Safe with one owner. Its address depends on the account's id and its first
 * owner, so it is the same before deployment and on every new chain. The owner is the gateway's key (with the 4337
 * module), or a passkey or EVM key (also with the allowance module, through which agents spend).
 */
import { LRUCache } from 'lru-cache'
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
import { type Stablecoin, stablecoins } from '../../core/money/money.ts'
import {
  type Address,
  CARDS_AGENT,
  type ChainAllowance,
  type Hex,
  type TokenAddresses,
  type Wallet,
  type WalletOwner,
} from '../../providers/chain/port.ts'
import { allowanceAbi, safeAbi, walletSetupAbi } from '../contracts/abi.ts'
import { intentSignerCode } from '../contracts/account-contracts.artifact.ts'
import { type AccountContracts, type OwnContract, ownContract, walletTokens } from '../rpc/networks.ts'

/** Address of the P-256 precompile (RIP-7212), tried before the verifier contract. */
const P256_PRECOMPILE = 0x100n

/**
 * Value of one whole token in an allowance, in millionths of a US dollar. The euro is priced high, because the owner
 * set a limit.
 */
export const allowancePrices = {
  USDC: 1_000_000n,
  USDT: 1_000_000n,
  PYUSD: 1_000_000n,
  EURC: 1_250_000n,
} as const

/**
 * Default daily allowance of agents on a development chain, in millionths of a US dollar. On chains with real value
 * the default is zero.
 */
export const DEVELOPMENT_STARTER_MICROS = 1_000_000_000n

/** Default daily allowance of cards on a development chain, separate from that of agents. */
export const DEVELOPMENT_CARDS_MICROS = 1_000_000_000n

/** Sentinel before the first entry of a Safe's list of owners. */
const OWNERS_START: Address = '0x0000000000000000000000000000000000000001'

/** Number of cached accounts: each operation needs its account's address several times, and hashing takes most of it. */
const MAX_CACHED = 10_000

/** Account whose Safe spends for agents. No person's account can have this id. */
const DELEGATE = 'bursar:delegate'

/**
 * Keys and contracts that wallets are built from.
 * @property firstOwner key that addresses are computed from where they state none.
 * @property starterMicros default daily allowances of agents and cards.
 */
export interface WalletMaker {
  readonly contracts: AccountContracts
  readonly tokens: TokenAddresses
  readonly proxyCode: Hex
  readonly firstOwner: () => Address
  readonly starterMicros: bigint
  readonly cardsMicros: bigint
}

/** A Safe, deployed or not. @property creation calldata with which the proxy factory creates it. */
export interface SafeAccount {
  readonly address: Address
  readonly creation: Hex
}

/** Computes addresses and calls of wallets, without reading the chain. */
export interface Wallets {
  findSafe(wallet: Pick<Wallet, 'accountId' | 'isEscrow' | 'origin'>): SafeAccount
  /** The gateway's Safe, which spends from the allowances of others. */
  readonly delegate: Wallet
  /** Key of the gateway that owns a Safe when it is deployed; undefined where its person's key does. */
  findFirstOwner(wallet: Pick<Wallet, 'origin'>): Address | undefined
  /** Allowance of an agent right after the wallet's setup or hand-over. */
  firstAllowance(wallet: Pick<Wallet, 'cardCover'>, agentId: string): ChainAllowance
  /** Address of an owner in a Safe, and the contract to deploy there, if any. Of the gateway: its first one. */
  findSigner(owner: WalletOwner): { readonly address: Address; readonly contract?: OwnContract }
  /** Call by which a gateway-owned Safe hands itself over to another owner. @param from the key that owns it now. */
  handOver(wallet: Pick<Wallet, 'owner' | 'cardCover'>, from: Address): Hex
}

export function createWallets(maker: WalletMaker): Wallets {
  const { contracts, tokens, proxyCode, firstOwner, starterMicros, cardsMicros } = maker
  const bytecodeHash = keccak256(concat([proxyCode, pad(contracts.safe, { size: 32 })]))
  const safes = new LRUCache<string, SafeAccount>({ max: MAX_CACHED })
  const gatewaySetups = new Map<Address, Hex>()
  const own = stablecoins.flatMap((token) => {
    const address = tokens[token]
    return address === undefined ? [] : [[token, address] as const]
  })
  const delegate: Wallet = {
    accountId: DELEGATE,
    origin: { kind: 'gateway' },
    owner: { kind: 'gateway' },
  }
  const allowances = (priced: typeof walletTokens, cardCover = 0n) => ({
    module: contracts.allowances,
    delegate: findSafe(delegate).address,
    daily: starterMicros,
    cards: agentHash(CARDS_AGENT),
    cardsDaily: cardsMicros,
    cardsOnce: cardCover,
    tokens: priced.map(([, address]) => address),
    prices: priced.map(([symbol]) => allowancePrices[symbol]),
  })

  function buildGatewaySetup(owner: Address): Hex {
    const known = gatewaySetups.get(owner)
    if (known !== undefined) return known
    const args = [[contracts.module]] as const
    const data = encodeFunctionData({ abi: safeAbi, functionName: 'enableModules', args })
    const setup = setupCall(contracts, owner, { to: contracts.moduleSetup, data })
    gatewaySetups.set(owner, setup)
    return setup
  }

  function buildSetup(origin: WalletOwner): Hex {
    if (origin.kind === 'gateway') return buildGatewaySetup(origin.first ?? firstOwner())
    const args = [[contracts.module, contracts.allowances], allowances(walletTokens)] as const
    return setupCall(contracts, findSigner(origin).address, {
      to: contracts.walletSetup,
      data: encodeFunctionData({ abi: walletSetupAbi, functionName: 'setUp', args }),
    })
  }

  function findSafe(wallet: Pick<Wallet, 'accountId' | 'isEscrow' | 'origin'>): SafeAccount {
    const { origin } = wallet
    const salted = buildSalt(wallet)
    const name = JSON.stringify([salted, origin, firstOwner()])
    const known = safes.get(name)
    if (known !== undefined) return known
    const saltNonce = BigInt(keccak256(stringToHex(salted)))
    const salt = keccak256(concat([keccak256(buildSetup(origin)), numberToHex(saltNonce, { size: 32 })]))
    const safe = {
      address: getCreate2Address({ from: contracts.proxyFactory, salt, bytecodeHash }),
      get creation() {
        const args = [contracts.safe, buildSetup(origin), saltNonce] as const
        return encodeFunctionData({ abi: safeAbi, functionName: 'createProxyWithNonce', args })
      },
    }
    safes.set(name, safe)
    return safe
  }

  function findSigner(owner: WalletOwner) {
    if (owner.kind === 'gateway') return { address: owner.first ?? firstOwner() }
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
    findSafe,
    delegate,
    findSigner,
    firstAllowance: ({ cardCover = 0n }, agentId) =>
      agentId === CARDS_AGENT
        ? { dailyMicros: cardsMicros, spentMicros: 0n, onceMicros: cardCover, isOwn: true }
        : { dailyMicros: starterMicros, spentMicros: 0n, onceMicros: 0n, isOwn: false },
    findFirstOwner: ({ origin }) => (origin.kind === 'gateway' ? (origin.first ?? firstOwner()) : undefined),
    handOver: ({ owner, cardCover }, from) =>
      encodeFunctionData({
        abi: walletSetupAbi,
        functionName: 'handOver',
        args: [[contracts.allowances], allowances(own, cardCover), from, findSigner(owner).address],
      }),
  }
}

/** Name of a smart account, which determines its address. The ids of accounts have no space. */
export function buildSalt({ accountId, isEscrow }: Pick<Wallet, 'accountId' | 'isEscrow'>): string {
  return isEscrow ? `${accountId} escrow` : accountId
}

/** Value of a payment in an allowance, in millionths of a US dollar, rounded up like the module. */
export function allowanceValue(token: Stablecoin, units: bigint): bigint {
  return (units * allowancePrices[token] + 999_999n) / 1_000_000n
}

/** Id of an agent in the allowance module. */
export function agentHash(agentId: string): Hex {
  return keccak256(stringToHex(agentId))
}

/** Builds the call by which a Safe sets an agent's allowance. */
export function setAllowanceCall(delegate: Address, agentId: string, dailyMicros: bigint): Hex {
  const args = [delegate, agentHash(agentId), dailyMicros] as const
  return encodeFunctionData({ abi: allowanceAbi, functionName: 'setAllowance', args })
}

/** Builds the call by which a Safe with one owner replaces it. */
export function swapOwnerCall(from: Address, to: Address): Hex {
  return encodeFunctionData({ abi: safeAbi, functionName: 'swapOwner', args: [OWNERS_START, from, to] })
}

function setupCall(
  { module }: AccountContracts,
  owner: Address,
  { to, data }: { to: Address; data: Hex },
): Hex {
  const args = [[owner], 1n, to, data, module, zeroAddress, 0n, zeroAddress] as const
  return encodeFunctionData({ abi: safeAbi, functionName: 'setup', args })
}
