/**
 * The clock is passed in, so that tests can fix the time; a simulator installs its own through `ports.ts`. The only file
 * that reads the wall clock.
 */

export type Clock = () => Date

let installed: Clock = () => new Date()

/** The installed clock, by default the machine's. */
export const systemClock: Clock = () => installed()

/** @returns the clock that was installed before. */
export function installClock(next: Clock): Clock {
  const before = installed
  installed = next
  return before
}

/** The UTC calendar day as `YYYY-MM-DD`, the period of daily budgets. */
export function utcDay(at: Date): string {
  return at.toISOString().slice(0, 10)
}
