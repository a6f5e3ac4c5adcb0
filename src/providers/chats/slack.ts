/**
 * Slack, by an incoming webhook. Texts of others are in `plain_text` alone, with Slack's control characters escaped: they are no
 * mentions, links or formatting. @see https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
 * @see https://docs.slack.dev/messaging/formatting-message-text#escaping
 */
import { isPublicFetchError, type PublicFetch } from '../public-fetch.ts'
import { fitText } from './fit-text.ts'
import type { Announcement, ChatOutcome } from './port.ts'

const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 4_096
/** Of a header block, and of a text in a section block. */
const MAX_HEADER = 150
const MAX_TEXT = 3_000
const MAX_BLOCKS = 50

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
const escapeCharacter = (character: string) => entities[character] ?? character

/** The webhook's body. */
export function writeSlackMessage({ title, items }: Announcement) {
  const heading = fitText(title, MAX_HEADER, escapeCharacter)
  const plain = (text: string) => ({ type: 'plain_text', text, emoji: false }) as const
  const blocks = items.flatMap(({ lines, url }) => {
    const address = [...url].map(escapeCharacter).join('')
    return [
      { type: 'section', text: plain(fitText(lines.join('\n'), MAX_TEXT, escapeCharacter)) },
      { type: 'section', text: { type: 'mrkdwn', text: `<${address}|Open in Bursar>`, verbatim: true } },
    ]
  })
  return {
    // What notifications show, which have no blocks.
    text: heading,
    mrkdwn: false,
    unfurl_links: false,
    unfurl_media: false,
    blocks: [{ type: 'header', text: plain(heading) }, ...blocks].slice(0, MAX_BLOCKS),
  }
}

export async function sendToSlack(
  { publicFetch, mode }: { readonly publicFetch: PublicFetch; readonly mode: 'sandbox' | 'production' },
  webhookUrl: string,
  announcement: Announcement,
): Promise<ChatOutcome> {
  try {
    const { status, headers, body } = await publicFetch({
      url: webhookUrl,
      method: 'POST',
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: JSON.stringify(writeSlackMessage(announcement)),
      maxBytes: MAX_ANSWER_BYTES,
      timeoutMs: TIMEOUT_MS,
      loopback: mode === 'sandbox',
    })
    if (status >= 200 && status < 300) return { status: 'sent' }
    const code = Buffer.from(body).toString()
    const wait = headers.find(([name]) => name === 'retry-after')?.[1] ?? ''
    return {
      status: 'failed',
      problem: /^[a-z_]{1,40}$/.test(code) ? code : `http_${status}`,
      retryAfterSeconds: /^\d{1,5}$/.test(wait) ? Number(wait) : null,
    }
  } catch (error) {
    if (!isPublicFetchError(error)) throw error
    const problem = error.problem === 'refused-url' ? 'url_not_allowed' : 'unreachable'
    return { status: 'failed', problem, retryAfterSeconds: null }
  }
}
