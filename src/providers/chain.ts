/**
 * The chain: custody of what the ledger books. One smart account (Safe) an account, operations paid by the sponsor.
 * An operation carries its own id into the EntryPoint's two-dimensional nonce, so the chain itself executes it at most once:
 * submitting again after a crash can never pay twice. Units are the token's smallest (1 USDC = 1_000_000n).
 * @see https://eips.ethereum.org/EIPS/eip-4337
 */
import type { Stablecoin } from '../money/money.ts'

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

/** Who signs for a smart account on chain. `gateway`: the gateway's own key. A passkey's P-256 coordinates are 32 bytes each. */
export type WalletOwner =
  | { readonly kind: 'gateway' }
  | { readonly kind: 'passkey'; readonly x: Hex; readonly y: Hex }
  | { readonly kind: 'eoa'; readonly address: Address }

/**
 * An account's smart account. @property origin its first owner, from which its address follows. @property owner who owns it
 * now: where that is somebody else, the gateway hands it over before the next operation.
 */
export interface Wallet {
  readonly accountId: string
  readonly origin: WalletOwner
  readonly owner: WalletOwner
  /**
   * What cards held of it when the gateway gave it away, in millionths of a US dollar: the hand-over lets
   * {@link CARDS_AGENT} spend that once, beside what it may spend a day. Absent: nothing.
   */
  readonly cardCover?: bigint
}

/** The name under which the card programme spends from allowances. No key of an account can have this id. */
export const CARDS_AGENT = 'cards'

/** What a smart account is to do: pay, or let an agent spend up to so many millionths of a US dollar a UTC day. */
export type WalletCall =
  | { readonly kind: 'transfer'; readonly token: Stablecoin; readonly to: Address; readonly units: bigint }
  | { readonly kind: 'allowance'; readonly agentId: string; readonly dailyMicros: bigint }

/** One operation of a smart account, as it is signed. */
export interface ChainOperation {
  readonly wallet: Wallet
  /** Becomes the nonce key: the same id is executed at most once. */
  readonly id: string
  readonly call: WalletCall
  /** The chain does not execute it after this; whole seconds count. */
  readonly validUntil: Date
}

/**
 * By whose word an operation is executed, fixed once it was submitted: another word for the same id is another operation.
 * `gateway`: the gateway's own, as the wallet's owner. `allowance`: the gateway's, from what the owner lets this agent spend,
 * which the chain itself limits. `passkey`: an assertion whose challenge is the SHA-256 of `message`, a JSON text with the
 * member `"operationHash":"0x…"`; the other parts are base64url. `eoa`: the owner's EIP-712 signature of the operation.
 */
export type Authorization =
  | { readonly kind: 'gateway' }
  | { readonly kind: 'allowance'; readonly agentId: string }
  | {
      readonly kind: 'passkey'
      readonly message: string
      readonly authenticatorData: string
      readonly clientDataJSON: string
      readonly signature: string
    }
  | { readonly kind: 'eoa'; readonly signature: Hex }

/** An operation with the word that allows it. */
export interface AuthorizedOperation extends ChainOperation {
  readonly authorization: Authorization
}

/** What the owner of a smart account signs. @property hash the EIP-712 hash of `typedData`. */
export interface SignableOperation {
  readonly hash: Hex
  readonly typedData: TypedData
}

/** EIP-712 data as JSON: integers are decimal strings. @see https://eips.ethereum.org/EIPS/eip-712 */
export interface TypedData {
  readonly domain: Readonly<Record<string, string | number>>
  readonly types: Readonly<Record<string, readonly { readonly name: string; readonly type: string }[]>>
  readonly primaryType: string
  readonly message: Readonly<Record<string, string | number>>
}

/** What became of a submission. `refused`: nothing was broadcast and nothing will be. */
export type Submission =
  | { readonly status: 'submitted'; readonly transactionHash: Hex }
  | { readonly status: 'refused'; readonly reason: string; readonly cause: RefusalCause }

/** `authorization`: the chain does not take the word, or not for so much. `transfer`: the token or anything else refuses. */
export type RefusalCause = 'authorization' | 'transfer'

