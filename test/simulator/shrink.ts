/** Looks for a shorter history that breaks the same promise: without faults, with fewer operations, without one part after the other. */
import type { Result, Run } from './simulate.ts'

const MAX_RUNS = 60

/** @param simulate runs once. @returns the shortest that was found, at worst the run itself. */
export async function shrink(
  run: Run,
  { found, done }: Pick<Result, 'found' | 'done'>,
  simulate: (run: Run) => Promise<Pick<Result, 'found'>>,
): Promise<{ readonly run: Run; readonly found: readonly string[] }> {
  const promise = promiseOf(found)
  let best = { run: { ...run, operations: Math.min(run.operations, done + run.without.length) }, found }
  let runs = 0
  const tries = async (candidate: Run): Promise<boolean> => {
    if (runs >= MAX_RUNS) return false
    runs += 1
    const told = await simulate(candidate)
    if (promiseOf(told.found) !== promise) return false
    best = { run: candidate, found: told.found }
    return true
  }
  if (best.run.hasFaults) await tries({ ...best.run, hasFaults: false })
  for (
    let part = Math.ceil(best.run.operations / 2);
    part >= 1;
    part = part === 1 ? 0 : Math.ceil(part / 2)
  ) {
    for (let from = 0; from < best.run.operations; from += part) {
      const left = new Set(best.run.without)
      const removed = Array.from({ length: part }, (_, index) => from + index).filter(
        (number) => number < best.run.operations && !left.has(number),
      )
      if (removed.length > 0)
        await tries({ ...best.run, without: [...left, ...removed].sort((one, other) => one - other) })
    }
  }
  return best
}

/** The sentence of the first promise that is broken. */
function promiseOf([first = '']: readonly string[]): string {
  return first.split(' – ')[0] ?? ''
}
