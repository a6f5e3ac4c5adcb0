/** Books of the simulated chain: balances, and used operations, authorizations and permits. */
import { createHash } from 'node:crypto'
import { randomToken } from '../../core/base/ids.ts'
import type { Stablecoin } from '../../core/money/money.ts'
import type {
  Address,
  CalledTransaction,
  DeliveredMessage,
  Hex,
  TransferLog,
} from '../../providers/chain/port.ts'
import { tokenRefusals } from '../relay/refusal.ts'
import { lowerCaseAddress } from '../rpc/networks.ts'
import type { SimulatedNetwork } from './simulated-network.ts'

/**
 * The books. Every change is one synchronous step, so that no other change can come between a check and its effect.
 */
export interface SimulatedState {
  readonly network: SimulatedNetwork
  /** Different for each run. */
  readonly identity: string
  blockNumber(): bigint
  readBalance(token: Stablecoin, address: Address): bigint
  readAllowance(token: Stablecoin, owner: Address, spender: Address): bigint
  /** Next permit nonce of the owner: the number of its permits so far. */
  countPermits(token: Stablecoin, owner: Address): bigint
  isUsed(mark: string): boolean
  /** Lists the rest of used marks after a prefix. */
  usedMarks(prefix: string): readonly string[]
  /** Finds the transaction that used a mark. */
  findTransaction(mark: string): CalledTransaction | undefined
  transaction(hash: Hex): CalledTransaction | undefined
  /** Lists transactions by block, inclusive; each block has one. */
  transactionsBetween(fromBlock: bigint, toBlock: bigint): readonly CalledTransaction[]
  mint(token: Stablecoin, to: Address, units: bigint): void
  /** Burns units that are there. */
  burn(token: Stablecoin, from: Address, units: bigint): void
  /** Sends a message of CCTP v2. */
  send(message: Hex): void
  /** Delivers a message of CCTP v2, and uses up its {@link messageMark}. @param mint mints what it brings. */
  deliver(message: Omit<DeliveredMessage, 'after' | 'position'>, mint: () => void): void
  /** Returns the reason why a transfer cannot be made, or undefined. */
  findRefusal(token: Stablecoin, from: Address, units: bigint): string | undefined
  /** Moves units and uses up the mark. @throws Error when the balance is insufficient. */
  move(token: Stablecoin, move: SimulatedMovement): void
  allow(token: Stablecoin, owner: Address, spender: Address, units: bigint): void
  countPermit(token: Stablecoin, owner: Address): void
  use(mark: string): void
  /** A payment channel, to be changed in place; an unknown one is empty. */
  channel(id: Hex): SimulatedChannel
  /** What a seller has claimed from its channels in a token, and been paid. */
  receiver(receiver: Address, token: Address): { claimed: bigint; settled: bigint }
  /** An escrowed payment, to be changed in place; an unknown one is empty. */
  escrow(hash: Hex): SimulatedEscrow
  /** Mines a block with the changes so far as one transaction. @returns its hash. */
  mine(transaction?: { hash?: Hex; calldata?: Hex; operationHash?: Hex }): Hex
}

/**
 * A movement of units.
 * @property mark mark that is used up.
 * @property authorization EIP-3009 nonce of the movement.
 */
export interface SimulatedMovement {
  readonly from: Address
  readonly to: Address
  readonly units: bigint
  readonly mark?: string | undefined
  readonly authorization?: TransferLog['authorization'] | undefined
  /** True for a movement by the `upto` proxy. */
  readonly isUpto?: boolean
}

/** @property refunds count of the seller's refunds. @property withdrawal by the payer alone; `initiatedAt` in Unix seconds. */
export interface SimulatedChannel {
  balance: bigint
  claimed: bigint
  refunds: bigint
  withdrawal: { readonly amount: bigint; readonly initiatedAt: number } | undefined
}

export interface SimulatedEscrow {
  isCollected: boolean
  capturable: bigint
  refundable: bigint
}

const ZERO: Address = '0x0000000000000000000000000000000000000000'