/** What an agent may still spend on chain, in millionths of a US dollar. @property isOwn its owner gave it to this very agent. */
export interface ChainAllowance {
  readonly dailyMicros: bigint
  readonly spentMicros: bigint
  /** What may be spent once, on any day, before the daily limit is touched. */
  readonly onceMicros: bigint
  readonly isOwn: boolean
}

/** A token's `Transfer` log with what it was emitted by. Addresses are in lower case. */
export interface TransferLog {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  readonly units: bigint
  /** Index among the logs of its transaction: with the transaction's hash it names the log for good. */
  readonly position: number
  /** ERC-4337 hash of the operation whose execution emitted it; null outside of any. */
  readonly operationHash: Hex | null
  /** The EIP-3009 authorization whose use the same token logged directly before; null where it moved otherwise. */
  readonly authorization: { readonly authorizer: Address; readonly nonce: Hex } | null
}

/** A transaction in a block, as far as tokens are concerned. @property transfers empty where it reverted. */
export interface MinedTransaction {
  readonly hash: Hex
  readonly blockNumber: bigint
  readonly succeeded: boolean
  readonly transfers: readonly TransferLog[]
}

/** A {@link MinedTransaction} with the bytes that it was sent with. */
export interface CalledTransaction extends MinedTransaction {
  readonly calldata: Hex
}

/**
 * What the chain executed under an operation's nonce, whichever operation that was. `absent`: nothing, and it knows of no
 * pending transaction. @property succeeded false where the operation's own call reverted: the nonce is used, nothing moved.
 */
export type OperationExecution =
  | { readonly status: 'absent' | 'pending' }
  | {
      readonly status: 'executed'
      readonly operationHash: Hex
      readonly succeeded: boolean
      readonly transaction: MinedTransaction
    }

/** A block by its number. */
export interface Block {
  readonly number: bigint
  readonly hash: Hex
}

/** A `Transfer` of one of the chain's stablecoins, as a search finds it. Addresses are in lower case. */
export interface FoundTransfer extends Pick<TransferLog, 'token' | 'from' | 'to' | 'units'> {
  readonly transactionHash: Hex
}

/** The last bytes of every mint of the gateway's own: who asks for one books it. ASCII `bursar:booked`. */
export const MINT_MARK: Hex = '0x6275727361723a626f6f6b6564'

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

const REFUSED_CALL = 'RefusedCall'

/** What a signer throws where a call would revert: nothing was broadcast. @param reason the contract's own words. */
export function refusedCall(reason: string, options?: ErrorOptions): Error {
  return Object.assign(new Error(reason, options), { name: REFUSED_CALL })
}

/** Whether an error is a {@link refusedCall}. */
export function isRefusedCall(error: unknown): error is Error {
  return error instanceof Error && error.name === REFUSED_CALL
}

/** What an x402 facilitator needs of a chain: reads, typed-data checks, and writes paid by the sponsor. */
export interface EvmSigner {
  readonly address: Address
  /** What a call would answer; a write is only simulated. @throws {@link refusedCall} where it would revert. */
  readContract(call: ContractCall): Promise<unknown>
  verifyTypedData(input: {
    address: Address
    domain: Record<string, unknown>
    types: Record<string, unknown>
    primaryType: string
    message: Record<string, unknown>
    signature: Hex
  }): Promise<boolean>
  /** Simulated first. @throws {@link refusedCall} where it would revert; after any other error it may be on its way. */
  writeContract(call: ContractCall): Promise<Hex>
  sendTransaction(transaction: { to: Address; data: Hex }): Promise<Hex>
  waitForTransactionReceipt(input: { hash: Hex; timeout?: number }): Promise<{ status: string }>
  getCode(input: { address: Address }): Promise<Hex | undefined>
}

/** An EIP-3009 authorization by its name. @see https://eips.ethereum.org/EIPS/eip-3009 */
export interface TokenAuthorization {
  readonly token: Address
  readonly authorizer: Address
  readonly nonce: Hex
}

/** What the token says of one. A used nonce does not say which message used it: read the transaction. */
export type AuthorizationState =
  | { readonly status: 'unused' | 'canceled' }
  | { readonly status: 'used'; readonly transactionHash: Hex }

