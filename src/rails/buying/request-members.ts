/** Members of a request that names what is to be bought. */
import { z } from 'zod'
import { amountMismatch, decimalAmount } from '../../core/money/money.ts'
import { payableAssets } from './terms.ts'

export const requestMembers = {
  url: z.string().min(1).max(2048).describe('URL to buy.'),
  method: z.enum(['GET', 'POST']).optional().describe('Default: GET.'),
  body: z
    .union([z.string().max(65_536), z.looseObject({})])
    .optional()
    .describe('Of a POST: text, or an object to send as JSON; 64 KiB.'),
}

/** Members of a request to buy, or of the intent to sign for it. */
export const purchaseMembers = {
  ...requestMembers,
  headers: z
    .record(z.string().max(64), z.string().max(1024))
    .optional()
    .describe('Accept, Accept-Language, Content-Type, `X-…`; no credentials.'),
  maxAmount: decimalAmount.describe('Most you accept to pay.'),
  asset: z.enum(payableAssets).default('USDC').describe('Asset to pay in.'),
}

/** Reports an amount with more digits than its asset has. */
export function refinePurchase(
  { maxAmount, asset }: { maxAmount: string; asset: (typeof payableAssets)[number] },
  context: z.core.$RefinementCtx,
): void {
  const misfit = amountMismatch(maxAmount, asset)
  if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['maxAmount'], message: misfit })
}
