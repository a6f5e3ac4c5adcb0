/**
 * Deletes expired rows: nonces, challenges, agents' registrations, device sign-ins, idempotency keys older than a day, intents, quotes,
 * MCP sessions, events older than their retention, sent mails and messages, ended push subscriptions, what sellers delivered a day ago, and rate-limit windows.
 */

import { sweepIdempotency } from '../../books/spending/idempotency.ts'
import type { Clock } from '../../core/base/clock.ts'
import { sweepChallenges } from '../../people/identity/challenges.ts'
import { sweepDeviceSignIns } from '../../people/identity/devices/device-sign-ins.ts'
import { sweepRegistrations } from '../../people/identity/keys/registrations.ts'
import { sweepFailedFactors } from '../../people/identity/locks.ts'
import { sweepInvitations } from '../../people/identity/members/invitations.ts'
import { sweepNonces } from '../../people/identity/store.ts'
import { sweepMcpSessions } from '../../people/mcp-sessions/sessions.ts'
import { sweepPayoutQuotes } from '../../rails/banking/payout-quote.ts'
import { deleteOldDeliveries } from '../../rails/buying/store.ts'
import { sweepCardOrders } from '../../rails/cards/order-card.ts'
import { sweepIntents } from '../../rails/wallets/signing/intent-store.ts'
import { sweepEvents } from '../../records/events/sweep-events.ts'
import { sweepMessages } from '../../records/notifications/messages.ts'
import { sweepOwnerMails } from '../../records/notifications/queue.ts'
import { sweepSubscriptions } from '../../records/notifications/subscriptions.ts'
import type { Database } from '../../storage/database.ts'

/** Longer than any rate-limit window. */
const WINDOW_MS = 24 * 60 * 60 * 1000
const QUOTES_MS = 8 * 24 * 60 * 60_000

export async function sweep({
  database,
  clock,
  settings,
}: {
  database: Database
  clock: Clock
  settings: { readonly eventDays: number }
}): Promise<void> {
  const now = clock()
  await sweepNonces(database, now)
  await sweepChallenges(database, now)
  await sweepInvitations(database, now)
  await sweepRegistrations(database, now)
  await sweepDeviceSignIns(database, now)
  await sweepFailedFactors(database, now)
  await sweepIdempotency(database, now)
  await sweepIntents(database, now)
  await sweepCardOrders(database, now)
  await sweepMcpSessions(database, now)
  await sweepEvents(database, { now, days: settings.eventDays })
  // As long as an approval of its swap can wait.
  const quoted = new Date(now.getTime() - QUOTES_MS)
  const closed = new Date(now.getTime() - WINDOW_MS)
  await deleteOldDeliveries(database, closed)
  await sweepPayoutQuotes(database, closed)
  await sweepOwnerMails(database, closed)
  await sweepSubscriptions(database, now)
  await sweepMessages(database, { now, days: settings.eventDays })
  await database.kysely.deleteFrom('rate_window').where('opened_at', '<', closed).execute()
  await database.kysely.deleteFrom('sandbox_message').where('sent_at', '<', closed).execute()
  await database.kysely.deleteFrom('swap_quote').where('expires_at', '<', quoted).execute()
  await database.kysely.deleteFrom('openid_record').where('expires_at', '<', now).execute()
}
