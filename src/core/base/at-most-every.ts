import type { Clock } from './clock.ts'

/**
 * Shares one call among all that come before its end, or within an interval of its start. @param intervalMs a failure is shared
 * like a result.
 */
export function atMostEvery<Result>(
  intervalMs: number,
  clock: Clock,
  call: () => Promise<Result>,
): () => Promise<Result> {
  let last: { readonly at: number; readonly result: Promise<Result>; isOver: boolean } | undefined
  return () => {
    const at = clock().getTime()
    if (last !== undefined && (!last.isOver || Math.abs(at - last.at) < intervalMs)) return last.result
    const made = { at, result: call(), isOver: false }
    last = made
    const end = () => {
      made.isOver = true
    }
    made.result.then(end, end)
    return made.result
  }
}
