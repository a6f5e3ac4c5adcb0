import { looserMembers } from '../../../policies/directions.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { requireRecentProof } from '../../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import {
  changeNotificationSettings,
  notificationSettings,
  readNotificationSettings,
  settingDirections,
} from '../../../src/records/notifications/settings.ts'

export default defineTool({
  name: 'notifications.settings.update',
  title: 'Change notification settings',
  summary:
    'Choose how the owner is told of requests for approval: by a mail at once, once a day, or not at all.',
  description:
    'Mails about the security of the account are always sent. Fewer mails (`daily` instead of `immediately`, or `off`) need a recent proof, because a stolen session could otherwise silence the owner before it spends; the owner is told by mail.',
  route: 'PATCH /api/notifications/settings',
  who: 'person',
  effect: 'write',
  proof: 'loosening',
  input: notificationSettings,
  loosens: settingDirections,
  output: notificationSettings,
  failures: ['step_up_required'],
  example: { approvals: 'daily' },
  run: async (context, { approvals }) => {
    const { database } = context
    const accountId = requirePerson(context).account.id
    const before = await readNotificationSettings(database, accountId)
    if (looserMembers(settingDirections, before, { approvals }).length > 0) {
      requireRecentProof(context)
      await sendSecurityNotice(context, { accountId, notice: 'mails_reduced', at: context.now })
    }
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
