/**
 * Policies decide: facts in, a verdict out. This folder is pure and total: no I/O, no clock, no throw; it imports nothing of
 * ours, only zod. This file is the spend policy that a key carries, as the owner writes it and as the rules read it.
 * What a field does not allow is denied; deny beats allow; an empty list allows nothing.
 */
import { z } from 'zod'
import { timeWindow } from './time-windows.ts'
import { policyAmount, usdMicrosOf } from './usd.ts'

/** What a spend can be for. The server derives it from the operation; a caller never names it. */
export const spendCategories = ['transfer', 'gasless', 'card', 'invest', 'swap', 'x402'] as const

/** One category of spend. */
export type SpendCategory = (typeof spendCategories)[number]

/** The assets that a policy can name. */
export const policyAssets = ['USDC', 'USDT', 'EURC', 'PYUSD', 'USD', 'EUR', 'GBP', 'INR'] as const

/** The chains that a policy can name. */
export const policyChains = [
  'base-sepolia',
  'base',
  'arbitrum',
  'optimism',
  'polygon',
  'ethereum',
  'solana',
] as const

const payee = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be an EVM address: 0x and 40 hex digits')
  .toLowerCase()
  .describe('EVM address, 0x and 40 hex digits; upper and lower case are the same.')

const merchantCodes = z.array(z.string().regex(/^\d{4}$/, 'must be four digits')).max(1000)
const tickers = z
  .array(
    z
      .string()
      .trim()
      .toUpperCase()
      .regex(/^[A-Z0-9.]{1,12}$/, 'must be a ticker'),
  )
  .max(1000)

const moment = z.iso.datetime({ error: 'must be an ISO 8601 time in UTC, such as 2026-11-20T09:00:00Z' })

const limits = {
  perTransaction: z
    .strictObject({ max: policyAmount.describe('Most that one spend may be worth, in USD.') })
    .describe('The cap on a single spend.'),
  dailyBudget: z
    .strictObject({
      max: policyAmount.describe(
        'Most that all spends of one UTC calendar day may be worth together, in USD.',
      ),
      maxCount: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe('Most spends in one UTC calendar day, as a count. Absent: not counted.'),
    })
    .describe('The budget of one UTC calendar day; it starts anew at 00:00 UTC.'),
}

const lists = {
  categories: z
    .strictObject({
      allow: z
        .array(z.enum(spendCategories))
        .max(16)
        .describe('What may be spent on. An empty list denies all.'),
    })
    .describe('What may be spent on.'),
  counterparties: z
    .strictObject({
      allow: z
        .array(payee)
        .max(1000)
        .optional()
        .describe('Only these may be paid. Absent: anyone not denied.'),
      deny: z
        .array(payee)
        .max(1000)
        .optional()
        .describe('These are never paid, even where `allow` lists them.'),
      newPayeeCooldownSec: z
        .int()
        .min(1)
        .max(2_592_000)
        .optional()
        .describe(
          'Seconds from the first request to pay somebody, which is refused, until they may be paid. Absent: no wait.',
        ),
    })
    .optional()
    .describe('Who may be paid.'),
  assets: z
    .array(z.enum(policyAssets))
    .max(16)
    .optional()
    .describe('The only assets that may be spent. Absent: any. An empty list denies all.'),
  chains: z
    .array(z.enum(policyChains))
    .max(16)
    .optional()
    .describe('The only chains to spend on, by name. Absent: any. An empty list denies all.'),
  mcc: z
    .strictObject({
      allow: merchantCodes.optional().describe('Only merchants of these categories. Absent: any not denied.'),
      deny: merchantCodes.optional().describe('Never merchants of these, even where `allow` lists them.'),
    })
    .optional()
    .describe('Merchants that a card may pay, by category code (ISO 18245).'),
  symbols: z
    .strictObject({
      allow: tickers.optional().describe('Only these. Absent: any not denied.'),
      deny: tickers.optional().describe('Never these, even where `allow` lists them.'),
    })
    .optional()
    .describe('What may be invested in, by ticker.'),
  timeWindows: z
    .array(timeWindow)
    .max(32)
    .optional()
    .describe('When may be spent. Absent: at any time. An empty list denies all.'),
}

const approval = z
  .strictObject({
    above: policyAmount.describe('A spend worth more than this waits for the owner’s approval, in USD.'),
    ttlSec: z
      .int()
      .min(60)
      .max(604_800)
      .default(86_400)
      .describe('How long the owner may take to approve, in seconds.'),
  })
  .optional()
  .describe('What the owner must approve. Absent: nothing.')

/** The spend policy of a key, with amounts in USD. What is not named here is refused, so that no limit is misspelt away. */
export const spendPolicy = z
  .strictObject({
    currency: z
      .literal('USD')
      .default('USD')
      .describe('The currency that all amounts of the policy are in: USD.'),
    ...limits,
    ...lists,
    approval,
    notBefore: moment.optional().describe('The policy allows nothing before this moment, ISO 8601 UTC.'),
    expiresAt: moment.optional().describe('The policy allows nothing from this moment on, ISO 8601 UTC.'),
  })
  .superRefine(refuseContradictions)

/** A spend policy with every amount as a canonical decimal string and every address in lower case. */
export type Policy = z.output<typeof spendPolicy>

function refuseContradictions(policy: Policy, context: z.core.$RefinementCtx<Policy>): void {
  if (usdMicrosOf(policy.perTransaction.max) > usdMicrosOf(policy.dailyBudget.max))
    context.addIssue({
      code: 'custom',
      path: ['perTransaction', 'max'],
      message: `must not be over dailyBudget.max (${policy.dailyBudget.max})`,
    })
  // A moment that is not stated is no number, and neither before nor after another.
  if (Date.parse(policy.notBefore ?? '') >= Date.parse(policy.expiresAt ?? ''))
    context.addIssue({ code: 'custom', path: ['expiresAt'], message: 'must be after notBefore' })
}
