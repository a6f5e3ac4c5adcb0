/** The simulated chain's books: who has what, and which operations, authorizations and permits are used up. */
import { createHash } from 'node:crypto'
import { randomToken } from '../../../base/ids.ts'
import type { Stablecoin } from '../../../money/money.ts'
import type { Address, CalledTransaction, Hex, TransferLog } from '../../chain.ts'
import { tokenRefusals } from '../relay/refusal.ts'
import { plainAddress, sandboxTokens } from '../rpc/networks.ts'

/** The books. Every change is one synchronous step, so that nothing can come between a check and what it allowed. */
export interface SimulatedState {
  /** Another one for each run. */
  readonly identity: string
  blockNumber(): bigint
  balanceOf(token: Stablecoin, address: Address): bigint
  allowanceOf(token: Stablecoin, owner: Address, spender: Address): bigint
  /** The next number that a permit of the owner must carry. */
  permitsOf(token: Stablecoin, owner: Address): bigint
  isUsed(mark: string): boolean
  /** The transaction that used a mark up. */
  transactionOf(mark: string): CalledTransaction | undefined
  transaction(hash: Hex): CalledTransaction | undefined
  /** Transactions by block, of which each holds one; both ends included. */
  transactionsBetween(fromBlock: bigint, toBlock: bigint): readonly CalledTransaction[]
  mint(token: Stablecoin, to: Address, units: bigint): void
  /** Why the transfer cannot be made, or undefined. */
  refusalOf(token: Stablecoin, from: Address, units: bigint): string | undefined
  /** Moves units and uses up the mark. @throws Error where the balance is too small. */
  move(token: Stablecoin, move: SimulatedMovement): void
  allow(token: Stablecoin, owner: Address, spender: Address, units: bigint): void
  countPermit(token: Stablecoin, owner: Address): void
  use(mark: string): void
  /** Closes a block around what was just done, as one transaction. @returns its hash. */
  mine(transaction?: { hash?: Hex; calldata?: Hex; operationHash?: Hex }): Hex
}

/** One movement of units. @property mark what is used up with it. @property authorization the EIP-3009 nonce that moves it. */
export interface SimulatedMovement {
  readonly from: Address
  readonly to: Address
  readonly units: bigint
  readonly mark?: string | undefined
  readonly authorization?: TransferLog['authorization'] | undefined
}

const ZERO: Address = '0x0000000000000000000000000000000000000000'

/** Empty books. */
export function createSimulatedState(): SimulatedState {
  const balances = perToken(() => new Map<Address, bigint>())
  const allowances = perToken(() => new Map<string, bigint>())
  const permits = perToken(() => new Map<Address, bigint>())
  const used = new Map<string, CalledTransaction | undefined>()
  const byHash = new Map<Hex, CalledTransaction>()
  const mined: CalledTransaction[] = []
  const identity = randomToken(16)
  let moved: TransferLog[] = []
  let marks: string[] = []

  const balanceOf = (token: Stablecoin, address: Address) => balances[token].get(plainAddress(address)) ?? 0n
  const setBalance = (token: Stablecoin, address: Address, units: bigint) => {
    balances[token].set(plainAddress(address), units)
  }
  const log = (token: Stablecoin, { from, to, units, authorization = null }: SimulatedMovement) => {
    const position = moved.length
    const ends = { from: plainAddress(from), to: plainAddress(to) }
    const address = plainAddress(sandboxTokens[token].address)
    moved.push({ token: address, ...ends, units, position, operationHash: null, authorization })
  }
  const use = (mark: string) => {
    used.set(mark, undefined)
    marks.push(mark)
  }
  const refusalOf = (token: Stablecoin, from: Address, units: bigint) =>
    balanceOf(token, from) < units ? tokenRefusals.ERC20InsufficientBalance : undefined

  return {
    identity,
    blockNumber: () => BigInt(mined.length),
    balanceOf,
    allowanceOf: (token, owner, spender) => allowances[token].get(pairOf(owner, spender)) ?? 0n,
    permitsOf: (token, owner) => permits[token].get(plainAddress(owner)) ?? 0n,
    isUsed: (mark) => used.has(mark),
    transactionOf: (mark) => used.get(mark),
    transaction: (hash) => byHash.get(hash),
    transactionsBetween: (fromBlock, toBlock) =>
      mined.slice(Math.max(0, Number(fromBlock) - 1), Math.max(0, Number(toBlock))),
    mint(token, to, units) {
      setBalance(token, to, balanceOf(token, to) + units)
      log(token, { from: ZERO, to, units })
    },
    refusalOf,
    move(token, move) {
      const { from, to, units, mark } = move
      const refusal = refusalOf(token, from, units)
      if (refusal !== undefined) throw new Error(refusal)
      setBalance(token, from, balanceOf(token, from) - units)
      setBalance(token, to, balanceOf(token, to) + units)
      log(token, move)
      if (mark !== undefined) use(mark)
    },
    allow(token, owner, spender, units) {
      allowances[token].set(pairOf(owner, spender), units)
    },
    countPermit(token, owner) {
      permits[token].set(plainAddress(owner), (permits[token].get(plainAddress(owner)) ?? 0n) + 1n)
    },
    use,
    mine({ hash, calldata = '0x', operationHash } = {}) {
      const blockNumber = BigInt(mined.length + 1)
      const transaction = {
        hash: hash ?? fakeHash(`transaction ${identity} ${blockNumber}`),
        blockNumber,
        succeeded: true,
        transfers: moved.map((each) => ({ ...each, operationHash: operationHash ?? null })),
        calldata,
      }
      mined.push(transaction)
      byHash.set(transaction.hash, transaction)
      for (const mark of marks) used.set(mark, transaction)
      moved = []
      marks = []
      return transaction.hash
    },
  }
}

/** 32 bytes that look like a hash and are always the same for the same text. */
export function fakeHash(text: string): Hex {
  return `0x${createHash('sha256').update(text).digest('hex')}`
}

/** 20 bytes that look like an address and are always the same for the same text. */
export function fakeAddress(text: string): Address {
  return `0x${fakeHash(text).slice(26)}`
}

function pairOf(owner: Address, spender: Address): string {
  return `${plainAddress(owner)}|${plainAddress(spender)}`
}

function perToken<Value>(make: () => Value): Record<Stablecoin, Value> {
  return { USDC: make(), USDT: make(), EURC: make(), PYUSD: make() }
}
