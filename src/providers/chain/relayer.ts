/**
 * The sponsor's key at work: it signs, numbers and broadcasts, many at once. The numbers are given out here and not asked
 * of the node, which spares a round trip; a number whose transaction was refused is used again, since a gap would
 * hold up everything behind it. One process owns a key.
 */
import { BaseError, keccak256, TransactionNotFoundError } from 'viem'
import type { LocalAccount } from 'viem/accounts'
import type { Address, Hex } from '../chain.ts'
import type { NodeClient } from './client.ts'
import { baseSepolia } from './networks.ts'
import { isConnectionError } from './refusal.ts'

/** Wei a unit of gas. */
export interface Fees {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

/** A call that the sponsor pays for. @property gas the most it may use. */
export interface SponsoredCall {
  readonly to: Address
  readonly data: Hex
  readonly gas: bigint
}

/** Broadcasts what it is given. */
export interface Relayer {
  readonly address: Address
  /** Answers the hash once the node has taken the transaction. @throws where it refused, or nobody can tell. */
  send(call: SponsoredCall): Promise<Hex>
}

/** A relayer for one key. @param fees what to offer now; cached by whoever gives it. */
export function createRelayer(client: NodeClient, account: LocalAccount, fees: () => Promise<Fees>): Relayer {
  const free: number[] = []
  let next: Promise<number> | number | undefined

  async function start(): Promise<void> {
    next ??= client.getTransactionCount({ address: account.address, blockTag: 'pending' })
    if (typeof next === 'number') return
    const asked = next
    try {
      const count = await asked
      if (next === asked) next = count
    } catch (error) {
      if (next === asked) next = undefined
      throw error
    }
  }

  function take(): number {
    const freed = free.shift()
    if (freed !== undefined) return freed
    if (typeof next !== 'number') throw new Error('The relayer gave out a number before it had one.')
    next += 1
    return next - 1
  }

  /** Puts a number back. Answers whether later ones are out already, so that it must be filled. */
  function giveBack(nonce: number): boolean {
    if (next === nonce + 1) next = nonce
    else free.push(nonce)
    return next !== nonce
  }

  async function broadcast(call: SponsoredCall, offer: Fees, nonce: number): Promise<Hex> {
    const signed = await account.signTransaction({
      type: 'eip1559',
      chainId: baseSepolia.id,
      nonce,
      value: 0n,
      ...call,
      ...offer,
    })
    const hash = keccak256(signed)
    try {
      await client.sendRawTransaction({ serializedTransaction: signed })
    } catch (error) {
      await requireTaken(client, hash, error)
    }
    return hash
  }

  async function send(call: SponsoredCall, refill: boolean): Promise<Hex> {
    for (let attempt = 1; ; attempt += 1) {
      const offer = await fees()
      await start()
      const nonce = take()
      try {
        return await broadcast(call, offer, nonce)
      } catch (error) {
        if (isNonceUsed(error)) {
          // Somebody else sends with this key: begin again from what the node says.
          free.length = 0
          next = undefined
          if (attempt < 5) continue
        } else if (giveBack(nonce) && refill) {
          void send({ to: account.address, data: '0x', gas: 30_000n }, false).catch(() => undefined)
        }
        throw error
      }
    }
  }

  return { address: account.address, send: (call) => send(call, true) }
}

/**
 * Returns where the node has the transaction although sending it failed: it had it before, or its answer was lost.
 * @throws the node's refusal; an Error of our own where nobody can tell.
 */
async function requireTaken(client: NodeClient, hash: Hex, error: unknown): Promise<void> {
  if (error instanceof BaseError && /already (known|imported)/i.test(error.details)) return
  try {
    await client.getTransaction({ hash })
  } catch (answer) {
    if (answer instanceof TransactionNotFoundError && !isConnectionError(error)) throw error
    throw new Error(`It is not known whether the node took transaction ${hash}.`, { cause: error })
  }
}

function isNonceUsed(error: unknown): boolean {
  return error instanceof BaseError && /nonce too low|replacement transaction/i.test(error.details)
}
