/** Sends owners the mails about events of their accounts. */

import type { Services } from '../../kernel/context.ts'
import { approvalUrl } from '../../kernel/gates/approval.ts'
import { unsealAddress } from '../../people/identity/codes/destinations.ts'
import { type MailText, writeApprovalMail } from '../../records/notifications/approval-mail.ts'
import { writeEventMail } from '../../records/notifications/event-mail.ts'
import {
  type ClaimedMail,
  claimMails,
  dropMails,
  markSent,
  scheduleRetry,
} from '../../records/notifications/queue.ts'

/** Addresses that one round sends to, side by side. */
const BATCH = 20

type MailerParts = Pick<Services, 'database' | 'settings' | 'messages' | 'clock' | 'onCalendar' | 'log'>
type Events = readonly [ClaimedMail, ...ClaimedMail[]]

/** Runs one round. A mail that cannot be sent does not stop the others. */
export async function mailOwners(parts: MailerParts): Promise<number> {
  if (!parts.messages.channels.includes('email')) return 0
  const mails = await claimMails(parts.database, { limit: BATCH, at: parts.clock() })
  await Promise.all(mails.map((events) => sendMail(parts, events)))
  return mails.length
}

async function sendMail(parts: MailerParts, events: Events): Promise<void> {
  const { database, settings, messages, clock, log } = parts
  const [{ destination_hash: hash, sealed_address: sealed, account_id: accountId, type }] = events
  try {
    const mail = await writeMail(parts, events)
    if (mail === null) return await dropMails(database, events)
    const destination = unsealAddress(settings, { hash, sealed })
    await messages.send({ channel: 'email', destination, ...mail, code: '', at: clock() })
  } catch (err) {
    log.warn({ err, accountId, type }, 'a mail to an owner was not sent and will be retried')
    return scheduleRetry(database, events, clock())
  }
  await markSent(database, events, clock())
}

function writeMail(
  { database, settings, clock, onCalendar }: MailerParts,
  events: Events,
): Promise<MailText | null> {
  const { origin, webOrigins } = settings
  const site = webOrigins[0] ?? origin
  const [{ account_id: accountId, type }] = events
  if (type !== 'approval.requested') return writeEventMail(database, { events, site })
  return writeApprovalMail(database, {
    accountId,
    asked: new Set(events.map(({ object_id: id }) => id)),
    now: onCalendar(clock()),
    buildPageUrl: (id) => (id === null ? `${site}/approvals` : approvalUrl(settings, id)),
  })
}
