import { personOf } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import {
  changeNotificationSettings,
  notificationSettings,
  readNotificationSettings,
} from '../../../src/notifications/settings.ts'

export default defineTool({
  name: 'notifications.settings.update',
  title: 'Change notification settings',
  summary:
    'Choose how the owner is told of requests for approval: by a mail at once, once a day, or not at all.',
  description: 'Mails about the security of the account are always sent.',
  route: 'PATCH /api/notifications/settings',
  who: 'person',
  scopes: [],
  effect: 'write',
  mcp: false,
  input: notificationSettings,
  output: notificationSettings,
  failures: [],
  example: { approvals: 'daily' },
  run: async (context, { approvals }) => {
    const { database } = context
    const accountId = personOf(context).account.id
    const before = await readNotificationSettings(database, accountId)
    await changeNotificationSettings(database, { accountId, approvals })
    await recordChange(context, {
      action: 'account.notifications_set',
      object: { kind: 'account', id: accountId },
      before,
      after: { approvals },
    })
    return { approvals }
  },
})
