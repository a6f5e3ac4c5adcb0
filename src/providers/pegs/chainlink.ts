/**
 * Prices of stablecoins from Chainlink's feeds on the chain, by address. A feed in dollars prices a dollar's stablecoin; a
 * price that is too old, not positive or unreadable is no price.
 * @see https://docs.chain.link/data-feeds/api-reference
 */
import { createPublicClient, http, parseAbi } from 'viem'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Stablecoin } from '../../core/money/money.ts'
import type { Address } from '../chain/port.ts'
import { lostPegs, type Pegs } from './port.ts'

const feedAbi = parseAbi([
  'function decimals() view returns (uint8)',
  'function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)',
])
/** Feeds of stablecoins are written once a day, or when the price has moved by a quarter of a percent. */
const MAX_AGE_MS = 26 * 60 * 60_000
/** How long a price counts before it is read again. */
const FRESH_MS = 15_000
const TIMEOUT_MS = 3_000
const MICRO_DIGITS = 6
const MAX_DECIMALS = 36

/** @param feeds address of each token's feed, in US dollars. @param url of a node of the feeds' chain. */
export function createChainlinkPegs({
  url,
  feeds,
  log,
}: {
  readonly url: string
  readonly feeds: ReadonlyMap<Stablecoin, Address>
  readonly log: Log
}): Pegs {
  const client = createPublicClient({ transport: http(url, { timeout: TIMEOUT_MS, retryCount: 1 }) })
  let known: { readonly lost: ReadonlySet<Stablecoin>; readonly readAt: Date } | undefined
  let reading: Promise<ReadonlySet<Stablecoin>> | undefined
  const readPrice = async (token: Stablecoin, address: Address, now: Date) => {
    const [decimals, [, answer, , updatedAt]] = await Promise.all([
      client.readContract({ address, abi: feedAbi, functionName: 'decimals' }),
      client.readContract({ address, abi: feedAbi, functionName: 'latestRoundData' }),
    ])
    const ageMs = now.getTime() - Number(updatedAt) * 1_000
    if (answer <= 0n || decimals > MAX_DECIMALS || ageMs > MAX_AGE_MS)
      throw new Error(`the feed of ${token} has no price of the last day`)
    return [token, (answer * 10n ** BigInt(MICRO_DIGITS)) / 10n ** BigInt(decimals)] as const
  }
  const read = async (now: Date): Promise<ReadonlySet<Stablecoin>> => {
    try {
      const prices = await Promise.all([...feeds].map(([token, address]) => readPrice(token, address, now)))
      const lost = lostPegs(prices)
      if (lost.size > 0) log.error({ tokens: [...lost] }, 'stablecoins have lost their peg')
      known = { lost, readAt: now }
      return lost
    } catch (err) {
      log.warn({ err }, 'the prices of stablecoins cannot be read')
      throw new Failure('rates_unavailable', 'The market prices of stablecoins cannot be read.', {
        retryAfter: 15,
        hint: 'Retry after Retry-After seconds.',
      })
    }
  }
  return {
    setPrice: null,
    findLost: async (now) => {
      if (known !== undefined && Math.abs(now.getTime() - known.readAt.getTime()) < FRESH_MS)
        return known.lost
      reading ??= read(now).finally(() => {
        reading = undefined
      })
      return reading
    },
  }
}
