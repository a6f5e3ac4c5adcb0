/** Input of a card for one purchase. */
import { z } from 'zod'
import { isCountry } from '../../core/base/alpha-3.ts'
import { Failure } from '../../core/failures/failure.ts'
import { amountMismatch, decimalAmount, toMoney } from '../../core/money/money.ts'
import { splitWords } from './card-merchant.ts'
import type { SingleUseWish } from './single-use.ts'

const MAX_LIFE_MS = 7 * 24 * 60 * 60_000

export const singleUseInput = z.strictObject({
  amount: decimalAmount
    .superRefine((text, context) => {
      const misfit = amountMismatch(text, 'USD')
      if (misfit !== undefined) context.addIssue({ code: 'custom', message: misfit })
    })
    .describe('USD.'),
  merchant: z
    .strictObject({
      mcc: z
        .string()
        .regex(/^\d{4}$/, 'must be four digits')
        .optional(),
      name: z
        .string()
        .trim()
        .max(60)
        .refine((name) => splitWords(name).length > 0, 'must have a letter or digit')
        .optional()
        .describe('First words of its name.'),
      country: z
        .string()
        .max(2)
        .refine(isCountry, 'must be a country of ISO 3166-1 alpha-2')
        .optional()
        .describe('Two letters.'),
    })
    .optional()
    .describe('The only one.'),
  expiresAt: z.iso.datetime().optional().describe('Within 7 days; default: 1 hour.'),
})

/** @throws Failure `invalid_request` for an amount of zero and an end that is past or too far. */
export function parseWish(
  { amount, merchant = {}, expiresAt }: z.output<typeof singleUseInput>,
  { task, now }: { task: string | null; now: Date },
): SingleUseWish {
  const { units } = toMoney('USD', amount)
  if (units === 0n) throw invalid('singleUse.amount', 'must be above zero')
  const ends = expiresAt === undefined ? null : new Date(expiresAt)
  const lifeMs = ends === null ? 1 : ends.getTime() - now.getTime()
  if (lifeMs <= 0 || lifeMs > MAX_LIFE_MS)
    throw invalid('singleUse.expiresAt', 'must be in the future, at most 7 days ahead')
  const { mcc = null, name = null, country = null } = merchant
  return { units, merchant: { mcc, name, country }, task, expiresAt: ends }
}

function invalid(path: string, message: string): Failure {
  return new Failure('invalid_request', `${path}: ${message}`, { issues: [{ path, message }] })
}
