/** An agent's on-chain allowance, as its owner sees it. */
import { z } from 'zod'
import { formatUsd } from '../../../../policies/usd.ts'
import type { SetAllowance } from './set-allowance.ts'

/** Amounts are decimal strings in US dollars. */
export const allowanceView = z.strictObject({
  agentId: z.string().describe('`key_…`, or `cards` for all cards combined.'),
  dailyMax: z.string().describe('Maximum the chain lets it spend per UTC day, as a decimal string of USD.'),
  spent: z.string().describe('Amount spent of it today, as a decimal string of USD.'),
  isOwn: z
    .boolean()
    .describe('False: the agent shares the allowance of all agents without one of their own.'),
})
allowanceView.register(z.globalRegistry, { id: 'Allowance' })

export function viewAllowance({
  agentId,
  dailyMicros,
  spentMicros,
  isOwn,
}: SetAllowance): z.input<typeof allowanceView> {
  return { agentId, dailyMax: formatUsd(dailyMicros), spent: formatUsd(spentMicros), isOwn }
}
