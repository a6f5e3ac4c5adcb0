/** Members shared by payouts and their intents. */
import { z } from 'zod'
import { amountMismatch, decimalAmount } from '../money/money.ts'

export const payoutMembers = {
  recipientId: z.string().max(64).describe('`rcp_…`: saved bank account, from GET /api/banking/recipients.'),
  amount: decimalAmount.describe(
    'Amount that leaves the account, with the fee, as a decimal string or number: 1 to 1,000,000.',
  ),
  reference: z
    .string()
    .trim()
    .regex(/^[A-Za-z0-9 .,'()/?:+-]{1,35}$/, "must be 1 to 35 letters, digits, spaces or .,'()/?:+-")
    .optional()
    .describe('Reference that the recipient sees, where its bank shows one; 1 to 35 characters.'),
}

/** Adds an issue when the amount does not fit the asset. */
export function refinePayout(
  { amount, asset }: { amount: string; asset: 'USD' | 'USDC' },
  context: z.core.$RefinementCtx,
): void {
  const misfit = amountMismatch(amount, asset)
  if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['amount'], message: misfit })
}
