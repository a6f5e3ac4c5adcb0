/** Members of a request that names what is to be bought. */
import { z } from 'zod'
import { amountMismatch, decimalAmount } from '../../core/money/money.ts'
import { methods, payableAssets } from './terms.ts'

const MAX_BODY = 4 * 1024 * 1024
const MAX_FIELD = 8_192

/** Limit of the JSON around a body of 4 MiB in base64. */
export const MAX_PURCHASE_BYTES = 6 * 1024 * 1024

/** Members that a key does not need, or that a model must not see. */
export const unlistedMembers = ['authorization', 'bodyBase64'] as const

const body = {
  body: z
    .union([z.string().max(MAX_BODY), z.looseObject({})])
    .optional()
    .describe('Text, or an object to send as JSON; not for GET.'),
  bodyBase64: z
    .string()
    .max(Math.ceil(MAX_BODY / 3) * 4)
    .optional()
    .describe('Bytes in base64, instead of `body`; 4 MiB of them.'),
}

const login = {
  headers: z
    .record(z.string().max(64), z.string().max(MAX_FIELD))
    .optional()
    .describe('Fields for the seller.'),
  authorization: z
    .strictObject({
      type: z.literal('bearer').describe('Scheme of the login.'),
      token: z.string().min(1).max(MAX_FIELD).describe('Token of the login.'),
    })
    .optional()
    .describe(
      'Your login at the seller, sent as `Authorization`. Never stored, logged or shown, as cookies and API keys in `headers`: a repeated or approved call needs them again.',
    ),
}

export const requestMembers = {
  url: z.string().min(1).max(2048).describe('URL to buy.'),
  method: z.enum(methods).optional().describe('Default: GET.'),
  ...body,
  ...login,
}

/** Members of a request to buy, or of the intent to sign for it. */
export const purchaseMembers = {
  ...requestMembers,
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
