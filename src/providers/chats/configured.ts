/** Joins the adapters of chats. Their secrets are the owners', so that there is little to configure. */
import type { Config } from '../../core/config/read-config.ts'
import type { PublicFetch } from '../public-fetch.ts'
import type { Chats } from './port.ts'
import { sendToSlack } from './slack.ts'
import { sendToTelegram } from './telegram.ts'

export function createConfiguredChats(
  { mode, telegramUrl }: Pick<Config, 'mode' | 'telegramUrl'>,
  publicFetch: PublicFetch,
): Chats {
  return {
    send: (target, announcement) =>
      target.type === 'slack'
        ? sendToSlack({ publicFetch, mode }, target.webhookUrl, announcement)
        : sendToTelegram(telegramUrl, target, announcement),
  }
}
