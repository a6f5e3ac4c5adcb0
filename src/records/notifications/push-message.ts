/** Text of a push message: plain words without secrets, and the page that says more. */
import { sql } from 'kysely'
import type { Connection } from '../../storage/database.ts'
import { summarizeApproval } from './approval-mail.ts'
import { describeEvent } from './event-mail.ts'
import type { ClaimedEvent } from './queue.ts'

/** Push services accept 4,096 bytes, encrypted; screens show less. */
const MAX_BODY_LENGTH = 400

/** @property url path of a page of the console. */
export interface PushText {
  readonly title: string
  readonly body: string
  readonly url: string
}

/** Pages of the console that events are about. */
export const pages: Readonly<Record<string, string>> = {
  'security.locked': '/sign-in',
  'wallet.shortfall': '/activity',
  'webhook.disabled': '/developers',
  'schedule.failing': '/schedules',
  'decision.denied': '/activity',
  'request.paid': '/accounts',
  'request.overpaid': '/accounts',
  'request.paid_late': '/accounts',
}

/** Writes the message about an event. @returns null if the request for approval is not open any more. */
export async function writePush(
  database: Connection,
  event: ClaimedEvent,
  now: Date,
): Promise<PushText | null> {
  if (event.type !== 'approval.requested') {
    const { title, body } = await describeEvent(database, event)
    return { title, body: body.slice(0, MAX_BODY_LENGTH), url: pages[event.type] ?? '/' }
  }
  const row = await database.kysely
    .selectFrom('approval')
    .leftJoin('decision', 'decision.id', 'approval.decision_id')
    .leftJoin('access_key', 'access_key.id', 'approval.key_id')
    .leftJoin('account as asker', 'asker.id', 'approval.asker_id')
    .select(['approval.operation', 'decision.facts', 'approval.key_id as keyId'])
    .select(sql<string>`coalesce(access_key.name, asker.display_name, '')`.as('name'))
    .where('approval.id', '=', event.object_id)
    .where('approval.status', '=', 'pending')
    .where('approval.expires_at', '>', now)
    .executeTakeFirst()
  if (row === undefined) return null
  return {
    title: row.keyId === null ? 'A payment waits for your agreement' : 'An agent asks for your approval',
    body: summarizeApproval(row).slice(0, MAX_BODY_LENGTH),
    url: `/approvals/${event.object_id}`,
  }
}
