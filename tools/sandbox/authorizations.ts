import { z } from 'zod'
import { cardChannels } from '../../policies/cards/controls.ts'
import { findAnyCard } from '../../src/cards/store.ts'
import { Failure } from '../../src/failures/failure.ts'
import type { Context } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { convertRoundingUp, crossRateUp } from '../../src/money/cross-rate.ts'
import { currencyOf } from '../../src/money/currencies.ts'
import { amountMismatch, assetDecimals, decimalAmount, decimalOf, moneyOf } from '../../src/money/money.ts'

/** A million US dollars: enough for any experiment. */
const LARGEST_CENTS = 100_000_000n

const currencies = ['USD', 'EUR', 'GBP', 'INR'] as const

const purchase = z
  .strictObject({
    cardId: z.string().max(64).describe('`card_…`'),
    amount: decimalAmount.describe('How much the merchant asks for, as a decimal of the currency.'),
    currency: z.enum(currencies).default('USD').describe('The merchant’s currency.'),
    merchant: z.string().trim().min(1).max(60).default('Sandbox Store').describe('Name of the merchant.'),
    mcc: z
      .string()
      .regex(/^\d{4}$/, 'must be four digits')
      .default('5999')
      .describe('Merchant category code (ISO 18245).'),
    channel: z
      .enum([...cardChannels, 'chip'])
      .default('ecommerce')
      .describe('How it is paid.'),
    clear: z.boolean().default(true).describe('false: approved and held, not yet cleared.'),
  })
  .superRefine(({ amount, currency }, context) => {
    const misfit = amountMismatch(amount, currency)
    if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['amount'], message: misfit })
  })

export default defineTool({
  name: 'sandbox.authorizations',
  title: 'Buy something',
  summary: 'Play a purchase with a sandbox card: sends the signed webhooks that the card network would send.',
  route: 'POST /sandbox/authorizations',
  who: 'public',
  scopes: [],
  effect: 'write',
  mcp: false,
  only: 'sandbox',
  ownTransactions: true,
  input: purchase,
  output: z.strictObject({
    token: z.string().describe('The processor’s name of the transaction.'),
    result: z
      .string()
      .describe('What the gateway answered, in the processor’s words: `APPROVED`, or why not.'),
    amount: z.string().describe('What was asked for: USD, as a decimal string.'),
    approved: z.string().describe('What was approved: USD, as a decimal string.'),
    cleared: z.boolean().describe('Whether it was cleared too.'),
  }),
  failures: ['not_found', 'provider_unavailable', 'rates_unavailable'],
  example: {
    cardId: 'card_01h455vb4pex5vsknk084sn02q',
    amount: '12.50',
    merchant: 'Corner Shop',
    mcc: '5411',
  },
  run: async (context, { cardId, amount, currency, clear, ...told }) => {
    const { play } = context.cardProcessor
    const card = await findAnyCard(context.database, cardId)
    if (card === undefined || play === null) throw new Failure('not_found', 'There is no such sandbox card.')
    const units = await centsOf(context, moneyOf(currency, amount).units, currency)
    const outcome = await play({ ...told, cardToken: card.token, units, cleared: clear ? units : null })
    return {
      token: outcome.token,
      result: outcome.result,
      amount: decimalOf({ asset: 'USD', units }),
      approved: decimalOf({ asset: 'USD', units: outcome.approved }),
      cleared: outcome.isCleared,
    }
  },
})

/** The network's conversion, rounded up. @throws Failure `invalid_request`, `rates_unavailable`. */
async function centsOf(
  { rates, now }: Context,
  units: bigint,
  currency: (typeof currencies)[number],
): Promise<bigint> {
  const table = await rates.latest(now)
  const [from, dollar] = [currencyOf(table, currency), currencyOf(table, 'USD')]
  if (from === undefined || dollar === undefined)
    throw new Failure('rates_unavailable', `There is no rate from ${currency} to USD.`, { retryAfter: 60 })
  const cents =
    currency === 'USD'
      ? units
      : convertRoundingUp(units, assetDecimals[currency], crossRateUp(from, dollar), assetDecimals.USD)
  if (cents > LARGEST_CENTS)
    throw new Failure('invalid_request', 'amount: must not be worth over 1000000 USD', {
      issues: [{ path: 'amount', message: 'must not be worth over 1000000 USD' }],
    })
  return cents
}
