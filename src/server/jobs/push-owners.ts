/** Sends push messages to owners' browsers about events of their accounts. Each browser has a worker of its own, so that none waits for another. */
import type { Services } from '../../kernel/context.ts'
import { writePush } from '../../records/notifications/push-message.ts'
import {
  type ClaimedSubscription,
  claimSubscriptions,
  dropPush,
  listDuePushes,
  pauseSubscription,
  releaseSubscription,
} from '../../records/notifications/push-queue.ts'
import { forgetSubscription, openSubscription } from '../../records/notifications/subscriptions.ts'
import type { ShouldClaim } from './find-work.ts'

/** Browsers that one gateway sends to at once. */
const MAX_WORKERS = 512

type PusherParts = Pick<Services, 'database' | 'settings' | 'push' | 'clock' | 'onCalendar' | 'log'>

/** Creates the round of the job, which starts workers and waits for none. */
export function createPushOwners(services: PusherParts, shouldClaim: ShouldClaim): () => Promise<number> {
  let workers = 0
  return async () => {
    if (workers >= MAX_WORKERS || !(await shouldClaim())) return workers
    for (const work of await startPushes(services, MAX_WORKERS - workers)) {
      workers += 1
      void work.finally(() => {
        workers -= 1
      })
    }
    return workers
  }
}

/** Starts sending to browsers with messages that are due. @returns their work, which never fails. */
export async function startPushes(parts: PusherParts, limit: number): Promise<Promise<void>[]> {
  const claimed = await claimSubscriptions(parts.database, { limit, at: parts.clock() })
  return claimed.map((subscription) =>
    sendTo(parts, subscription).catch((err: unknown) => {
      // The claim ends by itself.
      parts.log.error({ err, subscriptionId: subscription.id }, 'messages to a browser failed')
    }),
  )
}

/** Sends what is due to one browser, until an attempt fails. */
async function sendTo(parts: PusherParts, claimed: ClaimedSubscription): Promise<void> {
  const { database, clock } = parts
  const { id, failures, is_ended, is_locked } = claimed
  if (is_ended) return forgetSubscription(database, id)
  for (const push of await listDuePushes(database, { id, at: clock() })) {
    const isTold = !is_locked || push.type === 'security.locked'
    const outcome = isTold ? await sendPush(parts, claimed, push) : 'sent'
    if (outcome === 'gone') return forgetSubscription(database, id)
    if (outcome === 'failed') return pauseSubscription(database, { id, failures, push, at: clock() })
    await dropPush(database, { id, sequence: push.sequence })
  }
  await releaseSubscription(database, id)
}

async function sendPush(
  { database, settings, push, clock, onCalendar, log }: PusherParts,
  { id, sealed, account_id: accountId }: ClaimedSubscription,
  event: Awaited<ReturnType<typeof listDuePushes>>[number],
): Promise<'sent' | 'gone' | 'failed'> {
  const now = clock()
  try {
    const text = await writePush(database, event, onCalendar(now))
    if (text === null) return 'sent'
    const subscription = openSubscription(settings.dataKey, { id, sealed })
    const lifetimeSeconds = Math.max(0, Math.floor((event.expires_at.getTime() - now.getTime()) / 1000))
    const payload = JSON.stringify(text)
    return await push.send(subscription, { payload, topic: event.object_id, lifetimeSeconds })
  } catch (err) {
    log.warn(
      { err, accountId, type: event.type },
      'a push message to an owner was not sent and will be retried',
    )
    return 'failed'
  }
}
