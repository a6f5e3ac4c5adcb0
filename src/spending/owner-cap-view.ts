/** The owner's cap as it is shown. */
import { z } from 'zod'
import { usdOfMicros } from '../../policies/usd.ts'
import type { OwnerCap } from './owner-cap.ts'

/** The view. */
export const ownerCapView = z.strictObject({
  dailyBudget: z
    .strictObject({ max: z.string().describe('USD, a decimal string.') })
    .nullable()
    .describe('What all keys may spend together on one UTC day; null: no cap but their own.'),
  used: z.string().describe('USD that all keys spent or hold today.'),
  remaining: z.string().nullable().describe('USD left today; null without a cap.'),
  resetsAt: z.string().describe('When the day’s budget starts anew, ISO 8601 UTC.'),
})

/** {@link ownerCapView} of a cap. */
export function viewOwnerCap({ maxMicros, usedMicros, resetsAt }: OwnerCap): z.input<typeof ownerCapView> {
  const left = maxMicros === null ? null : maxMicros - usedMicros
  return {
    dailyBudget: maxMicros === null ? null : { max: usdOfMicros(maxMicros) },
    used: usdOfMicros(usedMicros),
    remaining: left === null ? null : usdOfMicros(left > 0n ? left : 0n),
    resetsAt: resetsAt.toISOString(),
  }
}
