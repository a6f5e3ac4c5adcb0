/**
 * Swaps: the cheapest way from one token to another. May import the base, ports and the ledger. Aggregators are asked at once and
 * within a deadline; one that fails never fails the quote; what comes out in the end, after fees and gas, decides.
 */
import { Failure } from '../failures/failure.ts'
import { decimalOfUnits } from '../money/money.ts'
import { worthInMicros } from '../money/swap-tokens.ts'
import type { SwapAggregator, SwapFee, SwapOffer, SwapRequest } from '../providers/swap-aggregator.ts'
import { judgeOffer } from './judge-offer.ts'

/** How long aggregators have, and how long a quote holds. */
const DEADLINE_MS = 2_000
export const QUOTE_MS = 30_000

/** An offer and who makes it. @property netUsdMicros what it leaves after fees and gas, millionths of a USD. */
export interface RankedOffer extends SwapOffer {
  readonly tool: string
  readonly netUsdMicros: bigint
}

/** Everything that came. @property best is never beaten by an alternative. */
export interface SwapQuote {
  readonly best: RankedOffer
  readonly alternatives: readonly RankedOffer[]
  readonly failed: readonly { readonly tool: string; readonly reason: string }[]
}

/**
 * Asks all aggregators. An offer that fees and gas eat up is none.
 * @throws Failure `no_route` where none offers anything: its hint says whether waiting or another amount may help.
 */
export async function quoteSwap(
  aggregators: readonly SwapAggregator[],
  request: SwapRequest,
  deadlineMs = DEADLINE_MS,
): Promise<SwapQuote> {
  const outcomes = await Promise.all(aggregators.map((each) => askOne(each, request, deadlineMs)))
  const offers = outcomes.flatMap((outcome) => ('offer' in outcome ? [outcome] : []))
  const all = ranked(offers, request)
  const eaten = all.filter(leavesNothing).map(({ tool }) => ({ tool, reason: 'no_route' }))
  const failed = [...outcomes.flatMap((outcome) => ('reason' in outcome ? [outcome] : [])), ...eaten]
  const [best, ...alternatives] = all.filter((offer) => !leavesNothing(offer))
  if (best !== undefined) return { best, alternatives, failed }
  throw noOffer(request, failed)
}

/** Whether fees and gas on the way are more than what comes out. */
const leavesNothing = ({ netUsdMicros }: RankedOffer) => netUsdMicros < 0n

/** What aggregators say that work, and have nothing for this: asking again at once changes nothing. */
const answered: ReadonlySet<string> = new Set(['no_route', 'unsupported_route'])

function noOffer({ from, to, amountIn }: SwapRequest, failed: SwapQuote['failed']): Failure {
  if (failed.length === 0)
    return new Failure('no_route', 'No aggregator is configured; there is nobody to ask for a route.', {
      retryAfter: 60,
      hint: 'Ask the operator.',
    })
  const amount = decimalOfUnits(amountIn, from.decimals)
  const reasons = failed.map(({ tool, reason }) => `${tool}: ${reason}`).join(', ')
  const detail = `Nobody offers a way from ${amount} ${nameOf(from)} to ${nameOf(to)} (${reasons}).`
  if (failed.every(({ reason }) => answered.has(reason)))
    return new Failure('no_route', detail, {
      retryAfter: 60,
      hint: 'Name another amount, token or chain: fees and gas eat up a small amount, and for a large one there may not be enough on the other side.',
    })
  return new Failure('no_route', detail, {
    retryAfter: 5,
    hint: 'Try again later, with another amount, or another token.',
  })
}

type Outcome = { tool: string; offer: SwapOffer } | { tool: string; reason: string }

const reasons: ReadonlySet<string> = new Set(['timeout', 'unavailable', 'bad_answer', 'circuit_open'])

/** The deadline holds whatever the aggregator does. */
async function askOne(
  aggregator: SwapAggregator,
  request: SwapRequest,
  deadlineMs: number,
): Promise<Outcome> {
  const { tool } = aggregator
  const signal = AbortSignal.timeout(deadlineMs)
  const late = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('timeout')), { once: true })
  })
  try {
    const answer = await Promise.race([aggregator.quote(request, signal), late])
    if (answer.status !== 'offered') return { tool, reason: answer.reason }
    const fault = judgeOffer(answer.offer, request)
    return fault === null ? { tool, offer: answer.offer } : { tool, reason: fault }
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    return { tool, reason: reasons.has(message) ? message : 'unavailable' }
  }
}

/** Best first: most left after fees and gas, at one price for all of them; then the faster one. */
function ranked(
  offers: readonly { tool: string; offer: SwapOffer }[],
  { to }: SwapRequest,
): readonly RankedOffer[] {
  const price = priceOf(
    offers.map(({ offer }) => offer),
    to,
  )
  return offers
    .map(({ tool, offer }) => ({
      ...offer,
      tool,
      netUsdMicros:
        worthInMicros(offer.amountOut, to.decimals, price) - offer.gasUsdMicros - onTop(offer.fees),
    }))
    .sort((one, other) => {
      if (one.netUsdMicros !== other.netUsdMicros) return one.netUsdMicros > other.netUsdMicros ? -1 : 1
      return one.durationSec - other.durationSec
    })
}

/**
 * What one of the token is worth, in millionths of a USD: a dollar, or the middle of what those who offer it say, so that nobody
 * wins by a price of their own. Where nobody says, the reference.
 */
function priceOf(offers: readonly SwapOffer[], to: SwapRequest['to']): bigint {
  if (to.isDollar) return 1_000_000n
  const stated = offers
    .flatMap(({ outUsdMicros, amountOut }) =>
      outUsdMicros === null || amountOut === 0n
        ? []
        : [(outUsdMicros * 10n ** BigInt(to.decimals)) / amountOut],
    )
    .sort((one, other) => (one < other ? -1 : 1))
  return stated[Math.floor(stated.length / 2)] ?? to.usdMicros
}

function onTop(fees: readonly SwapFee[]): bigint {
  return fees.reduce((sum, { included, usdMicros }) => (included ? sum : sum + usdMicros), 0n)
}

function nameOf({ symbol, chain }: SwapRequest['from']): string {
  return `${symbol} on ${chain}`
}
