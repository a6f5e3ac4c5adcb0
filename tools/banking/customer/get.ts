import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import {
  bankCustomerView,
  customersOfTheGateway,
  readBankCustomer,
  viewBankCustomer,
} from '../../../src/rails/banking/bank-customer.ts'

export default defineTool({
  name: 'banking.customer.get',
  title: 'Customer of the bank',
  summary: 'Read what the banking provider still needs from the owner, with the links to its pages.',
  description:
    'The links are the owner’s own and are not stored. In the sandbox every owner is approved without pages.',
  route: 'GET /api/banking/customer',
  who: 'person',
  effect: 'read',
  input: z.strictObject({}),
  output: bankCustomerView,
  failures: ['provider_unavailable'],
  example: {},
  run: async (context) => {
    const accountId = requirePerson(context).account.id
    const { customers } = context.bankingProvider
    if (customers === null) return customersOfTheGateway
    return viewBankCustomer(await readBankCustomer({ ...context, customers }, { accountId, at: context.now }))
  },
})