/** @param identity random by default; with a given one, equal changes have equal hashes. */
export function createSimulatedState(network: SimulatedNetwork, identity = randomToken(16)): SimulatedState {
  const balances = perToken(() => new Map<Address, bigint>())
  const allowances = perToken(() => new Map<string, bigint>())
  const permits = perToken(() => new Map<Address, bigint>())
  const channels = new Map<Hex, SimulatedChannel>()
  const escrows = new Map<Hex, SimulatedEscrow>()
  const receivers = new Map<string, { claimed: bigint; settled: bigint }>()
  const used = new Map<string, CalledTransaction | undefined>()
  const byHash = new Map<Hex, CalledTransaction>()
  const mined: CalledTransaction[] = []
  let moved: TransferLog[] = []
  let sent: Hex[] = []
  let delivered: DeliveredMessage[] = []
  let marks: string[] = []

  const readBalance = (token: Stablecoin, address: Address) =>
    balances[token].get(lowerCaseAddress(address)) ?? 0n
  const setBalance = (token: Stablecoin, address: Address, units: bigint) => {
    balances[token].set(lowerCaseAddress(address), units)
  }
  const log = (
    token: Stablecoin,
    { from, to, units, authorization = null, isUpto = false }: SimulatedMovement,
  ) => {
    const position = moved.length
    const parties = { from: lowerCaseAddress(from), to: lowerCaseAddress(to) }
    const address = lowerCaseAddress(network.tokens[token].address)
    moved.push({ token: address, ...parties, units, position, operationHash: null, authorization, isUpto })
  }
  const use = (mark: string) => {
    used.set(mark, undefined)
    marks.push(mark)
  }
  const findRefusal = (token: Stablecoin, from: Address, units: bigint) =>
    readBalance(token, from) < units ? tokenRefusals.ERC20InsufficientBalance : undefined

  return {
    network,
    identity,
    blockNumber: () => BigInt(mined.length),
    readBalance,
    readAllowance: (token, owner, spender) => allowances[token].get(namePair(owner, spender)) ?? 0n,
    countPermits: (token, owner) => permits[token].get(lowerCaseAddress(owner)) ?? 0n,
    isUsed: (mark) => used.has(mark),
    usedMarks: (prefix) =>
      [...used.keys()].filter((mark) => mark.startsWith(prefix)).map((mark) => mark.slice(prefix.length)),
    findTransaction: (mark) => used.get(mark),
    transaction: (hash) => byHash.get(hash),
    transactionsBetween: (fromBlock, toBlock) =>
      mined.slice(Math.max(0, Number(fromBlock) - 1), Math.max(0, Number(toBlock))),
    mint(token, to, units) {
      setBalance(token, to, readBalance(token, to) + units)
      log(token, { from: ZERO, to, units })
    },
    burn(token, from, units) {
      setBalance(token, from, readBalance(token, from) - units)
      log(token, { from, to: ZERO, units })
    },
    send: (message) => void sent.push(message),
    deliver(message, mint) {
      const after = moved.length - 1
      mint()
      delivered.push({ ...message, after, position: moved.length })
      use(messageMark(message.nonce))
    },
    findRefusal,
    move(token, move) {
      const { from, to, units, mark } = move
      const refusal = findRefusal(token, from, units)
      if (refusal !== undefined) throw new Error(refusal)
      setBalance(token, from, readBalance(token, from) - units)
      setBalance(token, to, readBalance(token, to) + units)
      log(token, move)
      if (mark !== undefined) use(mark)
    },
    allow(token, owner, spender, units) {
      allowances[token].set(namePair(owner, spender), units)
    },
    countPermit(token, owner) {
      permits[token].set(lowerCaseAddress(owner), (permits[token].get(lowerCaseAddress(owner)) ?? 0n) + 1n)
    },
    use,
    channel: (id) =>
      findOrMake(channels, id, () => ({ balance: 0n, claimed: 0n, refunds: 0n, withdrawal: undefined })),
    escrow: (hash) =>
      findOrMake(escrows, hash, () => ({ isCollected: false, capturable: 0n, refundable: 0n })),
    receiver: (receiver, token) =>
      findOrMake(receivers, namePair(receiver, token), () => ({ claimed: 0n, settled: 0n })),
    mine({ hash, calldata = '0x', operationHash } = {}) {
      const blockNumber = BigInt(mined.length + 1)
      const transaction = {
        hash: hash ?? fakeHash(`transaction ${identity} ${blockNumber} ${calldata}`),
        blockNumber,
        succeeded: true,
        transfers: moved.map((each) => ({ ...each, operationHash: operationHash ?? null })),
        calldata,
        sent: sent.map((message) => ({ message, operationHash: operationHash ?? null })),
        delivered,
      }
      mined.push(transaction)
      byHash.set(transaction.hash, transaction)
      for (const mark of marks) used.set(mark, transaction)
      moved = []
      sent = []
      delivered = []
      marks = []
      return transaction.hash
    },
  }
}

/** Builds the mark of a delivered message in the simulated books. */
export function messageMark(nonce: Hex): string {
  return `message|${nonce.toLowerCase()}`
}

/** Derives 32 bytes in the form of a hash from a text. */
export function fakeHash(text: string): Hex {
  return `0x${createHash('sha256').update(text).digest('hex')}`
}

/** Derives 20 bytes in the form of an address from a text. */
export function fakeAddress(text: string): Address {
  return `0x${fakeHash(text).slice(26)}`
}

function findOrMake<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const found = map.get(key) ?? make()
  map.set(key, found)
  return found
}

function namePair(owner: Address, spender: Address): string {
  return `${lowerCaseAddress(owner)}|${lowerCaseAddress(spender)}`
}

function perToken<Value>(make: () => Value): Record<Stablecoin, Value> {
  return { USDC: make(), USDT: make(), EURC: make(), PYUSD: make() }
}
