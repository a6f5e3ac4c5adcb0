/**
 * The chain: custody of what the ledger books. One smart account (Safe) per account; the sponsor pays for operations.
 * An operation's id goes into the EntryPoint's two-dimensional nonce, so the chain executes it at most once, and
 * submitting it again after a crash never pays twice. Units are the token's smallest (1 USDC = 1_000_000n).
 * @see https://eips.ethereum.org/EIPS/eip-4337
 */
import { Failure } from '../../core/failures/failure.ts'
import type { ChainName } from '../../core/money/chains.ts'
import type { Stablecoin } from '../../core/money/money.ts'

/** An EVM address: 0x and 40 hex digits. */
export type Address = `0x${string}`

export type Hex = `0x${string}`

/** A module enabled on a Safe. */
export interface WalletModule {
  readonly name: string
  readonly address: Address
  readonly type: string
  readonly version: string
  readonly chain: string
  readonly status: 'active' | 'pending_deployment'
}

/**
 * On-chain owner of a smart account. `gateway`: the gateway's own key. A passkey's P-256 coordinates are 32 bytes
 * each.
 * @property first of a first owner: the gateway's key that the address is computed from; absent: the first of the deployment.
 */
export type WalletOwner =
  | { readonly kind: 'gateway'; readonly first?: Address }
  | { readonly kind: 'passkey'; readonly x: Hex; readonly y: Hex }
  | { readonly kind: 'eoa'; readonly address: Address }

/**
 * An account's smart account.
 * @property origin first owner, which determines the address.
 * @property owner current owner; if it differs, the gateway hands the account over before the next operation.
 */
export interface Wallet {
  readonly accountId: string
  /** The card programme's escrow for the account: a smart account beside the wallet, for which the gateway alone signs. */
  readonly isEscrow?: true
  readonly origin: WalletOwner
  readonly owner: WalletOwner
  /**
   * Amount held by cards when the gateway handed the wallet over, in millionths of a US dollar: the hand-over lets
   * {@link CARDS_AGENT} spend it once, in addition to the daily allowance. Absent: nothing.
   */
  readonly cardCover?: bigint
}

/** Agent id under which the card programme spends from allowances. No key of an account can have this id. */
export const CARDS_AGENT = 'cards'

/**
 * The route of a swap: the call that the swap desk makes with the tokens it was paid. It is a stranger's, and never runs with the
 * rights of a wallet.
 * @property minReceived units of `buy` that arrive at the wallet at least; with less, the whole operation reverts.
 * @property spender contract that takes the tokens from the desk; null: the call takes none.
 */
export interface SwapRoute {
  readonly buy: Stablecoin
  readonly minReceived: bigint
  readonly target: Address
  readonly spender: Address | null
  readonly data: Hex
  /** Present: the bridge desk burns the tokens instead, to be minted on another chain; `target` burns, and `data` is empty. */
  readonly burn?: BurnTerms | undefined
}

/**
 * Terms of a burn by CCTP v2. The receiver is the wallet's own address, and the fee at most what `minReceived` leaves.
 * @property to chain on which it is minted. @property domain its number. @property minFinality 1000 confirmed, 2000 finalized.
 */
export interface BurnTerms {
  readonly to: string
  readonly domain: number
  readonly minFinality: number
}

/**
 * Call of a smart account: a payment, a payment to the swap desk (`to`) that buys another token in the same operation, a daily
 * allowance of an agent in millionths of a US dollar per UTC day, or a change of its owner, from one key of the gateway to another.
 */
export type WalletCall =
  | { readonly kind: 'transfer'; readonly token: Stablecoin; readonly to: Address; readonly units: bigint }
  | {
      readonly kind: 'swap'
      readonly token: Stablecoin
      readonly to: Address
      readonly units: bigint
      readonly route: SwapRoute
    }
  | { readonly kind: 'allowance'; readonly agentId: string; readonly dailyMicros: bigint }
  | { readonly kind: 'owner'; readonly from: Address; readonly to: Address }

/** An operation of a smart account, as signed. */
export interface ChainOperation {
  readonly wallet: Wallet
  /** Becomes the nonce key: the same id is executed at most once. */
  readonly id: string
  readonly call: WalletCall
  /** Latest time of execution, in whole seconds. */
  readonly validUntil: Date
}

