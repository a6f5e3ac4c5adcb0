/**
 * A circuit breaker for an aggregator: after several consecutive failures, requests fail immediately. After a pause,
 * one probe request is sent in the background; a valid answer closes the circuit.
 */
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { timers } from '../../core/base/timers.ts'
import type { SwapAggregator, SwapAnswer, SwapRequest } from './port.ts'

/** Thresholds of the breaker. */
export interface BreakerOptions {
  readonly clock: Clock
  readonly log: Log
  readonly failures?: number
  readonly restMs?: number
  /** Time limit of the background probe. */
  readonly probeMs?: number
}

/** Wraps an aggregator; fails at once with `circuit_open` while the circuit is open. */
export function guardAggregator(
  aggregator: SwapAggregator,
  { clock, log, failures = 5, restMs = 30_000, probeMs = 2_000 }: BreakerOptions,
): SwapAggregator {
  const { tool, isLocal } = aggregator
  let failed = 0
  let restsUntil = 0
  const quoteGuarded = async (request: SwapRequest, signal: AbortSignal): Promise<SwapAnswer> => {
    try {
      const answer = await aggregator.quote(request, signal)
      if (failed >= failures) log.info({ tool }, 'an aggregator has recovered')
      failed = 0
      return answer
    } catch (error) {
      failed += 1
      if (failed < failures) throw error
      if (failed === failures) log.warn({ tool, err: error }, 'an aggregator is suspended for a while')
      restsUntil = clock().getTime() + restMs
      throw error
    }
  }
  return {
    tool,
    ...(isLocal === true ? { isLocal } : {}),
    quote: (request, signal) => {
      if (failed < failures) return quoteGuarded(request, signal)
      const now = clock().getTime()
      if (now >= restsUntil) {
        restsUntil = now + restMs
        // The breaker has recorded the failure; no caller waits for the probe.
        quoteGuarded(request, timers.deadline(probeMs)).catch(() => {})
      }
      return Promise.reject(new Error('circuit_open'))
    },
  }
}
