/**
 * Telegram, by a bot of the owner. Texts are sent without a parse mode, so that nothing in them is markup.
 * @see https://core.telegram.org/bots/api#sendmessage
 */
import { z } from 'zod'
import { callProvider } from '../http-client.ts'
import { fitText } from './fit-text.ts'
import type { Announcement, ChatOutcome, ChatTarget } from './port.ts'

const TIMEOUT_MS = 10_000
const MAX_TEXT = 4_096

const refused = z.object({ parameters: z.object({ retry_after: z.int().positive().optional() }).optional() })

/** The text of a message, of at most 4,096 characters. Its links are never cut. */
export function writeTelegramText({ title, items }: Announcement): string {
  const links = items.reduce((sum, { url }) => sum + url.length + 4, 0)
  const room = Math.floor((MAX_TEXT - title.length - links) / Math.max(items.length, 1))
  const texts = items.map(({ lines, url }) => `${fitText(lines.map(inert).join('\n'), room)}\n${url}`)
  return [title, ...texts].join('\n\n')
}

/** Commands, tags and phone numbers are links even in plain text: a word joiner after their first character ends that. */
function inert(line: string): string {
  return line.replaceAll(/(?<![\p{L}\p{N}])[/#$+](?=[\p{L}\p{N}_])/gu, (mark) => `${mark}\u2060`)
}

export async function sendToTelegram(
  apiUrl: string,
  { botToken, chatId }: Extract<ChatTarget, { type: 'telegram' }>,
  announcement: Announcement,
): Promise<ChatOutcome> {
  try {
    const { ok, status, text } = await callProvider({
      url: `${apiUrl.replace(/\/+$/, '')}/bot${botToken}/sendMessage`,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        chat_id: chatId,
        text: writeTelegramText(announcement),
        link_preview_options: { is_disabled: true },
      }),
      timeoutMs: TIMEOUT_MS,
    })
    if (ok) return { status: 'sent' }
    const { data } = refused.safeParse(jsonOrNull(text))
    return {
      status: 'failed',
      problem: `http_${status}`,
      retryAfterSeconds: data?.parameters?.retry_after ?? null,
    }
  } catch {
    // Not even the error: its cause may name the URL, which has the token.
    return { status: 'failed', problem: 'unreachable', retryAfterSeconds: null }
  }
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
