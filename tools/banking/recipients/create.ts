import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { countryCode, isPlainLine, personName } from '../../../src/people/compliance/identity-fields.ts'
import { payoutCurrencies } from '../../../src/providers/banking/port.ts'
import { accountIssues, accountRequest, toAccountNumber } from '../../../src/rails/banking/account-request.ts'
import {
  insertRecipient,
  recipientView,
  registerRecipient,
  requireRecipient,
  viewRecipient,
} from '../../../src/rails/banking/recipients.ts'
import { lockOrders } from '../../../src/rails/banking/store.ts'

const line = (max: number) =>
  z.string().trim().min(1).max(max).refine(isPlainLine, 'must not hold control characters')

export default defineTool({
  name: 'banking.recipients.create',
  title: 'Add a recipient',
  summary: 'Add a bank account in USD, EUR or GBP that money can be paid out to.',
  description:
    'The number must have valid check digits; the bank may still not know it. It is stored sealed, and only its last four characters are shown. `pending`: the banking provider has not confirmed it yet; the first payout tries again. `payout_rejected`: the provider does not accept it, and nothing is stored. Sandbox: payouts to an account number that ends in 0000 wait for POST /sandbox/payouts, and one that ends in 0001 is not accepted.',
  route: 'POST /api/banking/recipients',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  ownTransactions: true,
  rail: 'bank-payout',
  // Personal data is stored sealed in one place only, and not with the idempotent answers.
  shownOnce: ['name'],
  input: z
    .strictObject({
      currency: z.enum(payoutCurrencies).describe('Currency of the bank account.'),
      name: personName.describe('Name of the account’s holder: a person or a company.'),
      isCompany: z.boolean().default(false).describe('True for a company. Default: false.'),
      country: countryCode.describe('Country of the recipient, ISO 3166-1 alpha-2.'),
      account: accountRequest.describe(
        'The bank account: `routingNumber` and `accountNumber` for USD, `iban` for EUR, `sortCode` and `accountNumber` for GBP.',
      ),
      address: z
        .strictObject({
          line1: line(70).describe('Street and number.'),
          line2: line(70).optional().describe('Second line.'),
          city: line(70).describe('City.'),
          region: line(35).optional().describe('State or region; two letters in the United States.'),
          postalCode: line(16).optional().describe('Postal code.'),
          country: countryCode.optional().describe('ISO 3166-1 alpha-2; the recipient’s by default.'),
        })
        .optional()
        .describe('Postal address of the recipient; some banks require it.'),
    })
    .superRefine(({ currency, account }, context) => {
      for (const { member, message } of accountIssues(currency, account))
        context.addIssue({ code: 'custom', path: ['account', member], message })
    }),
  output: recipientView,
  failures: ['payout_rejected', 'conflict'],
  example: {
    currency: 'USD',
    name: 'Grace Hopper',
    country: 'US',
    account: { routingNumber: '021000021', accountNumber: '123456789', type: 'checking' },
  },
  run: async (context, { currency, name, isCompany, country, account, address }) => {
    const accountId = requirePerson(context).account.id
    const at = context.now
    const added = await context.database.transaction(async (database) => {
      await lockOrders(database, accountId)
      const recipient = await insertRecipient(
        { ...context, database },
        {
          id: context.newId('rcp', at),
          accountId,
          currency,
          country,
          details: {
            name,
            isCompany,
            account: toAccountNumber(currency, account),
            address:
              address === undefined
                ? null
                : {
                    line1: address.line1,
                    line2: address.line2 ?? null,
                    city: address.city,
                    region: address.region ?? null,
                    postalCode: address.postalCode ?? null,
                    country: address.country ?? country,
                  },
          },
          at,
        },
      )
      await recordChange(
        context,
        {
          action: 'recipient.added',
          object: { kind: 'recipient', id: recipient.id },
          after: { currency, country },
        },
        database,
      )
      return recipient
    })
    await registerRecipient(context, added).catch(async (error: unknown) => {
      if (!(error instanceof Failure)) throw error
      if (error.code === 'payout_rejected') {
        await context.database.kysely.deleteFrom('payout_recipient').where('id', '=', added.id).execute()
        throw error
      }
      context.log.warn({ err: error, recipientId: added.id }, 'a recipient is not registered yet')
    })
    return viewRecipient(await requireRecipient(context, { id: added.id, accountId }))
  },
})
