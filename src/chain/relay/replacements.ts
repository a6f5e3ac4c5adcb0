/**
 * Replaces stuck transactions with the same nonce at a higher price, so that they do not block later ones. Only one
 * transaction per nonce is ever mined.
 * @see https://github.com/ethereum/go-ethereum/blob/master/core/txpool/legacypool/legacypool.go (PriceBump)
 */
import { timers } from '../../core/base/timers.ts'
import type { Address } from '../../providers/chain/port.ts'
import type { NodeClient } from '../rpc/client.ts'
import type { Fees, SponsoredCall } from './relayer.ts'

/** Price increase of a replacement, in percent: nodes reject less than 10. */
const BUMP_PERCENT = 25n

/** Maximum replacements of a transaction; the last one offers about ten times the first price. */
const MAX_OFFERS = 10

/**
 * Dependencies of replacements.
 * @property broadcast signs and sends a call with a nonce.
 * @property stuckMs age at which a transaction counts as stuck.
 */
export interface ReplacementOptions {
  readonly client: NodeClient
  readonly address: Address
  readonly stuckMs: number
  fees(): Promise<Fees>
  broadcast(call: SponsoredCall, offer: Fees, nonce: number): Promise<unknown>
}

/** Pending transactions. */
export interface Replacements {
  /** Watches a transaction until its nonce is used. */
  watch(nonce: number, call: SponsoredCall, offer: Fees): void
  /** Checks once, and replaces stuck transactions. */
  round(): Promise<void>
}

interface Watched {
  readonly call: SponsoredCall
  readonly offer: Fees
  readonly offers: number
  readonly at: number
}

/** Creates replacements, which check at intervals while anything is pending. */
export function createReplacements(options: ReplacementOptions): Replacements {
  const { client, address, stuckMs, fees, broadcast } = options
  const watched = new Map<number, Watched>()
  let isWaiting = false

  async function round(): Promise<void> {
    const next = await client.getTransactionCount({ address })
    for (const nonce of watched.keys()) if (nonce < next) watched.delete(nonce)
    const stuck = [...watched].filter(([, { at, offers }]) => isStuck(at) && offers < MAX_OFFERS)
    if (stuck.length === 0) return
    const now = await fees()
    for (const [nonce, { call, offer, offers }] of stuck) {
      const higher = raiseFees(offer, now)
      watched.set(nonce, { call, offer: higher, offers: offers + 1, at: timers.monotonic() })
      // A transaction that was mined in the meantime is rejected; the next round notices.
      await broadcast(call, higher, nonce).catch(() => undefined)
    }
  }

  const isStuck = (at: number) => timers.monotonic() - at >= stuckMs

  function lookLater(): void {
    if (isWaiting) return
    isWaiting = true
    const look = async () => {
      await round().catch(() => undefined)
      isWaiting = false
      if (watched.size > 0) lookLater()
    }
    timers.after(stuckMs / 2, () => void look(), { isIdle: true })
  }

  return {
    watch(nonce, call, offer) {
      watched.set(nonce, { call, offer, offers: 1, at: timers.monotonic() })
      lookLater()
    },
    round,
  }
}

function raiseFees(offer: Fees, now: Fees): Fees {
  const more = (before: bigint, current: bigint) => {
    const bumped = before + (before * BUMP_PERCENT) / 100n + 1n
    return bumped > current ? bumped : current
  }
  return {
    maxFeePerGas: more(offer.maxFeePerGas, now.maxFeePerGas),
    maxPriorityFeePerGas: more(offer.maxPriorityFeePerGas, now.maxPriorityFeePerGas),
  }
}
