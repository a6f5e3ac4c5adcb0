import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { verifiedApplicant } from '../../../src/people/compliance/verified-person.ts'
import { brokerageView, viewBrokerage } from '../../../src/rails/investing/brokerage-request.ts'
import { findBrokerageAccount } from '../../../src/rails/investing/brokerage-store.ts'

export default defineTool({
  name: 'investing.account.get',
  title: 'Account at the broker',
  summary: 'Read the state of the account that the broker keeps for the owner.',
  description:
    'Orders need an `active` one. In the sandbox every account is active. `requirements` lists what POST /api/compliance/kyc still has to know.',
  route: 'GET /api/investing/account',
  who: 'person',
  effect: 'read',
  input: z.strictObject({}),
  output: brokerageView,
  failures: [],
  example: {},
  run: async (context) => {
    const accountId = requirePerson(context).account.id
    if (context.broker.accounts === null) return viewBrokerage(null, null)
    const kept = await findBrokerageAccount(context.database, accountId)
    return viewBrokerage(kept, await verifiedApplicant(context, accountId))
  },
})
