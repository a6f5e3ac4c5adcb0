/** The owner's cap, as shown to clients. */
import { z } from 'zod'
import { usdOfMicros } from '../../policies/usd.ts'
import type { OwnerCap } from './owner-cap.ts'

export const ownerCapView = z.strictObject({
  dailyBudget: z
    .strictObject({ max: z.string().describe('USD, a decimal string.') })
    .nullable()
    .describe('Maximum that all keys together may spend per UTC day; null: only the caps of the keys apply.'),
  used: z.string().describe('USD that all keys spent or hold today, as a decimal string.'),
  remaining: z.string().nullable().describe('USD left today, as a decimal string; null without a cap.'),
  resetsAt: z.string().describe('When the day’s budget resets, ISO 8601 UTC.'),
})

export function viewOwnerCap({ maxMicros, usedMicros, resetsAt }: OwnerCap): z.input<typeof ownerCapView> {
  const left = maxMicros === null ? null : maxMicros - usedMicros
  return {
    dailyBudget: maxMicros === null ? null : { max: usdOfMicros(maxMicros) },
    used: usdOfMicros(usedMicros),
    remaining: left === null ? null : usdOfMicros(left > 0n ? left : 0n),
    resetsAt: resetsAt.toISOString(),
  }
}
