/** Optional parts that production runs without, and what follows from it. */
import type { Config } from '../core/config/read-config.ts'

export interface AbsentPart {
  readonly part: string
  readonly consequence: string
  /** Setting that adds it. */
  readonly variable: string
}

export function findAbsentParts({
  alpaca,
  sumsub,
  screening,
  swapAggregators,
  smtp,
  twilio,
  redisUrl,
}: Config): AbsentPart[] {
  const listIfAbsent = (isThere: boolean, part: string, consequence: string, variable: string) =>
    isThere ? [] : [{ part, consequence, variable }]
  const mailLess =
    twilio === null
      ? 'one-time codes cannot be sent, and owners get no notices'
      : 'owners get no notices, and codes go by SMS only'
  return [
    ...listIfAbsent(screening !== null, 'screening', 'transfers to addresses are refused', 'SCREENING_URL'),
    ...listIfAbsent(smtp !== null, 'mail', mailLess, 'SMTP_URL'),
    ...listIfAbsent(redisUrl !== null, 'Redis', 'the database counts rate limits', 'REDIS_URL'),
    ...listIfAbsent(sumsub !== null, 'identity review', 'identities cannot be verified', 'SUMSUB_APP_TOKEN'),
    ...listIfAbsent(alpaca !== null, 'broker', 'every order is refused', 'ALPACA_API_KEY'),
    ...listIfAbsent(swapAggregators !== null, 'swaps', 'swap quotes are unavailable', 'SWAP_AGGREGATORS'),
  ]
}
