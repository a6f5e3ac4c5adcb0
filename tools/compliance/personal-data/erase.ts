import { z } from 'zod'
import { eraseApplications } from '../../../src/compliance/kyc-store.ts'
import { eraseTravelRules } from '../../../src/compliance/store.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { erasePurchases } from '../../../src/purchases/store.ts'

export default defineTool({
  name: 'compliance.personal_data.erase',
  title: 'Erase personal data',
  summary:
    'Erase the data submitted for identity verification and the Travel Rule, and what purchases sent and received; verdicts and payments stay.',
  route: 'DELETE /api/compliance/personal-data',
  who: 'person',
  scopes: [],
  effect: 'write',
  stepUp: true,
  mcp: false,
  input: z.strictObject({}),
  output: z.strictObject({ erased: z.literal(true).describe('Always true.') }),
  failures: [],
  example: {},
  run: async (context) => {
    const { database, now } = context
    const accountId = personOf(context).account.id
    await eraseApplications(database, accountId)
    await eraseTravelRules(database, { accountId, at: now })
    await erasePurchases(database, accountId)
    return { erased: true as const }
  },
})
