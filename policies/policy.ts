/**
 * Policies decide: facts in, a verdict out. This folder is pure and total: no I/O, no clock, no throw; it imports
 * only zod. This file is the spend policy of a key, as the owner writes it and as the rules read it. A field denies
 * what it does not allow; deny beats allow; an empty list allows nothing.
 */
import { z } from 'zod'
import { normalizePayee } from './contact-names.ts'
import { isSellerName, normalizeSeller } from './seller-names.ts'
import { timeWindow } from './time-windows.ts'
import { policyAmount, toUsdMicros } from './usd.ts'

/** Categories of spends. The server derives the category from the operation; callers never set it. */
export const spendCategories = ['transfer', 'gasless', 'card', 'invest', 'swap', 'x402', 'payout'] as const

export type SpendCategory = (typeof spendCategories)[number]

/** Assets that a policy can name. */
export const policyAssets = ['USDC', 'USDT', 'EURC', 'PYUSD', 'USD', 'EUR', 'GBP', 'INR'] as const

/** Chains that a policy can name. */
export const policyChains = [
  'base-sepolia',
  'arbitrum-sepolia',
  'base',
  'arbitrum',
  'optimism',
  'polygon',
  'ethereum',
  'solana',
] as const

const payee = z
  .string()
  .max(120)
  .regex(
    /^(0x[0-9a-fA-F]{40}|rcp_[0-9a-z]{26}|con_[0-9a-z]{26}|contact:.+)$/,
    'must be an EVM address (0x and 40 hex digits), the id of a recipient (rcp_…) or contact:NAME',
  )
  .overwrite(normalizePayee)
  .describe(
    'EVM address, 0x and 40 hex digits, case-insensitive; `rcp_…`, a recipient of payouts; or `contact:NAME`, as that contact is when a spend is decided, whatever it is called by then. `con_…`: a contact that was removed, which is nobody.',
  )

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

/** An origin, or every host below a domain, as {@link normalizeSeller} writes it. */
const sellerName = z
  .string()
  .max(300)
  .regex(
    /^(https?:\/\/[^/?#@\\\s]+|\*\.[^/?#@:\\\s]+)$/i,
    'must be an origin such as https://api.example.com, or *.example.com',
  )
  .overwrite(normalizeSeller)
  .refine(isSellerName, 'must name a host that a URL can have; http only on this machine')

const moment = z.iso.datetime({ error: 'must be an ISO 8601 time in UTC, such as 2026-11-20T09:00:00Z' })

/** A budget over a longer period than a day. */
function longerBudget(period: string, reset: string) {
  return z
    .strictObject({
      max: policyAmount.describe(`Maximum total value of all spends of one ${period}, in USD.`),
      maxCount: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe(`Maximum number of spends in one ${period}. Absent: no limit.`),
    })
    .optional()
    .describe(`Budget of one ${period}; it resets ${reset}. Absent: none.`)
}

const limits = {
  perTransaction: z
    .strictObject({ max: policyAmount.describe('Maximum value of one spend, in USD.') })
    .describe('Cap on a single spend.'),
  dailyBudget: z
    .strictObject({
      max: policyAmount.describe('Maximum total value of all spends of one UTC calendar day, in USD.'),
      maxCount: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe('Maximum number of spends in one UTC calendar day. Absent: no limit.'),
    })
    .describe('Budget of one UTC calendar day; it resets at 00:00 UTC.'),
  weeklyBudget: longerBudget('ISO week (UTC)', 'on Monday at 00:00 UTC'),
  monthlyBudget: longerBudget('UTC calendar month', 'on the first at 00:00 UTC'),
  totalBudget: z
    .strictObject({
      max: policyAmount.describe('Maximum total value of all spends, in USD.'),
      maxCount: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe('Maximum number of spends. Absent: no limit.'),
    })
    .optional()
    .describe('Budget for good, which never resets. Absent: none.'),
  repeatLimit: z
    .strictObject({
      count: z.int().min(1).max(1000).describe('Equal spends that are allowed within `perSec`.'),
      perSec: z.int().min(1).max(2_592_000).describe('Span in which they count, in seconds.'),
    })
    .optional()
    .describe(
      'Spends of equal category, amount and payee. One more pauses the key, and its owner is asked. Spends that the owner approves are not judged. Absent: no limit.',
    ),
}

function sellersSchema<Name extends z.ZodType<string>>(name: Name) {
  return z
    .strictObject({
      allow: z
        .array(name)
        .max(1000)
        .optional()
        .describe('Sellers that may be paid. Absent: all that are not denied.'),
      deny: z
        .array(name)
        .max(1000)
        .optional()
        .describe('Sellers that are never paid, even if `allow` names them.'),
      minDelivered: z
        .strictObject({
          of: z.int().min(1).max(100).describe('Latest paid purchases from the seller that are looked at.'),
          ratio: z.number().gt(0).max(1).describe('Part of them that it must have delivered, such as 0.9.'),
        })
        .optional()
        .describe(
          'Record that a seller must have: of your own purchases, and of all accounts’ once five stand behind it. Absent: none.',
        ),
      unknown: z
        .enum(['allow', 'ask', 'deny'])
        .optional()
        .describe(
          'Sellers with fewer purchases than `minDelivered.of` (1 without it). `ask` needs `approval`. Absent: allow.',
        ),
    })
    .optional()
    .describe('Sellers of purchases: origins such as `https://api.example.com`, or `*.example.com`.')
}

const lists = {
  categories: z
    .strictObject({
      allow: z
        .array(z.enum(spendCategories))
        .max(16)
        .describe('Allowed categories of spends. An empty list denies all.'),
    })
    .describe('Categories of spends.'),
  counterparties: z
    .strictObject({
      allow: z
        .array(payee)
        .max(1000)
        .optional()
        .describe('Payees that may be paid. Absent: all that are not denied.'),
      deny: z
        .array(payee)
        .max(1000)
        .optional()
        .describe('Payees that are never paid, even if `allow` lists them.'),
      newPayeeCooldownSec: z
        .int()
        .min(1)
        .max(2_592_000)
        .optional()
        .describe(
          'Seconds from the first request to pay a new payee, which is denied, until the payee may be paid. Absent: no wait.',
        ),
    })
    .optional()
    .describe('Payees.'),
  sellers: sellersSchema(sellerName),
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
      allow: merchantCodes
        .optional()
        .describe('Allowed merchant categories. Absent: all that are not denied.'),
      deny: merchantCodes.optional().describe('Denied merchant categories, even if `allow` lists them.'),
    })
    .optional()
    .describe('Merchants that a card may pay, by category code (ISO 18245).'),
  symbols: z
    .strictObject({
      allow: tickers.optional().describe('Allowed tickers. Absent: all that are not denied.'),
      deny: tickers.optional().describe('Denied tickers, even if `allow` lists them.'),
    })
    .optional()
    .describe('Stocks and funds that may be traded, by ticker.'),
  timeWindows: z
    .array(timeWindow)
    .max(32)
    .optional()
    .describe('Times at which spends are allowed. Absent: at any time. An empty list denies all.'),
}

