/**
 * Relayer for one key: signs, numbers and broadcasts many transactions concurrently. Nonces are assigned here instead
 * of being read from the node, which saves a round trip. The nonce of a rejected transaction is reused, because a gap
 * would block all later ones. A key must belong to one process only.
 */
import { BaseError, keccak256 } from 'viem'
import type { LocalAccount } from 'viem/accounts'
import type { Hex } from '../../providers/chain/port.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type Fees, type Relayer, requireAcceptedByNode, type SponsoredCall } from './relayer.ts'
import { createReplacements } from './replacements.ts'

/** Age at which a pending transaction is offered at a higher price. */
const STUCK_MS = 60_000

/** Creates a relayer for one key. @param fees current fee offer; caching is up to the caller. */
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
    const reading = next
    try {
      const count = await reading
      if (next === reading) next = count
    } catch (error) {
      if (next === reading) next = undefined
      throw error
    }
  }

  function take(): number {
    const freed = free.shift()
    if (freed !== undefined) return freed
    if (typeof next !== 'number') throw new Error('The relayer assigned a nonce before reading one.')
    next += 1
    return next - 1
  }

  /** Returns a nonce. @returns whether later ones are already in use, so that the gap must be filled. */
  function returnNonce(nonce: number): boolean {
    if (next === nonce + 1) next = nonce
    else free.push(nonce)
    return next !== nonce
  }

  async function broadcast(
    { beforeBroadcast, ...call }: SponsoredCall,
    offer: Fees,
    nonce: number,
  ): Promise<Hex> {
    const signed = await account.signTransaction({
      type: 'eip1559',
      chainId: client.chain.id,
      nonce,
      ...call,
      ...offer,
      value: call.value ?? 0n,
    })
    const hash = keccak256(signed)
    await beforeBroadcast?.(hash)
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
          // Another process sends with this key, so the nonce is read from the node again.
          free.length = 0
          next = undefined
          if (attempt < 5) continue
        } else if (returnNonce(nonce) && refill) {
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
