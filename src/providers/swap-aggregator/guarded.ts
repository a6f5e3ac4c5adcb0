/**
 * A circuit breaker before an aggregator: after some failures in a row nobody waits for it any more. Once it has rested, one
 * question is put to it that nobody waits for; its answer closes the circuit again.
 */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { SwapAggregator, SwapAnswer, SwapRequest } from '../swap-aggregator.ts'

/** When it opens and for how long. */
export interface BreakerOptions {
  readonly clock: Clock
  readonly log: Log
  readonly failures?: number
  readonly restMs?: number
  /** How long the question may take that nobody waits for. */
  readonly probeMs?: number
}

/** The same aggregator, which fails at once with `circuit_open` while its circuit is open. */
export function guardAggregator(
  aggregator: SwapAggregator,
  { clock, log, failures = 5, restMs = 30_000, probeMs = 2_000 }: BreakerOptions,
): SwapAggregator {
  const { tool } = aggregator
  let failed = 0
  let restsUntil = 0
  const judged = async (request: SwapRequest, signal: AbortSignal): Promise<SwapAnswer> => {
    try {
      const answer = await aggregator.quote(request, signal)
      if (failed >= failures) log.info({ tool }, 'an aggregator answers again')
      failed = 0
      return answer
    } catch (error) {
      failed += 1
      if (failed < failures) throw error
      if (failed === failures) log.warn({ tool, err: error }, 'an aggregator is not asked for a while')
      restsUntil = clock().getTime() + restMs
      throw error
    }
  }
  return {
    tool,
    quote: (request, signal) => {
      if (failed < failures) return judged(request, signal)
      const now = clock().getTime()
      if (now >= restsUntil) {
        restsUntil = now + restMs
        // The breaker has heard of its failure; nobody else waits for it.
        judged(request, AbortSignal.timeout(probeMs)).catch(() => {})
      }
      return Promise.reject(new Error('circuit_open'))
    },
  }
}
