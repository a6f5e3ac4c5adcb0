import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { amountMismatch, decimalAmount, stablecoins, toMoney } from '../../src/core/money/money.ts'
import { defineTool } from '../../src/kernel/tool.ts'

const MAX_MICROS = 9_999_999n

export default defineTool({
  name: 'sandbox.prices',
  title: 'Set a price',
  summary: 'Set the market price of a stablecoin, so that a lost peg can be tried.',
  description:
    'Below 0.98 of its currency the token is not counted at par and nothing is paid with it; at 0.98 or more it is again, within a second.',
  route: 'POST /sandbox/prices',
  who: 'public',
  effect: 'write',
  proof: 'none',
  only: 'sandbox',
  ownTransactions: true,
  input: z
    .strictObject({
      token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
      price: decimalAmount.describe('Price in the token’s currency, as a decimal string or number below 10.'),
    })
    .superRefine(({ price, token }, context) => {
      const misfit = amountMismatch(price, token)
      if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['price'], message: misfit })
      else if (toMoney(token, price).units > MAX_MICROS)
        context.addIssue({ code: 'custom', path: ['price'], message: 'must be below 10' })
    }),
  output: z.strictObject({
    token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
    price: z.string().describe('Price that was set, as a decimal string.'),
  }),
  failures: ['not_found'],
  example: { token: 'PYUSD', price: '1' },
  run: async ({ rates, now }, { token, price }) => {
    if (rates.setPrice === undefined)
      throw new Failure('not_found', 'Prices of this deployment are those of its feeds.')
    await rates.setPrice(token, toMoney(token, price).units, now)
    return { token, price }
  },
})
