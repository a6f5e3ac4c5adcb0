/**
 * The sponsor's key at work: it signs, numbers and broadcasts, many at once. The numbers are given out here and not asked
 * of the node, which spares a round trip; a number whose transaction was refused is used again, since a gap would
 * hold up everything behind it. One process owns a key.
 */
import { BaseError, keccak256 } from 'viem'
import type { LocalAccount } from 'viem/accounts'
import type { Hex } from '../../chain.ts'
import type { NodeClient } from '../rpc/client.ts'
import { baseSepolia } from '../rpc/networks.ts'
import { type Fees, type Relayer, requireAcceptedByNode, type SponsoredCall } from './relayer.ts'
import { createReplacements } from './replacements.ts'

/** How long a transaction may wait to be mined before more is offered for it. */
const STUCK_MS = 60_000

/** A relayer for one key. @param fees what to offer now; cached by whoever gives it. */
export function createQueuedRelayer(
  client: NodeClient,
  account: LocalAccount,
  fees: () => Promise<Fees>,
  stuckMs = STUCK_MS,
): Relayer {
  const free: number[] = []
  const replacements = createReplacements({ client, address: account.address, stuckMs, fees, broadcast })
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
      ...call,
      ...offer,
      value: call.value ?? 0n,
    })
    const hash = keccak256(signed)
    try {
      await client.sendRawTransaction({ serializedTransaction: signed })
    } catch (error) {
      await requireAcceptedByNode(client, hash, error)
    }
    return hash
  }

  async function send(call: SponsoredCall, refill: boolean): Promise<Hex> {
    for (let attempt = 1; ; attempt += 1) {
      const offer = await fees()
      await start()
      const nonce = take()
      try {
        const hash = await broadcast(call, offer, nonce)
        replacements.watch(nonce, call, offer)
        return hash
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

  const sendOne = async (call: SponsoredCall) => ({ hash: await send(call, true) })
  return {
    address: account.address,
    send: sendOne,
    sendAsSponsor: sendOne,
    forget() {
      free.length = 0
      next = undefined
    },
  }
}

function isNonceUsed(error: unknown): boolean {
  return error instanceof BaseError && /nonce too low|replacement transaction/i.test(error.details)
}
