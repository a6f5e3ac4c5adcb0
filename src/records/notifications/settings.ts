/** How an owner is told of requests for approval. */
import { z } from 'zod'
import type { Directions } from '../../../policies/directions.ts'
import type { Connection } from '../../storage/database.ts'

export const notificationSettings = z.strictObject({
  approvals: z
    .enum(['immediately', 'daily', 'off'])
    .describe(
      'Mails about requests for approval: `immediately` (the default), `daily` (one mail at 08:00 UTC) or `off`. Mails about the security of the account are always sent.',
    ),
})
notificationSettings.register(z.globalRegistry, { id: 'NotificationSettings' })

export type NotificationSettings = z.output<typeof notificationSettings>

const quietness = { immediately: 0, daily: 1, off: 2 } as const

/** The direction in which each setting loosens: the owner is told later, or not at all. */
export const settingDirections: Directions<NotificationSettings> = {
  approvals: (before = 'immediately', after = 'immediately') => quietness[after] > quietness[before],
}

export async function readNotificationSettings(
  { kysely }: Connection,
  accountId: string,
): Promise<NotificationSettings> {
  const { approval_mails: approvals } = await kysely
    .selectFrom('account')
    .select('approval_mails')
    .where('id', '=', accountId)
    .executeTakeFirstOrThrow()
  return { approvals }
}

/** Changes the settings. They apply from the next request for approval; `off` also drops the mails that wait. */
export async function changeNotificationSettings(
  { kysely }: Connection,
  { accountId, approvals }: NotificationSettings & { accountId: string },
): Promise<void> {
  await kysely.updateTable('account').set({ approval_mails: approvals }).where('id', '=', accountId).execute()
  if (approvals !== 'off') return
  await kysely
    .deleteFrom('owner_mail')
    .where('account_id', '=', accountId)
    .where('type', '=', 'approval.requested')
    .where('sent_at', 'is', null)
    .execute()
}
