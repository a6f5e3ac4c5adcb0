import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import {
  notificationSettings,
  readNotificationSettings,
} from '../../../src/records/notifications/settings.ts'

export default defineTool({
  name: 'notifications.settings.get',
  title: 'Notification settings',
  summary: 'Read how the owner is told of requests for approval.',
  description: 'PATCH /api/notifications/settings changes them.',
  route: 'GET /api/notifications/settings',
  who: 'person',
  effect: 'read',
  input: z.strictObject({}),
  output: notificationSettings,
  failures: [],
  example: {},
  run: (context) => readNotificationSettings(context.database, requirePerson(context).account.id),
})
