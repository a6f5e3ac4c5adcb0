import { buildViolation, type Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'
import { isWithin, nextOpening, windowText } from '../time-windows.ts'

/** Spends must fall within one of the policy's windows, each in its own time zone. An empty list never opens. */
export function timeWindow({ timeWindows }: Policy, _spend: SpendFacts, now: Date): Violation | undefined {
  if (timeWindows === undefined) return undefined
  const isKnown = !Number.isNaN(now.getTime())
  if (isKnown && timeWindows.some((window) => isWithin(window, now))) return undefined
  return buildViolation('time_window', {
    limit: timeWindows.map(windowText).join('; '),
    requested: isKnown ? now.toISOString() : null,
    resetsAt: isKnown ? (nextOpening(timeWindows, now)?.toISOString() ?? null) : null,
  })
}