const approval = z
  .strictObject({
    above: policyAmount.describe('A spend above this value waits for the owner’s approval, in USD.'),
    ttlSec: z
      .int()
      .min(60)
      .max(604_800)
      .default(86_400)
      .describe('Time for the owner to approve, in seconds; 86,400 by default.'),
  })
  .optional()
  .describe('Spends that need the owner’s approval. Absent: none.')

const members = {
  currency: z.literal('USD').default('USD').describe('Currency of all amounts of the policy: USD.'),
  ...limits,
  ...lists,
  approval,
  notBefore: moment.optional().describe('The policy allows nothing before this time, ISO 8601 UTC.'),
  expiresAt: moment.optional().describe('The policy allows nothing from this time on, ISO 8601 UTC.'),
}

/**
 * The spend policy of a key, with amounts in USD. Unknown members are rejected, so that a misspelt limit is never
 * ignored.
 */
export const spendPolicy = z.strictObject(members).superRefine(refuseContradictions)
spendPolicy.register(z.globalRegistry, { id: 'Policy' })

/** A policy that was stored, perhaps before its sellers were written in one form: a name that no URL can have matches none. */
export const storedPolicy = z
  .strictObject({ ...members, sellers: sellersSchema(z.string().overwrite(normalizeSeller)) })
  .superRefine(refuseContradictions)

/** A spend policy with every amount as a canonical decimal string and every address in lower case. */
export type Policy = z.output<typeof spendPolicy>

function refuseContradictions(policy: Policy, context: z.core.$RefinementCtx<Policy>): void {
  for (const name of ['dailyBudget', 'weeklyBudget', 'monthlyBudget', 'totalBudget'] as const) {
    const budget = policy[name]
    if (budget !== undefined && toUsdMicros(policy.perTransaction.max) > toUsdMicros(budget.max))
      context.addIssue({
        code: 'custom',
        path: ['perTransaction', 'max'],
        message: `must not be over ${name}.max (${budget.max})`,
      })
  }
  // A missing moment parses to NaN, for which the comparison is false.
  if (Date.parse(policy.notBefore ?? '') >= Date.parse(policy.expiresAt ?? ''))
    context.addIssue({ code: 'custom', path: ['expiresAt'], message: 'must be after notBefore' })
}
