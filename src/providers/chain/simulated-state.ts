/** The simulated chain's books: who has what, and which operations, authorizations and permits are used up. */
import { createHash } from 'node:crypto'
import type { Stablecoin } from '../../money.ts'
import type { Address, Hex } from '../chain.ts'
import { plainAddress } from './networks.ts'
import { tokenRefusals } from './refusal.ts'

/** The books. Every change is one synchronous step, so that nothing can come between a check and what it allowed. */
export interface SimulatedState {
  blockNumber(): bigint
  balanceOf(token: Stablecoin, address: Address): bigint
  allowanceOf(token: Stablecoin, owner: Address, spender: Address): bigint
  /** The next number that a permit of the owner must carry. */
  permitsOf(token: Stablecoin, owner: Address): bigint
  isUsed(mark: string): boolean
  mint(token: Stablecoin, to: Address, units: bigint): void
  /** Why the transfer cannot be made, or undefined. */
  refusalOf(token: Stablecoin, from: Address, units: bigint): string | undefined
  /** Moves units and uses up the mark. @throws Error where the balance is too small. */
  move(token: Stablecoin, move: Move): void
  allow(token: Stablecoin, owner: Address, spender: Address, units: bigint): void
  countPermit(token: Stablecoin, owner: Address): void
  use(mark: string): void
  /** Closes a block around what was just done. */
  mine(): void
}

/** One movement of units. @property mark what is used up with it. */
export interface Move {
  readonly from: Address
  readonly to: Address
  readonly units: bigint
  readonly mark?: string | undefined
}

/** Empty books. */
export function createSimulatedState(): SimulatedState {
  const balances = perToken(() => new Map<Address, bigint>())
  const allowances = perToken(() => new Map<string, bigint>())
  const permits = perToken(() => new Map<Address, bigint>())
  const used = new Set<string>()
  let blocks = 0n

  const balanceOf = (token: Stablecoin, address: Address) => balances[token].get(plainAddress(address)) ?? 0n
  const setBalance = (token: Stablecoin, address: Address, units: bigint) => {
    balances[token].set(plainAddress(address), units)
  }
  const refusalOf = (token: Stablecoin, from: Address, units: bigint) =>
    balanceOf(token, from) < units ? tokenRefusals.ERC20InsufficientBalance : undefined

  return {
    blockNumber: () => blocks,
    balanceOf,
    allowanceOf: (token, owner, spender) => allowances[token].get(pairOf(owner, spender)) ?? 0n,
    permitsOf: (token, owner) => permits[token].get(plainAddress(owner)) ?? 0n,
    isUsed: (mark) => used.has(mark),
    mint: (token, to, units) => setBalance(token, to, balanceOf(token, to) + units),
    refusalOf,
    move(token, { from, to, units, mark }) {
      const refusal = refusalOf(token, from, units)
      if (refusal !== undefined) throw new Error(refusal)
      setBalance(token, from, balanceOf(token, from) - units)
      setBalance(token, to, balanceOf(token, to) + units)
      if (mark !== undefined) used.add(mark)
    },
    allow(token, owner, spender, units) {
      allowances[token].set(pairOf(owner, spender), units)
    },
    countPermit(token, owner) {
      permits[token].set(plainAddress(owner), (permits[token].get(plainAddress(owner)) ?? 0n) + 1n)
    },
    use: (mark) => void used.add(mark),
    mine() {
      blocks += 1n
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
