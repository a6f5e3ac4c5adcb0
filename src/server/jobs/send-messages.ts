/** Sends messages to owners' channels. Each channel has a worker of its own, so that none waits for another. */
import type { Services } from '../../kernel/context.ts'
import { unsealAddress } from '../../people/identity/codes/destinations.ts'
import type { Announcement, ChatOutcome } from '../../providers/chats/port.ts'
import { type AnnouncementText, writeAnnouncement } from '../../records/notifications/announcement.ts'
import { openChannel } from '../../records/notifications/channels.ts'
import {
  type ClaimedChannel,
  claimChannels,
  type DueMessage,
  dropMessages,
  isRefusedItself,
  keepText,
  listDueMessages,
  markMessagesSent,
  noteProblem,
  pauseChannel,
  releaseChannel,
  setAside,
} from '../../records/notifications/messages.ts'
import type { ShouldClaim } from './find-work.ts'

/** Channels that one gateway sends to at once. */
const MAX_WORKERS = 256
/** More that are due at once become one message. */
const MAX_SINGLE = 3

type SenderParts = Pick<
  Services,
  'database' | 'settings' | 'messages' | 'chats' | 'clock' | 'onCalendar' | 'log'
>
type Written = DueMessage & { readonly text: AnnouncementText }

/** Creates the round of the job, which starts workers and waits for none. */
export function createSendMessages(services: SenderParts, shouldClaim: ShouldClaim): () => Promise<number> {
  let workers = 0
  return async () => {
    if (workers >= MAX_WORKERS || !(await shouldClaim())) return workers
    for (const work of await startMessages(services, MAX_WORKERS - workers)) {
      workers += 1
      void work.finally(() => {
        workers -= 1
      })
    }
    return workers
  }
}

/** Starts sending to channels with messages that are due. @returns their work, which never fails. */
async function startMessages(parts: SenderParts, limit: number): Promise<Promise<void>[]> {
  const claimed = await claimChannels(parts.database, { limit, at: parts.clock() })
  return claimed.map((channel) =>
    sendTo(parts, channel).catch((err: unknown) => {
      // The claim ends by itself.
      parts.log.error({ err, channelId: channel.id }, 'messages to a channel failed')
    }),
  )
}

/** Sends what is due to one channel, until an attempt fails. */
async function sendTo(parts: SenderParts, channel: ClaimedChannel): Promise<void> {
  const { database, clock, onCalendar, log } = parts
  const { id, is_locked: isLocked } = channel
  const due = await listDueMessages(database, { channelId: id, at: clock() })
  const written: Written[] = []
  const dropped: string[] = []
  for (const message of due) {
    const isTold = !isLocked || message.type === 'security.locked'
    try {
      const text = isTold ? await writeAnnouncement(database, message, onCalendar(clock())) : null
      if (text === null) dropped.push(message.id)
      else written.push({ ...message, text })
    } catch (err) {
      // One that cannot be written holds up no other.
      log.error({ err, channelId: id, messageId: message.id }, 'a message to a channel cannot be written')
      await setAside(database, message, clock())
    }
  }
  await dropMessages(database, dropped)
  const groups = written.length > MAX_SINGLE ? [written] : written.map((one) => [one])
  let sent = 0
  let problem: string | null = null
  for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
    for (const { id: messageId, text } of group) await keepText(database, messageId, text)
    const outcome = await send(parts, channel, joinTexts(group, parts.settings))
    const ids = group.map((message) => message.id)
    if (outcome.status === 'failed' && isRefusedItself(outcome)) {
      log.warn({ channelId: id, problem: outcome.problem, ids }, 'a message was refused for what it is')
      const [first] = group
      // Of several, each is sent alone: the others are not refused with it.
      if (group.length > 1) groups.push(...group.map((one) => [one]))
      else if (first !== undefined) {
        await setAside(database, first, clock())
        problem = outcome.problem
      }
      continue
    }
    if (outcome.status === 'failed') {
      log.warn({ channelId: id, problem: outcome.problem }, 'a message was not sent and will be retried')
      return pauseChannel(database, channel, { outcome, tried: ids, at: clock() })
    }
    await markMessagesSent(database, ids, clock())
    sent += 1
  }
  await releaseChannel(database, channel, { sent, at: clock() })
  if (problem !== null) await noteProblem(database, channel, { problem, at: clock() })
}

function joinTexts(group: readonly Written[], settings: SenderParts['settings']): Announcement {
  const site = settings.webOrigins[0] ?? settings.origin
  const items = group.map(({ text: { title, lines, path } }) => ({
    lines: group.length > 1 ? [title, ...lines] : lines,
    url: `${site}${path}`,
  }))
  const [first] = group
  const title =
    first !== undefined && group.length === 1
      ? first.text.title
      : `${group.length} things need your attention`
  return { title, items }
}

async function send(
  { settings, messages, chats, clock, log }: SenderParts,
  { id, type, sealed, destination_hash: hash, sealed_address: sealedAddress }: ClaimedChannel,
  announcement: Announcement,
): Promise<ChatOutcome> {
  if (type !== 'email' && sealed !== null)
    return chats.send(openChannel(settings.dataKey, { id, sealed }), announcement)
  if (hash === null || sealedAddress === null) throw new Error(`${id} leads nowhere`)
  const { title, items } = announcement
  try {
    await messages.send({
      channel: 'email',
      destination: unsealAddress(settings, { hash, sealed: sealedAddress }),
      // Never a text of others, which could write headers.
      subject: title,
      text: `${items.map(({ lines, url }) => `${lines.join('\n')}\n\nOpen it in Bursar: ${url}`).join('\n\n\n')}\n`,
      code: '',
      at: clock(),
    })
    return { status: 'sent' }
  } catch (err) {
    log.warn({ err, channelId: id }, 'a mail of a channel was not sent')
    return { status: 'failed', problem: 'mail_not_sent', retryAfterSeconds: null }
  }
}