/**
 * Authorization of an operation, fixed once submitted: a different authorization for the same id makes a different
 * operation. `gateway`: the gateway's key, as the wallet's owner. `allowance`: the gateway's key, within the agent's
 * allowance, which the chain enforces. `passkey`: an assertion whose challenge is the SHA-256 of `message`, a JSON
 * text with the member `"operationHash":"0x…"`; the other members are base64url. `eoa`: the owner's EIP-712 signature
 * of the operation.
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

/** An operation with its authorization. */
export interface AuthorizedOperation extends ChainOperation {
  readonly authorization: Authorization
}

/** Data for the owner of a smart account to sign. @property hash EIP-712 hash of `typedData`. */
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

/** Result of a submission. `refused`: nothing was broadcast and nothing will be. */
export type Submission =
  | { readonly status: 'submitted'; readonly transactionHash: Hex }
  | { readonly status: 'refused'; readonly reason: string; readonly cause: RefusalCause }

/**
 * `authorization`: the chain rejects the authorization, or its amount. `transfer`: the token or another contract
 * rejects the call.
 */
export type RefusalCause = 'authorization' | 'transfer'

/**
 * Remaining on-chain allowance of an agent, in millionths of a US dollar.
 * @property isOwn whether it belongs to this agent alone.
 */
export interface ChainAllowance {
  readonly dailyMicros: bigint
  readonly spentMicros: bigint
  /** Amount that may be spent once, on any day, before the daily limit counts. */
  readonly onceMicros: bigint
  readonly isOwn: boolean
}

/** A token's `Transfer` log with its origin. Addresses are in lower case. */
export interface TransferLog {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  readonly units: bigint
  /** Index among the logs of its transaction; together with the transaction's hash it identifies the log. */
  readonly position: number
  /** ERC-4337 hash of the operation that emitted it; null outside of operations. */
  readonly operationHash: Hex | null
  /** EIP-3009 authorization whose use the same token logged directly before; null for other transfers. */
  readonly authorization: { readonly authorizer: Address; readonly nonce: Hex } | null
  /** True if the `upto` proxy of x402 logged its settlement directly behind it. */
  readonly isUpto: boolean
}

/** A mined transaction with its token transfers. @property transfers empty if it reverted. */
export interface MinedTransaction {
  readonly hash: Hex
  readonly blockNumber: bigint
  readonly succeeded: boolean
  readonly transfers: readonly TransferLog[]
}

/** A {@link MinedTransaction} with its calldata. @property sender with its checksum; absent on a simulated chain. */
export interface CalledTransaction extends MinedTransaction {
  readonly calldata: Hex
  readonly sender?: Address
  readonly sent: readonly SentMessage[]
  readonly delivered: readonly DeliveredMessage[]
}

/** A message of CCTP v2 that left a chain. @property operationHash operation that sent it; null: none did. */
export interface SentMessage {
  readonly message: Hex
  readonly operationHash: Hex | null
}

/**
 * A message of CCTP v2 that was delivered to a chain. What it minted was logged at positions above `after` and below `position`.
 * @property source domain it came from. @property sender contract that sent it there, as a word: anybody can send messages.
 */
export interface DeliveredMessage {
  readonly nonce: Hex
  readonly source: number
  readonly sender: Hex
  readonly body: Hex
  readonly after: number
  readonly position: number
}

/**
 * Execution under an operation's nonce, by any operation. `absent`: none, and no pending transaction is known.
 * @property succeeded false if the operation's call reverted: the nonce is used, nothing moved.
 */
export type OperationExecution =
  | { readonly status: 'absent' | 'pending' }
  | {
      readonly status: 'executed'
      readonly operationHash: Hex
      readonly succeeded: boolean
      readonly transaction: MinedTransaction
    }

export interface Block {
  readonly number: bigint
  readonly hash: Hex
}

/** A `Transfer` of one of the chain's stablecoins, as found by a search. Addresses are in lower case. */
export interface FoundTransfer extends Pick<TransferLog, 'token' | 'from' | 'to' | 'units'> {
  readonly transactionHash: Hex
}

