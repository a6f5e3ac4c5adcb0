import { z } from 'zod'
import { eraseNotes } from '../../../src/books/spending/spend-note.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { lockAccountRow } from '../../../src/people/compliance/kyc.ts'
import { eraseApplications } from '../../../src/people/compliance/kyc-store.ts'
import { eraseTravelRules } from '../../../src/people/compliance/store.ts'
import { eraseRecipients } from '../../../src/rails/banking/recipients.ts'
import { erasePurchases } from '../../../src/rails/buying/store.ts'
import { eraseBrokerageApplication } from '../../../src/rails/investing/brokerage-store.ts'
import { eraseContacts } from '../../../src/records/contacts/store.ts'
import { eraseMessages } from '../../../src/records/notifications/messages.ts'
import { eraseSubscriptions } from '../../../src/records/notifications/subscriptions.ts'
import { eraseRequests } from '../../../src/records/requests/store.ts'

export default defineTool({
  name: 'compliance.personal_data.erase',
  title: 'Erase personal data',
  summary:
    'Erase the data submitted for identity verification and the Travel Rule, what purchases sent and received, the recipients of payouts, contacts, memos and reasons, what requests for money say, and the browsers and channels that get messages; verdicts and payments stay.',
  description: 'It cannot be undone, and needs a fresh second factor.',
  route: 'DELETE /api/compliance/personal-data',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  input: z.strictObject({}),
  output: z.strictObject({ erased: z.literal(true).describe('Always true.') }),
  failures: ['conflict'],
  example: {},
  run: async (context) => {
    const { database, now } = context
    const accountId = requirePerson(context).account.id
    // Data that is being stored is stored before, not after.
    await lockAccountRow(database, accountId)
    await eraseApplications(database, accountId)
    await eraseTravelRules(database, { accountId, at: now })
    await erasePurchases(database, accountId)
    await eraseRecipients(database, accountId)
    await eraseContacts(database, accountId)
    await eraseRequests(database, accountId)
    await eraseNotes(database, accountId)
    await eraseSubscriptions(database, accountId)
    await eraseMessages(database, accountId)
    await eraseBrokerageApplication(database, accountId)
    return { erased: true as const }
  },
})
