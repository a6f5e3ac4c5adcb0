/** Sends push messages to owners' browsers about events of their accounts. */
import type { Services } from '../kernel/context.ts'
import { writePush } from '../notifications/push-message.ts'
import { type ClaimedPush, claimPushes, dropPush, retryPush } from '../notifications/push-queue.ts'
import { forgetSubscription, openSubscription } from '../notifications/subscriptions.ts'

/** Messages that one round sends, side by side. */
const BATCH = 20

type PusherParts = Pick<Services, 'database' | 'settings' | 'push' | 'clock' | 'log'>

/** Runs one round. A message that cannot be sent does not stop the others. */
export async function pushToOwners(parts: PusherParts): Promise<number> {
  const claimed = await claimPushes(parts.database, { limit: BATCH, at: parts.clock() })
  await Promise.all(claimed.map((push) => sendPush(parts, push)))
  return claimed.length
}

async function sendPush({ database, settings, push, clock, log }: PusherParts, claimed: ClaimedPush) {
  const { subscription_id: id, sealed, account_id: accountId, type, object_id: topic } = claimed
  const now = clock()
  try {
    if (claimed.is_ended) return await forgetSubscription(database, id)
    if (claimed.is_locked) return await dropPush(database, claimed)
    const text = await writePush(database, claimed, now)
    if (text === null) return await dropPush(database, claimed)
    const subscription = openSubscription(settings.dataKey, { id, sealed })
    const lifetimeSeconds = Math.max(0, Math.floor((claimed.expires_at.getTime() - now.getTime()) / 1000))
    const outcome = await push.send(subscription, { payload: JSON.stringify(text), topic, lifetimeSeconds })
    if (outcome === 'sent') return await dropPush(database, claimed)
    if (outcome === 'gone') return await forgetSubscription(database, id)
  } catch (err) {
    log.warn({ err, accountId, type }, 'a push message to an owner was not sent and will be retried')
  }
  await retryPush(database, claimed, clock())
}
