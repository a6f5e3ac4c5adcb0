import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { verifiedApplicant } from '../../../src/people/compliance/verified-person.ts'
import {
  bankCustomerView,
  customersOfTheGateway,
  readBankCustomer,
  startBankCustomer,
  viewBankCustomer,
} from '../../../src/rails/banking/bank-customer.ts'

export default defineTool({
  name: 'banking.customer.start',
  title: 'Become a customer of the bank',
  summary: 'Start the banking provider’s own verification of the owner, and read the links to its pages.',
  description:
    'Bank accounts can be opened once it is `approved`: the owner proves the identity on one page and accepts the terms on the other. Name and e-mail address are those that were verified by POST /api/compliance/kyc. Called again, it answers the same verification. Nothing has to be done in the sandbox.',
  route: 'POST /api/banking/customer',
  who: 'person',
  effect: 'write',
  proof: 'none',
  ownTransactions: true,
  rail: 'bank-deposit',
  // Links of the person: stored nowhere.
  shownOnce: ['kycUrl', 'termsUrl'],
  input: z.strictObject({}),
  output: bankCustomerView,
  failures: ['kyc_required', 'conflict', 'provider_unavailable'],
  example: {},
  run: async (context) => {
    const accountId = requirePerson(context).account.id
    const { customers } = context.bankingProvider
    if (customers === null) return customersOfTheGateway
    const parts = { ...context, customers }
    const known = await readBankCustomer(parts, { accountId, at: context.now })
    if (known !== null) return viewBankCustomer(known)
    const { firstName, lastName, email } = (await verifiedApplicant(context, accountId)) ?? {}
    if (!firstName || !lastName || !email) throw notVerified()
    const name = `${firstName} ${lastName}`
    const found = await startBankCustomer(parts, {
      ...{ accountId, name, email, at: context.now },
      record: (transaction) =>
        recordChange(
          context,
          { action: 'bank_customer.started', object: { kind: 'account', id: accountId } },
          transaction,
        ),
    })
    return viewBankCustomer(found)
  },
})

function notVerified(): Failure {
  return new Failure('kyc_required', 'The bank needs a verified name and an e-mail address.', {
    hint: 'POST /api/compliance/kyc with applicant.email, wait for the approval, then send this request again.',
  })
}