/** Suffix of every mint by the gateway, which the requester books itself. ASCII `bursar:booked`. */
export const MINT_MARK: Hex = '0x6275727361723a626f6f6b6564'

/** Units to mint to an address. */
export interface Mint {
  readonly token: Stablecoin
  readonly to: Address
  readonly units: bigint
}

/** A contract call by function name, in viem's format. */
export interface ContractCall {
  readonly address: Address
  readonly abi: readonly unknown[]
  readonly functionName: string
  readonly args?: readonly unknown[] | undefined
  /** Bytes appended to the calldata; some x402 facilitators mark their transactions with them. */
  readonly dataSuffix?: Hex | undefined
}

const REFUSED_CALL = 'RefusedCall'

/** Error of a call that would revert, so nothing was broadcast. @param reason the contract's error message. */
export function refusedCall(reason: string, options?: ErrorOptions): Error {
  return Object.assign(new Error(reason, options), { name: REFUSED_CALL })
}

export function isRefusedCall(error: unknown): error is Error {
  return error instanceof Error && error.name === REFUSED_CALL
}

const UNKNOWN_BROADCAST = 'UnknownBroadcast'

/** Error of a call that may have been broadcast, whatever its cause is. */
export function unknownBroadcast(message: string, options?: ErrorOptions): Error {
  return Object.assign(new Error(message, options), { name: UNKNOWN_BROADCAST })
}

export function isUnknownBroadcast(error: unknown): error is Error {
  return error instanceof Error && error.name === UNKNOWN_BROADCAST
}

/** Chain access for x402 facilitators: reads, typed-data checks, and writes paid by the sponsor. */
export interface EvmSigner {
  readonly address: Address
  /**
   * Executes a call without a transaction; writes are only simulated.
   * @throws {@link refusedCall} when it would revert.
   */
  readContract(call: ContractCall): Promise<unknown>
  verifyTypedData(input: {
    address: Address
    domain: Record<string, unknown>
    types: Record<string, unknown>
    primaryType: string
    message: Record<string, unknown>
    signature: Hex
  }): Promise<boolean>
  /**
   * Broadcasts a call after a simulation.
   * @throws {@link refusedCall} when it would revert; {@link unknownBroadcast} when the node may have accepted it. After
   *   any other error it may have been broadcast too, unless the node rejected it.
   */
  writeContract(call: ContractCall): Promise<Hex>
  /**
   * Broadcasts a call after a simulation; data for {@link address} itself is a call of nothing.
   * @param transaction `beforeBroadcast` is awaited with the hash of each transaction that is about to be broadcast, which later ones with
   *   the same nonce may be, at a higher price. If it throws, that transaction is not broadcast.
   * @throws as {@link writeContract}.
   */
  sendTransaction(transaction: {
    to: Address
    data: Hex
    beforeBroadcast?: (hash: Hex) => Promise<void>
  }): Promise<Hex>
  waitForTransactionReceipt(input: { hash: Hex; timeout?: number }): Promise<{ status: string }>
  getCode(input: { address: Address }): Promise<Hex | undefined>
}

/** Identity of an EIP-3009 authorization. @see https://eips.ethereum.org/EIPS/eip-3009 */
export interface TokenAuthorization {
  readonly token: Address
  readonly authorizer: Address
  readonly nonce: Hex
}

/** State of an authorization. A used nonce does not identify the message that used it: read the transaction. */
export type AuthorizationState =
  | { readonly status: 'unused' | 'canceled' }
  | { readonly status: 'used'; readonly transactionHash: Hex }

/**
 * Identity of a transfer that its owner signed for the `upto` proxy of x402. Its owner signs one only, from an address that signs two
 * EIP-2612 permits at most: the first lets Permit2 take the money, the second takes that back.
 */
export interface TokenPermit {
  readonly token: Address
  readonly owner: Address
  readonly to: Address
  /** Unordered nonce of Permit2, 32 bytes. */
  readonly nonce: Hex
}

/**
 * State of such a transfer. `invalidated`: its owner used the nonce up at Permit2 itself. `used`: the proxy made it, of any amount, in one
 * of these transactions, the latest that moved money from the owner to the payee: one for an owner that pays once.
 */
