/** Channels that tell the owner, and what was sent to them. */
import { bursar } from './gateway.ts'
import { resource } from './resource.ts'

const MAX_SHOWN = 50

export const channels = resource(() => bursar.notifications.channels.list(), ['security.'])
/** What is sent follows these events within seconds. */
export const sentMessages = resource(
  async () => ({ messages: (await bursar.notifications.messages.list({ limit: MAX_SHOWN })).messages }),
  ['approval.', 'schedule.', 'wallet.', 'webhook.', 'decision.', 'security.'],
)
