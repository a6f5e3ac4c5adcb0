/**
 * Deletes expired rows: nonces, challenges, agents' registrations, idempotency keys older than a day, intents, quotes,
 * MCP sessions and rate-limit windows.
 */

import type { Clock } from '../base/clock.ts'
import { sweepCardOrders } from '../cards/order-card.ts'
import { sweepChallenges } from '../identity/challenges.ts'
import { sweepRegistrations } from '../identity/keys/registrations.ts'
import { sweepFailedFactors } from '../identity/locks.ts'
import { sweepNonces } from '../identity/store.ts'
import { sweepMcpSessions } from '../mcp-sessions/sessions.ts'
import { sweepIdempotency } from '../spending/idempotency.ts'
import type { Database } from '../storage/database.ts'
import { sweepIntents } from '../wallets/signing/intent-store.ts'

/** Longer than any rate-limit window. */
const WINDOW_MS = 24 * 60 * 60 * 1000

export async function sweep({ database, clock }: { database: Database; clock: Clock }): Promise<void> {
  const now = clock()
  await sweepNonces(database, now)
  await sweepChallenges(database, now)
  await sweepRegistrations(database, now)
  await sweepFailedFactors(database, now)
  await sweepIdempotency(database, now)
  await sweepIntents(database, now)
  await sweepCardOrders(database, now)
  await sweepMcpSessions(database, now)
  const closed = new Date(now.getTime() - WINDOW_MS)
  await database.kysely.deleteFrom('rate_window').where('opened_at', '<', closed).execute()
  await database.kysely.deleteFrom('sandbox_message').where('sent_at', '<', closed).execute()
  await database.kysely.deleteFrom('swap_quote').where('expires_at', '<', closed).execute()
  await database.kysely.deleteFrom('openid_record').where('expires_at', '<', now).execute()
}
