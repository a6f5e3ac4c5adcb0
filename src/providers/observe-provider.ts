/** Wraps providers with metrics and traces. */
import { timers } from '../core/base/timers.ts'
import { Failure } from '../core/failures/failure.ts'
import type { Metrics } from './metrics/port.ts'
import type { RateLimiter, RateVerdict } from './rate-limiter/port.ts'
import type { Tracing } from './tracing/port.ts'

export interface DecisionObserver {
  readonly metrics: Pick<Metrics, 'providerCall'>
  readonly tracing: Pick<Tracing, 'span'>
}

/** Counts, times and traces every method that returns a promise. Arguments and results are not recorded. */
export function observeProvider<Provider extends object>(
  provider: Provider,
  name: string,
  watching: DecisionObserver,
): Provider {
  const watched = new Map<string, unknown>()
  return new Proxy(provider, {
    get(target, property, receiver) {
      const member: unknown = Reflect.get(target, property, receiver)
      if (typeof property !== 'string') return member
      const known = watched.get(property)
      if (known !== undefined) return known
      if (hasMethods(member)) {
        const part = observeProvider(member, name, watching)
        watched.set(property, part)
        return part
      }
      if (typeof member !== 'function') return member
      const call = (...given: unknown[]): unknown =>
        watch({ provider: name, operation: property }, () => Reflect.apply(member, target, given), watching)
      watched.set(property, call)
      return call
    },
  })
}

/** True if a member has its own methods, such as a chain's signer. */
function hasMethods(member: unknown): member is object {
  return (
    typeof member === 'object' &&
    member !== null &&
    Object.values(member).some((value) => typeof value === 'function')
  )
}

/** Runs one call. Synchronous calls do not leave the process and are not counted. */
function watch(
  { provider, operation }: { provider: string; operation: string },
  run: () => unknown,
  { metrics, tracing }: DecisionObserver,
): unknown {
  const startedAt = timers.monotonic()
  const count = (outcome: string) =>
    metrics.providerCall({ provider, operation, outcome, seconds: (timers.monotonic() - startedAt) / 1_000 })
  return tracing.span(`${provider} ${operation}`, { 'bursar.provider': provider }, () => {
    const answer = run()
    if (!(answer instanceof Promise)) return answer
    return answer.then(
      (result: unknown) => {
        count('ok')
        return result
      },
      (error: unknown) => {
        count(error instanceof Failure ? error.code : 'error')
        throw error
      },
    )
  })
}

/** Counts refusals by rate class, the prefix of the key. */
export function countRefusals(rateLimiter: RateLimiter, metrics: Pick<Metrics, 'rateLimited'>): RateLimiter {
  const note = (key: string, { allowed }: RateVerdict) => {
    const [rateClass = ''] = key.split(':')
    if (!allowed) metrics.rateLimited(rateClass)
  }
  return {
    ...rateLimiter,
    async take(key, limit, now) {
      const verdict = await rateLimiter.take(key, limit, now)
      note(key, verdict)
      return verdict
    },
    async takeAll(windows, now) {
      const verdicts = await rateLimiter.takeAll(windows, now)
      for (const [index, verdict] of verdicts.entries()) note(windows[index]?.key ?? '', verdict)
      return verdicts
    },
  }
}
