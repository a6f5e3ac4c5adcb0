import { z } from 'zod'
import { cardChannels } from '../../policies/cards/controls.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { convertRoundingUp, crossRateUp } from '../../src/core/money/cross-rate.ts'
import { findCurrency } from '../../src/core/money/currencies.ts'
import {
  amountMismatch,
  assetDecimals,
  decimalAmount,
  toDecimal,
  toMoney,
} from '../../src/core/money/money.ts'
import type { Context } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findAnyCard } from '../../src/rails/cards/store.ts'

/** One million US dollars. */
const MAX_CENTS = 100_000_000n

const currencies = ['USD', 'EUR', 'GBP', 'INR'] as const

const purchase = z
  .strictObject({
    cardId: z.string().max(64).describe('`card_…`'),
    amount: decimalAmount.describe('Requested amount, as a decimal of the currency.'),
    currency: z.enum(currencies).default('USD').describe('Currency of the merchant; USD by default.'),
    merchant: z.string().trim().min(1).max(60).default('Sandbox Store').describe('Name of the merchant.'),
    mcc: z
      .string()
      .regex(/^\d{4}$/, 'must be four digits')
      .default('5999')
      .describe('Merchant category code (ISO 18245).'),
    country: z
      .string()
      .regex(/^[A-Z]{3}$/, 'must be three capital letters')
      .default('USA')
      .describe('Country of the merchant, ISO 3166-1 alpha-3; `USA` by default.'),
    token: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe('`token` of an earlier purchase, to raise its authorization by `amount`.'),
    channel: z
      .enum([...cardChannels, 'chip'])
      .default('ecommerce')
      .describe('Payment channel; `ecommerce` by default.'),
    clear: z
      .boolean()
      .default(true)
      .describe('False stops after the authorization, without clearing. Default: true.'),
  })
  .superRefine(({ amount, currency }, context) => {
    const misfit = amountMismatch(amount, currency)
    if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['amount'], message: misfit })
  })

export default defineTool({
  name: 'sandbox.authorizations',
  title: 'Simulate a purchase',
  summary: 'Simulate a purchase with a sandbox card by sending the signed webhooks of the card network.',
  description:
    'The gateway decides as for a real card: state, limits, policy, then the money. The answer has its decision. `clear` also sends the clearing.',
  route: 'POST /sandbox/authorizations',
  who: 'public',
  effect: 'write',
  proof: 'none',
  only: 'sandbox',
  ownTransactions: true,
  input: purchase,
  output: z.strictObject({
    token: z.string().describe('Transaction token of the processor.'),
    result: z
      .string()
      .describe('Result code sent to the processor: `APPROVED`, or the reason for a decline.'),
    amount: z.string().describe('Requested amount: USD, as a decimal string.'),
    approved: z.string().describe('Approved amount: USD, as a decimal string.'),
    cleared: z.boolean().describe('True if the purchase was also cleared.'),
  }),
  failures: ['not_found', 'provider_unavailable', 'rates_unavailable'],
  example: {
    cardId: 'card_01h455vb4pex5vsknk084sn02q',
    amount: '12.50',
    merchant: 'Corner Shop',
    mcc: '5411',
  },
  run: async (context, { cardId, amount, currency, clear, token: raises = null, ...details }) => {
    const { play } = context.cardProcessor
    const card = await findAnyCard(context.database, cardId)
    if (card === undefined || play === null) throw new Failure('not_found', 'There is no such sandbox card.')
    const units = await convertToCents(context, toMoney(currency, amount).units, currency)
    const outcome = await play({
      ...details,
      cardToken: card.token,
      units,
      cleared: clear ? units : null,
      raises,
    })
    return {
      token: outcome.token,
      result: outcome.result,
      amount: toDecimal({ asset: 'USD', units }),
      approved: toDecimal({ asset: 'USD', units: outcome.approved }),
      cleared: outcome.isCleared,
    }
  },
})

/** Converts like the card network, rounding up. @throws Failure `invalid_request`, `rates_unavailable`. */
async function convertToCents(
  { rates, now }: Context,
  units: bigint,
  currency: (typeof currencies)[number],
): Promise<bigint> {
  const table = await rates.latest(now)
  const [from, dollar] = [findCurrency(table, currency), findCurrency(table, 'USD')]
  if (from === undefined || dollar === undefined)
    throw new Failure('rates_unavailable', `There is no rate from ${currency} to USD.`, { retryAfter: 60 })
  const cents =
    currency === 'USD'
      ? units
      : convertRoundingUp(units, assetDecimals[currency], crossRateUp(from, dollar), assetDecimals.USD)
  if (cents > MAX_CENTS)
    throw new Failure('invalid_request', 'amount: must not exceed 1000000 USD', {
      issues: [{ path: 'amount', message: 'must not exceed 1000000 USD' }],
    })
  return cents
}
