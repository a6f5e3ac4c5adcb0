import { z } from 'zod'
import { findVirtualAccount } from '../../src/banking/store.ts'
import { Failure } from '../../src/failures/failure.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { amountMismatch, decimalAmount, decimalOf, moneyOf } from '../../src/money/money.ts'

/** Enough for any experiment. */
const LARGEST = 1_000_000n

export default defineTool({
  name: 'sandbox.deposits',
  title: 'Pay into a virtual account',
  summary: 'Play a bank deposit: sends the signed webhooks that the banking provider would send.',
  route: 'POST /sandbox/deposits',
  who: 'public',
  scopes: [],
  effect: 'write',
  mcp: false,
  only: 'sandbox',
  ownTransactions: true,
  input: z.strictObject({
    accountId: z.string().max(64).describe('`va_…`: the virtual account.'),
    amount: decimalAmount.describe('How much, as a decimal of the account’s currency; at most 1000000.'),
  }),
  output: z.strictObject({
    depositId: z.string().describe('The provider’s name of the deposit.'),
    amount: z.string().describe('What was paid in, as a decimal string.'),
    currency: z.string().describe('Currency of the account.'),
  }),
  failures: ['not_found', 'conflict', 'provider_unavailable'],
  example: { accountId: 'va_01h455vb4pex5vsknk084sn02q', amount: '250' },
  run: async ({ database, bankingProvider }, { accountId, amount }) => {
    const account = await findVirtualAccount(database, { id: accountId })
    if (account === undefined || bankingProvider.play === null)
      throw new Failure('not_found', 'There is no such virtual account in this sandbox.')
    if (account.status !== 'active')
      throw new Failure('conflict', `The virtual account is ${account.status}: no bank pays into it.`)
    const { currency, providerId } = account
    const isOver =
      amountMismatch(amount, currency) === undefined && moneyOf(currency, amount).units > LARGEST * 100n
    const misfit = isOver ? `must not be over ${LARGEST}` : amountMismatch(amount, currency)
    if (misfit !== undefined)
      throw new Failure('invalid_request', `amount: ${misfit}`, {
        issues: [{ path: 'amount', message: misfit }],
      })
    const depositId = await bankingProvider.play({ providerId, amount, currency })
    return { depositId, amount: decimalOf(moneyOf(currency, amount)), currency }
  },
})
