/**
 * Transactions that nobody mines: offered again under the same number, at a higher price, so that they do not hold up all
 * that come behind them. Only one of a number is ever mined. @see https://github.com/ethereum/go-ethereum/blob/master/core/txpool/legacypool/legacypool.go (PriceBump)
 */
import type { Address } from '../../chain.ts'
import type { NodeClient } from '../rpc/client.ts'
import type { Fees, SponsoredCall } from './relayer.ts'

/** How much more a replacement offers, in percent: nodes take none below 10. */
const BUMP_PERCENT = 25n

/** Offers after which a transaction is left to the market: by then it offers about ten times what it began with. */
const MOST_OFFERS = 10

/** How it is done. @property broadcast signs and sends a call under a number. @property stuckMs the age at which one counts as stuck. */
export interface ReplacementOptions {
  readonly client: NodeClient
  readonly address: Address
  readonly stuckMs: number
  fees(): Promise<Fees>
  broadcast(call: SponsoredCall, offer: Fees, nonce: number): Promise<unknown>
}

/** What is on its way. */
export interface Replacements {
  /** Remembers a transaction until its number is used. */
  watch(nonce: number, call: SponsoredCall, offer: Fees): void
  /** Looks once, and offers more for what is stuck. */
  round(): Promise<void>
}

interface Watched {
  readonly call: SponsoredCall
  readonly offer: Fees
  readonly offers: number
  readonly at: number
}

/** Looks at intervals for as long as anything is on its way. */
export function createReplacements(options: ReplacementOptions): Replacements {
  const { client, address, stuckMs, fees, broadcast } = options
  const watched = new Map<number, Watched>()
  let _timer: NodeJS.Timeout | undefined

  async function round(): Promise<void> {
    const next = await client.getTransactionCount({ address })
    for (const nonce of watched.keys()) if (nonce < next) watched.delete(nonce)
    const stuck = [...watched].filter(([, { at, offers }]) => isStuck(at) && offers < MOST_OFFERS)
    if (stuck.length === 0) return
    const now = await fees()
    for (const [nonce, { call, offer, offers }] of stuck) {
      const higher = raised(offer, now)
      watched.set(nonce, { call, offer: higher, offers: offers + 1, at: performance.now() })
      // One that was mined meanwhile is refused; the next round sees it.
      await broadcast(call, higher, nonce).catch(() => undefined)
    }
  }

  const isStuck = (at: number) => performance.now() - at >= stuckMs

  function lookLater(): void {
    _timer ??= setTimeout(async () => {
      await round().catch(() => undefined)
      _timer = undefined
      if (watched.size > 0) lookLater()
    }, stuckMs / 2).unref()
  }

  return {
    watch(nonce, call, offer) {
      watched.set(nonce, { call, offer, offers: 1, at: performance.now() })
      lookLater()
    },
    round,
  }
}

function raised(offer: Fees, now: Fees): Fees {
  const more = (before: bigint, current: bigint) => {
    const bumped = before + (before * BUMP_PERCENT) / 100n + 1n
    return bumped > current ? bumped : current
  }
  return {
    maxFeePerGas: more(offer.maxFeePerGas, now.maxFeePerGas),
    maxPriorityFeePerGas: more(offer.maxPriorityFeePerGas, now.maxPriorityFeePerGas),
  }
}
