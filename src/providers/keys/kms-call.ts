/** Calls of a cloud's key management. Each operation leaves a key as it was, so that all of them may be repeated. */
import { random } from '../../core/base/random.ts'
import { timers } from '../../core/base/timers.ts'
import { callProvider, type ProviderAnswer, type ProviderCall } from '../http-client.ts'

/** Of an operation, with its repetitions and the time that it waits for others. */
const TOTAL_MS = 10_000
const ATTEMPT_MS = 4_000
const FIRST_PAUSE_MS = 100
/** At a time: a batch of receipts must not use up the quota that transfers need. */
const MAX_CALLS = 8

/** Calls until an answer is final. @param build makes each attempt anew, because signatures of requests age. */
export type KmsCaller = (build: () => Promise<ProviderCall>) => Promise<ProviderAnswer>

/** @param isPassing true for answers that may differ the next time, such as those of a full quota. */
export function createKmsCaller(isPassing: (answer: ProviderAnswer) => boolean): KmsCaller {
  const waiting: (() => void)[] = []
  let busy = 0
  async function repeat(build: () => Promise<ProviderCall>, until: number): Promise<ProviderAnswer> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
      const leftMs = until - timers.monotonic()
      if (leftMs <= 0) throw new Error('it is busy: too many operations wait for it')
      const request = await build()
      const timeoutMs = Math.ceil(Math.min(ATTEMPT_MS, leftMs))
      const outcome = await callProvider({ ...request, timeoutMs }).catch((error: unknown) => ({ error }))
      const isFinal = !('error' in outcome) && !isPassing(outcome)
      // Spread, so that gateways do not come back together.
      const restMs = pauseMs / 2 + random.below(pauseMs)
      if (isFinal || timers.monotonic() + restMs >= until) {
        if (!('error' in outcome)) return outcome
        throw new Error(`it cannot be reached (${describe(outcome.error)})`, { cause: outcome.error })
      }
      await timers.sleep(restMs)
    }
  }
  return async (build) => {
    const until = timers.monotonic() + TOTAL_MS
    while (busy >= MAX_CALLS) await new Promise<void>((resolve) => waiting.push(resolve))
    busy += 1
    try {
      return await repeat(build, until)
    } finally {
      busy -= 1
      waiting.shift()?.()
    }
  }
}

/** The system's code, such as ECONNREFUSED, or the name of the error: messages may have an address. */
function describe(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code
  return cause instanceof Error ? cause.name : 'unknown'
}

/** @returns the JSON of an answer; undefined for anything else. */
export function readJson({ text }: Pick<ProviderAnswer, 'text'>): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
