/** An agent's allowance on chain as its owner sees it. */
import { z } from 'zod'
import { usdOfMicros } from '../../../policies/usd.ts'
import type { SetAllowance } from './set-allowance.ts'

/** Amounts are decimal strings of US dollars. */
export const allowanceView = z.strictObject({
  agentId: z.string().describe('`key_…`, or `cards` for all cards together.'),
  dailyMax: z.string().describe('What the chain lets it spend a UTC day, as a decimal string of USD.'),
  spent: z.string().describe('What it has spent of that today, as a decimal string of USD.'),
  isOwn: z
    .boolean()
    .describe('False: it shares what all agents without an allowance of their own may spend together.'),
})

/** {@link allowanceView} of what the chain says. */
export function viewAllowance({
  agentId,
  dailyMicros,
  spentMicros,
  isOwn,
}: SetAllowance): z.input<typeof allowanceView> {
  return { agentId, dailyMax: usdOfMicros(dailyMicros), spent: usdOfMicros(spentMicros), isOwn }
}
