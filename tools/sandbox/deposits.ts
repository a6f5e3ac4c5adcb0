import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { amountMismatch, decimalAmount, toDecimal, toMoney } from '../../src/core/money/money.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findVirtualAccount } from '../../src/rails/banking/store.ts'

/** Maximum deposit in whole units of the currency. */
const MAX_AMOUNT = 1_000_000n

export default defineTool({
  name: 'sandbox.deposits',
  title: 'Pay into a virtual account',
  summary: 'Simulate a bank deposit by sending the signed webhooks of the banking provider.',
  description:
    'The deposit arrives in the states that the provider sends, and is screened: `from` names the sender.',
  route: 'POST /sandbox/deposits',
  who: 'public',
  effect: 'write',
  proof: 'none',
  only: 'sandbox',
  ownTransactions: true,
  input: z.strictObject({
    accountId: z.string().max(64).describe('`va_…`: virtual account that receives the deposit.'),
    amount: decimalAmount.describe('Amount as a decimal of the account’s currency; at most 1000000.'),
    from: z
      .string()
      .trim()
      .min(1)
      .max(140)
      .optional()
      .describe(
        'Sender: a name, or an EVM address; both are screened. Default: the bank does not name it. Addresses that end in 8888 need a review, in 9999 they are blocked.',
      ),
    reference: z
      .string()
      .trim()
      .min(1)
      .max(140)
      .optional()
      .describe('Text that the payer writes to it, such as the `reference` of a request for money.'),
  }),
  output: z.strictObject({
    depositId: z.string().describe('Deposit id of the provider.'),
    amount: z.string().describe('Deposited amount, as a decimal string.'),
    currency: z.string().describe('Currency of the account.'),
  }),
  failures: ['not_found', 'conflict', 'provider_unavailable'],
  example: { accountId: 'va_01h455vb4pex5vsknk084sn02q', amount: '250' },
  run: async ({ database, bankingProvider }, { accountId, amount, from = null, reference = null }) => {
    const account = await findVirtualAccount(database, { id: accountId })
    if (account === undefined || bankingProvider.play === null)
      throw new Failure('not_found', 'There is no such virtual account in this sandbox.')
    if (account.status !== 'active')
      throw new Failure('conflict', `The virtual account is ${account.status}: it does not accept deposits.`)
    const { currency, providerId } = account
    const isOver =
      amountMismatch(amount, currency) === undefined && toMoney(currency, amount).units > MAX_AMOUNT * 100n
    const misfit = isOver ? `must not be over ${MAX_AMOUNT}` : amountMismatch(amount, currency)
    if (misfit !== undefined)
      throw new Failure('invalid_request', `amount: ${misfit}`, {
        issues: [{ path: 'amount', message: misfit }],
      })
    const depositId = await bankingProvider.play({ providerId, amount, currency, from, memo: reference })
    return { depositId, amount: toDecimal(toMoney(currency, amount)), currency }
  },
})