/** The chain port. Adapters: `anvil` (started by the gateway), `rpc` (another node), `simulated` (no binary). */
export interface Chain {
  /** The contract's name of the chain, such as `base-sepolia`. */
  readonly name: string
  readonly id: number
  /** Where a client may reach the node itself; null where there is none. */
  readonly rpcUrl: string | null
  /** Whether transactions cost the sponsor nothing of worth. */
  readonly isGasFree: boolean
  readonly entryPoint: Address
  readonly tokens: Readonly<Record<Stablecoin, Address>>
  readonly signer: EvmSigner

  /** The address of the account's Safe, deployed or not. */
  walletAddress(wallet: Pick<Wallet, 'accountId' | 'origin'>): Promise<Address>
  /** The modules that the Safe itself reports; those it will have, `pending_deployment`, before its first operation. */
  modules(wallet: Wallet): Promise<readonly WalletModule[]>
  /** What an owner other than the gateway signs for a transfer. Follows from its arguments alone. */
  operationOf(operation: ChainOperation): SignableOperation
  balanceOf(token: Stablecoin, address: Address): Promise<bigint>
  /**
   * Broadcasts an operation, together with others that come at the same time. Simulated first; a refusal costs no gas.
   * @throws Failure `provider_unavailable` where the chain does not answer and nothing was broadcast by this call.
   * @throws any other error where it is unknown whether it was broadcast: ask {@link executionOf} or submit again.
   */
  submit(operation: AuthorizedOperation): Promise<Submission>
  /** The ERC-4337 hash of what carries an operation out. Follows from its arguments alone. */
  operationHashOf(operation: AuthorizedOperation): Hex
  /**
   * What was executed under an operation's nonce; waits up to `waitMs` for what is pending. Evidence, not an outcome:
   * `src/evidence` judges it.
   */
  executionOf(operation: AuthorizedOperation, waitMs: number): Promise<OperationExecution>
  /** The state of an authorization's nonce: a token spends one when it is used, and when its author cancels it. */
  authorizationState(authorization: TokenAuthorization): Promise<AuthorizationState>
  /** A transaction in a block; undefined while it is in none. */
  transaction(hash: Hex): Promise<CalledTransaction | undefined>
  /**
   * The chain's stablecoins that moved in a range of blocks, both ends included. @param to only what went to this address.
   * @throws Failure `provider_unavailable`; other errors where the node refuses so wide a range.
   */
  findTransfers(search: {
    fromBlock: bigint
    toBlock: bigint
    to?: Address
  }): Promise<readonly FoundTransfer[]>
  /** A block; undefined where there is none of that number. */
  block(number: bigint): Promise<Block | undefined>
  /** Whether a block was replaced that evidence was read from since the last call. */
  areBlocksReplaced(): Promise<boolean>
  /** Tells that blocks were replaced: whatever is remembered of transactions and contracts is asked for anew. */
  forget(): Promise<void>
  /** Names this very chain: two runs of a development node, which share id and addresses, never share it. */
  identity(): Promise<string>
  /** What one whole token counts as in an allowance, in millionths of a US dollar; a payment's value is rounded up. */
  readonly allowancePrices: Readonly<Record<Stablecoin, bigint>>
  /** What an agent may spend of a wallet that the gateway does not own; null where the wallet lets no agent spend. */
  allowanceOf(wallet: Wallet, agentId: string): Promise<ChainAllowance | null>
  /**
   * Sandbox: puts tokens on addresses, in as few transactions as it can, each marked with {@link MINT_MARK}.
   * @throws on a chain whose tokens are not ours.
   */
  mint(mints: readonly Mint[]): Promise<void>
  /** Sandbox: native coin, for clients that pay their own gas. @param wei 1 ETH = 10^18. */
  fundGas(to: Address, wei: bigint): Promise<void>
  /** The latest block. @throws Failure `provider_unavailable` where the node does not answer, as every read does. */
  blockNumber(): Promise<bigint>
  /** When the latest block was closed. @throws Failure as {@link blockNumber}. */
  latestBlockAt(): Promise<Date>
  /**
   * Calls back whenever the chain came back empty after a loss, before anything else is sent to it: calls made inside the
   * callback pass, all others wait. Where it throws, the chain is brought back anew.
   */
  onReset(bringUp: () => Promise<void>): void
  close(): Promise<void>
}
