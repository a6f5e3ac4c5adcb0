/**
 * The chain: custody of what the ledger books. One smart account (Safe) an account, operations paid by the sponsor.
 * A transfer carries its own id into the EntryPoint's two-dimensional nonce, so the chain itself executes it at most once:
 * submitting again after a crash can never pay twice. Units are the token's smallest (1 USDC = 1_000_000n).
 * @see https://eips.ethereum.org/EIPS/eip-4337
 */
import type { Stablecoin } from '../money.ts'

/** An EVM address, 0x and 40 hex digits. */
export type Address = `0x${string}`

/** Hex bytes. */
export type Hex = `0x${string}`

/** A module that a Safe has switched on, as contract section 6 shows it. */
export interface WalletModule {
  readonly name: string
  readonly address: Address
  readonly type: string
  readonly version: string
  readonly chain: string
  readonly status: 'active' | 'pending_deployment'
}

/** One transfer out of an account's smart account. */
export interface ChainTransfer {
  /** The account whose smart account pays. */
  readonly accountId: string
  /** Becomes the nonce key: the same id is executed at most once. */
  readonly transferId: string
  readonly token: Stablecoin
  readonly to: Address
  readonly units: bigint
}

/** What became of a submission. `refused`: nothing was broadcast and nothing will be. */
export type Submission =
  | { readonly status: 'submitted'; readonly transactionHash: Hex }
  | { readonly status: 'refused'; readonly reason: string }

/** What the chain says of a transfer. `absent`: the chain has not executed it and knows of no pending transaction. */
export type TransferOutcome =
  | { readonly status: 'absent' | 'pending' }
  | { readonly status: 'confirmed' | 'failed'; readonly transactionHash: Hex }

/** Units to put on an address. */
export interface Mint {
  readonly token: Stablecoin
  readonly to: Address
  readonly units: bigint
}

/** A contract call by name, as viem spells it. */
export interface ContractCall {
  readonly address: Address
  readonly abi: readonly unknown[]
  readonly functionName: string
  readonly args?: readonly unknown[] | undefined
  /** Bytes after the encoded call, by which some x402 facilitators mark their transactions. */
  readonly dataSuffix?: Hex | undefined
}

/** What an x402 facilitator needs of a chain: reads, typed-data checks, and writes paid by the sponsor. */
export interface EvmSigner {
  readonly address: Address
  readContract(call: ContractCall): Promise<unknown>
  verifyTypedData(input: {
    address: Address
    domain: Record<string, unknown>
    types: Record<string, unknown>
    primaryType: string
    message: Record<string, unknown>
    signature: Hex
  }): Promise<boolean>
  writeContract(call: ContractCall): Promise<Hex>
  sendTransaction(transaction: { to: Address; data: Hex }): Promise<Hex>
  waitForTransactionReceipt(input: { hash: Hex; timeout?: number }): Promise<{ status: string }>
  getCode(input: { address: Address }): Promise<Hex | undefined>
}

/** The chain port. Adapters: `anvil` (started by the gateway), `rpc` (another node), `simulated` (no binary). */
export interface Chain {
  /** The contract's name of the chain, such as `base-sepolia`. */
  readonly name: string
  readonly id: number
  /** Where a client may reach the node itself; null where there is none. */
  readonly rpcUrl: string | null
  readonly entryPoint: Address
  readonly tokens: Readonly<Record<Stablecoin, Address>>
  readonly signer: EvmSigner

  /** The address of the account's Safe, deployed or not. */
  walletAddress(accountId: string): Promise<Address>
  /** The modules that the Safe itself reports; those it will have, `pending_deployment`, before its first operation. */
  modules(accountId: string): Promise<readonly WalletModule[]>
  balanceOf(token: Stablecoin, address: Address): Promise<bigint>
  /**
   * Broadcasts a transfer. Simulated first; a refusal costs no gas.
   * @throws Failure `provider_unavailable` where the chain does not answer and nothing was broadcast by this call.
   * @throws any other error where it is unknown whether it was broadcast: ask {@link outcomeOf} or submit again.
   */
  submitTransfer(transfer: ChainTransfer): Promise<Submission>
  /** What the chain knows of a transfer; waits up to `waitMs` for one that is pending. */
  outcomeOf(transfer: ChainTransfer, waitMs: number): Promise<TransferOutcome>
  /** Sandbox: puts tokens on addresses, in as few transactions as it can. @throws on a chain whose tokens are not ours. */
  mint(mints: readonly Mint[]): Promise<void>
  /** Sandbox: native coin, for clients that pay their own gas. @param wei 1 ETH = 10^18. */
  fundGas(to: Address, wei: bigint): Promise<void>
  /** The latest block. @throws Failure `provider_unavailable` where the node does not answer, as every read does. */
  blockNumber(): Promise<bigint>
  /**
   * Calls back whenever the chain came back empty after a loss, before anything else is sent to it: calls made inside the
   * callback pass, all others wait. Where it throws, the chain is brought back anew.
   */
  onReset(bringUp: () => Promise<void>): void
  close(): Promise<void>
}
