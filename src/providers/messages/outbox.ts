/** The sandbox's messages: stored instead of sent, and shown by `GET /sandbox/outbox`. */
import type { NewId } from '../../core/base/ids.ts'
import type { Database } from '../../storage/database.ts'
import type { Messages } from './port.ts'

/** The messages port over the table `sandbox_message`. */
export function createOutboxMessages({
  database,
  newId,
}: {
  readonly database: Pick<Database, 'kysely'>
  readonly newId: NewId
}): Messages {
  return {
    channels: ['email', 'sms'],
    send: async ({ channel, destination, code, text, at }) => {
      await database.kysely
        .insertInto('sandbox_message')
        .values({ id: newId('msg', at), channel, destination, code, body: text, sent_at: at })
        .execute()
    },
  }
}
