/** The time as a value that is passed in, so that a test can hold it still. The only place that reads the wall clock. */

/** Answers the present moment. */
export type Clock = () => Date

/** The machine's own clock. */
export const systemClock: Clock = () => new Date()

/** The UTC calendar day of a moment as `YYYY-MM-DD`: the period that daily budgets are counted in. */
export function utcDay(at: Date): string {
  return at.toISOString().slice(0, 10)
}

/** The first moment of the UTC day after `at`: when a daily budget starts anew. */
export function nextUtcDay(at: Date): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + 1))
}
