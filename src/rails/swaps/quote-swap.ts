/**
 * Swaps: finds the cheapest route between two tokens. May import the base, ports and the ledger. All aggregators are
 * queried at once within a deadline. A failing aggregator never fails the quote. Offers are ranked by output after
 * fees and gas.
 */
import { timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'
import { formatUnits } from '../../core/money/money.ts'
import { worthInMicros } from '../../core/money/swap-tokens.ts'
import type { SwapAggregator, SwapFee, SwapOffer, SwapRequest } from '../../providers/swap-aggregator/port.ts'
import { validateOffer } from './judge-offer.ts'

/** Deadline of the aggregators, and lifetime of a quote. */
const DEADLINE_MS = 2_000
export const QUOTE_MS = 30_000

/** An offer with its aggregator. @property netUsdMicros output after fees and gas, in millionths of a USD. */
export interface RankedOffer extends SwapOffer {
  readonly tool: string
  readonly netUsdMicros: bigint
}

/** Result of all aggregators. @property best the best of those that can be executed, where one can; else the best. */
export interface SwapQuote {
  readonly best: RankedOffer
  readonly alternatives: readonly RankedOffer[]
  readonly failed: readonly { readonly tool: string; readonly reason: string }[]
}

/**
 * Queries all aggregators. Offers that fees and gas use up are dropped.
 * @throws Failure `no_route` when no offer remains; its hint says whether waiting or another amount may help.
 */
export async function quoteSwap(
  aggregators: readonly SwapAggregator[],
  request: SwapRequest,
  deadlineMs = DEADLINE_MS,
): Promise<SwapQuote> {
  const { best, ...others } = await askAll(aggregators, request, deadlineMs)
  if (best !== undefined) return { best, ...others }
  throw noOffer(request, others.failed)
}

/** Queries all aggregators. @returns without `best` when no offer remains. */
export async function askAll(
  aggregators: readonly SwapAggregator[],
  request: SwapRequest,
  deadlineMs = DEADLINE_MS,
): Promise<Omit<SwapQuote, 'best'> & { readonly best: RankedOffer | undefined }> {
  const asked = aggregators.filter(({ isLocal }) => isLocal !== true || request.venue !== undefined)
  // Routes of strangers between chains are prices only.
  const priced = request.venue?.destination === undefined ? request : { ...request, venue: undefined }
  const outcomes = await Promise.all(
    asked.map((each) => quoteOne(each, each.isLocal === true ? request : priced, deadlineMs)),
  )
  const offers = outcomes.flatMap((outcome) => ('offer' in outcome ? [outcome] : []))
  const all = rankOffers(offers, request)
  const eaten = all.filter(leavesNothing).map(({ tool }) => ({ tool, reason: 'no_route' }))
  const failed = [...outcomes.flatMap((outcome) => ('reason' in outcome ? [outcome] : [])), ...eaten]
  const offered = all.filter((offer) => !leavesNothing(offer))
  // A price that nobody makes good is an alternative only.
  const best = offered.find(({ call }) => call !== undefined) ?? offered[0]
  const alternatives = offered.filter((offer) => offer !== best)
  return { best, alternatives, failed }
}

/**
 * Tells that what moves money on our own chains could not be asked, for example because one of them does not answer.
 * @returns undefined where each of them has answered.
 */
export function findSilence(
  aggregators: readonly SwapAggregator[],
  failed: SwapQuote['failed'],
): Failure | undefined {
  const silent = failed.filter(
    ({ tool, reason }) =>
      !permanentReasons.has(reason) && aggregators.some((one) => one.isLocal === true && one.tool === tool),
  )
  if (silent.length === 0) return undefined
  const tools = silent.map(({ tool, reason }) => `${tool}: ${reason}`).join(', ')
  return new Failure(
    'provider_unavailable',
    `A chain does not answer, so that no way between the two can be planned (${tools}). Nothing was sent.`,
    { retryAfter: 5, hint: 'Repeat the call with the same idempotency key.' },
  )
}

/** Checks whether fees and gas exceed the output. */
const leavesNothing = ({ netUsdMicros }: RankedOffer) => netUsdMicros < 0n

/** Reasons that an aggregator permanentReasons with; an immediate retry gives the same result. */
const permanentReasons: ReadonlySet<string> = new Set(['no_route', 'unsupported_route'])

function noOffer({ from, to, amountIn }: SwapRequest, failed: SwapQuote['failed']): Failure {
  if (failed.length === 0)
    return new Failure('no_route', 'No aggregator is configured; no route can be quoted.', {
      retryAfter: 60,
      hint: 'Contact the operator.',
    })
  const amount = formatUnits(amountIn, from.decimals)
  const reasons = failed.map(({ tool, reason }) => `${tool}: ${reason}`).join(', ')
  const detail = `No aggregator offers a route from ${amount} ${nameToken(from)} to ${nameToken(to)} (${reasons}).`
  if (failed.every(({ reason }) => permanentReasons.has(reason)))
    return new Failure('no_route', detail, {
      retryAfter: 60,
      hint: 'Name another amount, token or chain: fees and gas may use up a small amount, and a large one may exceed the liquidity.',
    })
  return new Failure('no_route', detail, {
    retryAfter: 5,
    hint: 'Try again later, with another amount, or another token.',
  })
}

type Outcome = { tool: string; offer: SwapOffer } | { tool: string; reason: string }

const reasons: ReadonlySet<string> = new Set(['timeout', 'unavailable', 'bad_answer', 'circuit_open'])

/** Enforces the deadline even if the aggregator ignores the abort signal. */
async function quoteOne(
  aggregator: SwapAggregator,
  request: SwapRequest,
  deadlineMs: number,
): Promise<Outcome> {
  const { tool } = aggregator
  const signal = timers.deadline(deadlineMs)
  const late = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('timeout')), { once: true })
  })
  try {
    const answer = await Promise.race([aggregator.quote(request, signal), late])
    if (answer.status !== 'offered') return { tool, reason: answer.reason }
    const fault = validateOffer(answer.offer, request)
    return fault === null ? { tool, offer: answer.offer } : { tool, reason: fault }
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    return { tool, reason: reasons.has(message) ? message : 'unavailable' }
  }
}

/** Ranks offers by output after fees and gas, valued at one common price; ties go to the faster one. */
function rankOffers(
  offers: readonly { tool: string; offer: SwapOffer }[],
  { to }: SwapRequest,
): readonly RankedOffer[] {
  const price = findPrice(
    offers.map(({ offer }) => offer),
    to,
  )
  return offers
    .map(({ tool, offer }) => ({
      ...offer,
      tool,
      netUsdMicros:
        worthInMicros(offer.amountOut, to.decimals, price) - offer.gasUsdMicros - addedFees(offer.fees),
    }))
    .sort((one, other) => {
      if (one.netUsdMicros !== other.netUsdMicros) return one.netUsdMicros > other.netUsdMicros ? -1 : 1
      return one.durationSec - other.durationSec
    })
}

/**
 * Price of one token in millionths of a USD: one dollar, or the median of the aggregators' stated prices, so that no
 * aggregator wins by its own price. Without stated prices, the reference price.
 */
function findPrice(offers: readonly SwapOffer[], to: SwapRequest['to']): bigint {
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

function addedFees(fees: readonly SwapFee[]): bigint {
  return fees.reduce((sum, { included, usdMicros }) => (included ? sum : sum + usdMicros), 0n)
}

function nameToken({ symbol, chain }: SwapRequest['from']): string {
  return `${symbol} on ${chain}`
}