export type PermitState =
  | { readonly status: 'unused' | 'canceled' | 'invalidated' }
  | { readonly status: 'used'; readonly transactionHashes: readonly [Hex, ...Hex[]] }

/** Whether a chain has the contracts of a scheme of x402 with code that is known here. */
export type ContractSupport = 'supported' | 'missing' | 'unknown_code'

/**
 * State of a payment channel in its contract. `balance`: deposits less what was returned, so that it covers `claimed`.
 * @property withdrawal what its payer withdraws alone, once the channel's delay has passed.
 */
export interface ChannelState {
  readonly balance: bigint
  readonly claimed: bigint
  readonly withdrawal: { readonly amount: bigint; readonly initiatedAt: Date } | undefined
}

/**
 * State of an escrowed payment in its contract. @property isCollected it was moved into escrow, which happens once. @property capturable
 * what is in escrow. @property refundable what was captured and not refunded.
 */
export interface EscrowState {
  readonly isCollected: boolean
  readonly capturable: bigint
  readonly refundable: bigint
}

/** An address of the gateway that holds no gas, as viem's `LocalAccount`. */
export interface GaslessAccount {
  readonly address: Address
  signTransaction(transaction: {
    readonly type: 'eip1559'
    readonly chainId: number
    readonly nonce: number
    readonly to: Address
    readonly data: Hex
    readonly gas: bigint
    readonly value: bigint
    readonly maxFeePerGas: bigint
    readonly maxPriorityFeePerGas: bigint
  }): Promise<Hex>
}

/** @property nonce of the address's transactions: a repeated call sends nothing twice. */
export interface GaslessCall {
  readonly to: Address
  readonly data: Hex
  readonly nonce: number
}

/** Token contracts by symbol. Every chain has USDC; others are absent where their issuer has none. */
export type TokenAddresses = { readonly USDC: Address } & Readonly<Partial<Record<Stablecoin, Address>>>

/** Address of a token. @throws Failure `invalid_request` for a token that the chain does not have. */
export function tokenAddress({ name, tokens }: Pick<Chain, 'name' | 'tokens'>, token: Stablecoin): Address {
  const address = tokens[token]
  if (address !== undefined) return address
  const message = `${token} does not exist on ${name}`
  throw new Failure('invalid_request', `token: ${message}`, { issues: [{ path: 'token', message }] })
}

/** A signed change of a Safe's owner. It can do nothing else, and whoever sends it only completes it. */
export interface SignedSwap {
  readonly id: string
  readonly from: Address
  readonly to: Address
  readonly signature: Hex
}

/** Id of the operation that changes a Safe's owner: its nonce, so that the chain executes it once. @param attempt after some were not executed. */
export function swapId({ from, to }: Pick<SignedSwap, 'from' | 'to'>, attempt?: string): string {
  const id = `swap-owner ${from.toLowerCase()} ${to.toLowerCase()}`
  return attempt === undefined ? id : `${id} ${attempt}`
}

/** What the database knows of the gateway's keys. Addresses are in lower case. */
export interface OwnerBook {
  /** Key that addresses are computed from where they state none. */
  readonly first: Address
  /** Key that all Safes are to have. */
  readonly target: Address
  /** Every key that has owned Safes, or is to. */
  readonly known: readonly Address[]
  /** Reads the known keys again: another gateway may have begun a replacement. */
  readKnown(): Promise<readonly Address[]>
  /** Finds the changes of a Safe's owner that were signed and kept. */
  findSwaps(chain: ChainName, safe: Address): Promise<readonly SignedSwap[]>
}

/**
 * State of a deployed Safe that the gateway may own. Addresses are in lower case.
 * @property isOurs a key that the gateway has or had is an owner. @property isPersons the wallet's present owner is one, who is not the
 *   gateway.
 * @property hasOtherModules it has a module that the gateway does not know: somebody else can act for it.
 */
export interface SafeState {
  readonly owners: readonly Address[]
  readonly isOurs: boolean
  readonly isPersons: boolean
  readonly hasOtherModules: boolean
}

