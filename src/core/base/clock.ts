/** The clock is passed in, so that tests can fix the time. The only file that reads the wall clock. */

export type Clock = () => Date

export const systemClock: Clock = () => new Date()

/** The UTC calendar day as `YYYY-MM-DD`, the period of daily budgets. */
export function utcDay(at: Date): string {
  return at.toISOString().slice(0, 10)
}
