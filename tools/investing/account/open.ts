import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { countryCode } from '../../../src/people/compliance/identity-fields.ts'
import { verifiedApplicant } from '../../../src/people/compliance/verified-person.ts'
import { fundingSources } from '../../../src/providers/broker/accounts.ts'
import { openBrokerageAccount } from '../../../src/rails/investing/brokerage-account.ts'
import {
  brokerageView,
  buildApplication,
  disclosures,
  missingFor,
  viewBrokerage,
} from '../../../src/rails/investing/brokerage-request.ts'

export default defineTool({
  name: 'investing.account.open',
  title: 'Open an account at the broker',
  summary: 'Open the owner’s account at the broker from the verified identity.',
  description:
    'Name, date of birth, address, e-mail and phone are those that were verified by POST /api/compliance/kyc; the rest is asked here and kept sealed only until the broker has answered. The broker reviews the application: follow it with GET /api/investing/account. Nothing has to be opened in the sandbox.',
  route: 'POST /api/investing/account',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  ownTransactions: true,
  rail: 'investing',
  input: z.strictObject({
    taxId: z
      .string()
      .regex(/^[\dA-Za-z][\dA-Za-z ./-]{2,39}$/, 'must be a tax id')
      .describe('Tax id of the owner.'),
    taxIdType: z
      .string()
      .regex(/^([A-Z]{3}_[A-Z_]{2,20}|NOT_SPECIFIED)$/, 'must be a type of the broker, such as USA_SSN')
      .describe('The broker’s type of the tax id, such as `USA_SSN`, `DEU_TAX_ID` or `NOT_SPECIFIED`.'),
    taxResidence: countryCode
      .optional()
      .describe('Country of tax residence, ISO 3166-1 alpha-2; the verified country by default.'),
    fundingSources: z
      .array(z.enum(fundingSources))
      .min(1)
      .max(fundingSources.length)
      .describe('Where the money comes from.'),
    disclosures: disclosures.describe('Questions that the broker has to ask.'),
    acceptsAgreements: z
      .literal(true)
      .describe('The owner has read and accepts the broker’s customer, account and margin agreements.'),
  }),
  output: brokerageView,
  failures: ['kyc_required', 'invalid_request', 'provider_unavailable'],
  example: {
    taxId: '666-55-4321',
    taxIdType: 'USA_SSN',
    fundingSources: ['employment_income'],
    disclosures: {
      isControlPerson: false,
      isAffiliatedExchangeOrFinra: false,
      isPoliticallyExposed: false,
      immediateFamilyExposed: false,
    },
    acceptsAgreements: true,
  },
  run: async (context, { acceptsAgreements: _accepted, ...input }) => {
    const accountId = requirePerson(context).account.id
    if (context.broker.accounts === null) return viewBrokerage(null, null)
    const person = await verifiedApplicant(context, accountId)
    // An IPv6 address is known by its network.
    const agreedFrom = (context.clientAddress ?? '127.0.0.1').replace(/\/\d+$/, '')
    const said = buildApplication(person, { ...input, agreedFrom, at: context.now })
    if (said === null) throw notVerified(missingFor(person))
    const kept = await openBrokerageAccount(context, {
      accountId,
      said,
      at: context.now,
      record: (transaction) =>
        recordChange(
          context,
          { action: 'brokerage.applied', object: { kind: 'account', id: accountId } },
          transaction,
        ),
    })
    return viewBrokerage(kept, person)
  },
})

function notVerified(requirements: readonly string[]): Failure {
  return new Failure('kyc_required', `The verified identity lacks ${requirements.join(', ')}.`, {
    hint: 'Send what is missing to POST /api/compliance/kyc, the address by its parts, and wait for the approval.',
  })
}
