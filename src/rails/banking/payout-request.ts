/** Members shared by payouts, their quotes and their intents. */
import { z } from 'zod'
import { amountMismatch, decimalAmount } from '../../core/money/money.ts'

/** Fraction digits of every currency that is paid out. */
const CURRENCY_DIGITS = 2

/** Assets that are paid out: cash at the bank, or stablecoins of the wallet. */
export const payoutAssets = ['USD', 'USDC'] as const

export type PayoutAsset = (typeof payoutAssets)[number]

export const quoteMembers = {
  recipientId: z.string().max(120).describe('`rcp_…`, from GET /api/banking/recipients, or `contact:NAME`.'),
  amount: decimalAmount.optional().describe('Amount including the fee, 1 to 1,000,000.'),
  recipientAmount: decimalAmount
    .optional()
    .describe('In place of `amount`: what arrives, in the recipient’s currency.'),
}

export const fromMember = z
  .enum(['any', 'chain'])
  .optional()
  .describe('`any`: USDC of other chains is moved first. Default: `chain`.')

export const payoutMembers = {
  ...quoteMembers,
  quoteId: z
    .string()
    .max(64)
    .optional()
    .describe('In place of both: a quote from POST /api/banking/payouts/quote.'),
  reference: z
    .string()
    .trim()
    .regex(/^[A-Za-z0-9 .,'()/?:+-]{1,35}$/, "must be 1 to 35 letters, digits, spaces or .,'()/?:+-")
    .optional()
    .describe('Shown to the recipient, 1 to 35 characters.'),
}

/** The amount of a payout as requested, which {@link refinePayout} has checked. */
export interface PayoutAmount {
  readonly asset?: PayoutAsset | undefined
  readonly amount?: string | undefined
  readonly recipientAmount?: string | undefined
  readonly quoteId?: string | undefined
  readonly from?: 'any' | 'chain' | undefined
}

/** Adds issues unless exactly one member says the amount, and it fits its asset or currency. @param names of the members. */
function refineAmount(names: string) {
  return (
    { asset: said, amount, recipientAmount, quoteId, from }: PayoutAmount,
    context: z.core.$RefinementCtx,
  ): void => {
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    const asset = said ?? 'USD'
    const ways = [amount, recipientAmount, quoteId].filter((one) => one !== undefined)
    if (ways.length !== 1) refuse('amount', `send exactly one of ${names}`)
    if (from === 'any' && asset === 'USD' && (said !== undefined || quoteId === undefined))
      refuse('from', 'is for payouts of USDC')
    const misfit = amount === undefined ? undefined : amountMismatch(amount, asset)
    if (misfit !== undefined) refuse('amount', misfit)
    if ((recipientAmount?.split('.')[1]?.length ?? 0) > CURRENCY_DIGITS)
      refuse('recipientAmount', `must have at most ${CURRENCY_DIGITS} fraction digits`)
  }
}

export const refineQuote = refineAmount('amount or recipientAmount')

export const refinePayout = refineAmount('amount, recipientAmount or quoteId')