/** The gateway's keys on a chain. Addresses are in lower case. */
export interface GatewayKeys {
  readonly current: Address
  readonly previous: Address | null
}

/** Reason of a Failure `provider_unavailable`: another gateway may have the key that the chain shows. */
export const KEY_MISSING = 'key_missing'

/** Latest time of execution of a change of the owner: it waits for a Safe's deployment, which may never come. */
export const SWAP_VALID_UNTIL = new Date('9999-12-31T00:00:00Z')

/** The chain port. Adapters: `anvil` (started by the gateway), `rpc` (an external node), `simulated` (in memory). */
export interface Chain {
  readonly name: ChainName
  readonly id: number
  /** URL at which clients can reach the node; null if there is none. */
  readonly rpcUrl: string | null
  /** True if the sponsor's gas has no real value. */
  readonly isGasFree: boolean
  readonly entryPoint: Address
  /** Blocks above a movement before it is booked, where blocks can be replaced. */
  readonly confirmations: bigint
  readonly tokens: TokenAddresses
  readonly signer: EvmSigner
  /** Our contract that executes the routes of swaps. */
  readonly swapDesk: Address
  /** Our contract that burns USDC which is minted on another chain. */
  readonly bridgeDesk: Address

  /** The gateway's keys; null where they are the sandbox's own, which are never replaced. */
  readonly gatewayKeys: GatewayKeys | null
  /** Key that the address of a new Safe is computed from; null: the first owner of the deployment. */
  readonly opensWith: Address | null
  /** Key that addresses are computed from where they state none; lower case. */
  readonly firstOwner: Address
  /** The gateway's own Safe, which spends the allowances of agents. */
  readonly delegate: Wallet
  /** Tells what the database knows of the gateway's keys. Until then the first owner is the owner of now. */
  adoptOwners(book: OwnerBook): void
  /** Reads who owns a Safe; null while it is not deployed. @param at `final`: in a block that can no longer change. */
  readSafe(wallet: Wallet, at: 'latest' | 'final'): Promise<SafeState | null>
  /**
   * Signs an operation with a key of the gateway, whoever owns the Safe now.
   * @throws Error for a key that this gateway does not have; Failure `provider_unavailable` when it cannot be used now.
   */
  signAs(key: Address, operation: ChainOperation): Promise<Hex>

  /** Computes the address of the account's Safe, deployed or not. */
  walletAddress(wallet: Pick<Wallet, 'accountId' | 'isEscrow' | 'origin'>): Promise<Address>
  /**
   * Reads the modules that the Safe reports; before its first operation, the planned ones as `pending_deployment`.
   */
  modules(wallet: Wallet): Promise<readonly WalletModule[]>
  /** Builds the data that an owner other than the gateway signs. Depends only on its arguments. */
  buildOperation(operation: ChainOperation): SignableOperation
  /** Reads a balance; 0 for a token that the chain does not have. */
  readBalance(token: Stablecoin, address: Address): Promise<bigint>
  /**
   * Broadcasts an operation, batched with concurrent ones. Simulated first; a rejection costs no gas.
   * @throws Failure `provider_unavailable` when the chain does not answer and this call broadcast nothing.
   * @throws any other error when the broadcast is uncertain: call {@link awaitExecution} or submit again.
   */
  submit(operation: AuthorizedOperation): Promise<Submission>
  /** Computes the ERC-4337 hash of an operation. Depends only on its arguments. */
  hashOperation(operation: AuthorizedOperation): Hex
  /**
   * Reads the execution under an operation's nonce; waits up to `waitMs` while it is pending. This is evidence, not
   * an outcome: `src/books/evidence` judges it.
   */
  awaitExecution(operation: AuthorizedOperation, waitMs: number): Promise<OperationExecution>
  /**
   * Reads the state of an authorization's nonce; tokens spend a nonce when it is used and when its author cancels it.
   */
  authorizationState(authorization: TokenAuthorization): Promise<AuthorizationState>
  /**
   * Checks whether the authorization can never be used: in a block that can no longer change, it is cancelled, or its nonce is
   * unused at a timestamp from `validBefore` on. Clock and state are those of one block.
   */
  isAuthorizationOver(authorization: TokenAuthorization, validBefore: Date): Promise<boolean>
  /** Tells whether `upto` payments can be made here. */
  uptoSupport(): Promise<ContractSupport>
  /** Reads the state of a transfer by the `upto` proxy. @throws when its nonce is used and no settlement is found. */
  permitState(permit: TokenPermit): Promise<PermitState>
  /**
   * Checks whether the proxy can never make the transfer: in a block that can no longer change, its nonce is unused, and its permission is
   * taken back, or the timestamp is `validBefore` or later.
   */
  isPermitOver(permit: TokenPermit, validBefore: Date): Promise<boolean>
  /** Tells whether payment channels (x402 `batch-settlement`) can be used here. */
  channelSupport(): Promise<ContractSupport>
  /** Reads the state of a channel. @param at `final`: in a block that can no longer change. */
  channelState(id: Hex, at: 'latest' | 'final'): Promise<ChannelState>
  /** Reads what a seller's channels have paid out to it in all, in a block that can no longer change. Smallest units. */
  channelPayouts(receiver: Address, token: Address): Promise<bigint>
  /** Tells whether escrowed payments (x402 `auth-capture`) can be made here. */
  escrowSupport(): Promise<ContractSupport>
  /** Reads the state of an escrowed payment. @param at `final`: in a block that can no longer change. */
  escrowState(hash: Hex, at: 'latest' | 'final'): Promise<EscrowState>
  /**
   * Sends a call by an address without gas, which the sponsor covers. A repeat whose nonce is used sends nothing.
   * @throws Error when the call would revert, reverted, or is not confirmed in time: repeat it then.
   */
  callAs(account: GaslessAccount, call: GaslessCall): Promise<void>
  /** Finds the transaction that delivered a message of CCTP v2; undefined: none has. @throws when its log is not found. */
  findDelivery(nonce: Hex): Promise<Hex | undefined>
  /** Reads a mined transaction; undefined while it is in no block. */
  transaction(hash: Hex): Promise<CalledTransaction | undefined>
  /**
   * Finds transfers of the chain's stablecoins in a range of blocks, inclusive.
   * @param to restricts the search to this recipient.
   * @throws Failure `provider_unavailable`; other errors when the node rejects the range as too wide.
   */
  findTransfers(search: {
    fromBlock: bigint
    toBlock: bigint
    to?: Address
  }): Promise<readonly FoundTransfer[]>
  /** Reads a block; undefined if there is none with that number. */
  block(number: bigint): Promise<Block | undefined>
  /** Checks whether a block that evidence was read from was replaced since the last call. */
  areBlocksReplaced(): Promise<boolean>
  /** Drops cached transactions and contracts after blocks were replaced. */
  forget(): Promise<void>
  /** Identity of this chain instance: two runs of a development node share id and addresses, but never this. */
  identity(): Promise<string>
  /** Value of one whole token in an allowance, in millionths of a US dollar; a payment's value is rounded up. */
  readonly allowancePrices: Readonly<Record<Stablecoin, bigint>>
  /** Reads an agent's allowance on a wallet the gateway does not own; null if the wallet has no allowances. */
  readAllowance(wallet: Wallet, agentId: string): Promise<ChainAllowance | null>
  /**
   * Sandbox: mints tokens to addresses in as few transactions as possible, each marked with {@link MINT_MARK}.
   * @throws on a chain whose tokens the gateway cannot mint.
   */
  mint(mints: readonly Mint[]): Promise<void>
  /** Sandbox: sends native coin to clients that pay their own gas. @param wei 1 ETH = 10^18. */
  fundGas(to: Address, wei: bigint): Promise<void>
  /**
   * Reads the latest block number.
   * @throws Failure `provider_unavailable` when the node does not answer, as every read does.
   */
  blockNumber(): Promise<bigint>
  /** Reads the timestamp of the latest block. @throws Failure as {@link blockNumber}. */
  latestBlockAt(): Promise<Date>
  /**
   * Registers a callback for a chain that came back empty after a loss. Calls made inside the callback pass; all
   * others wait until it completes. If it throws, the chain is restored again.
   */
  onReset(bringUp: () => Promise<void>): void
  close(): Promise<void>
}
