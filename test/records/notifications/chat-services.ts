/** Slack's incoming webhooks and Telegram's Bot API on this machine, which refuse what the real ones refuse. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { z } from 'zod'

const MAX_BLOCKS = 50
const plainText = (max: number) =>
  z.strictObject({
    type: z.literal('plain_text'),
    text: z.string().min(1).max(max),
    emoji: z.boolean().optional(),
  })
const markdown = (max: number) =>
  z.strictObject({
    type: z.literal('mrkdwn'),
    text: z.string().min(1).max(max),
    verbatim: z.boolean().optional(),
  })
const block = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('header'), text: plainText(150) }),
  z.strictObject({ type: z.literal('section'), text: z.union([plainText(3_000), markdown(3_000)]) }),
  z.strictObject({ type: z.literal('divider') }),
])
export const slackMessage = z.strictObject({
  text: z.string().min(1).max(40_000),
  mrkdwn: z.boolean().optional(),
  unfurl_links: z.boolean().optional(),
  unfurl_media: z.boolean().optional(),
  blocks: z.array(block).min(1).max(MAX_BLOCKS),
})
export type SlackMessage = z.output<typeof slackMessage>

const telegramMessage = z.strictObject({
  chat_id: z.string(),
  text: z.string(),
  parse_mode: z.enum(['MarkdownV2', 'HTML']).optional(),
  link_preview_options: z.strictObject({ is_disabled: z.boolean() }).optional(),
})
export type TelegramMessage = z.output<typeof telegramMessage>

/** What the next requests are answered, once each, before they are judged. @property retryAfter seconds. */
export interface Trouble {
  readonly status: number
  readonly retryAfter?: number
  readonly code?: string
}

export const WEBHOOK_SECRET = 'xQz7SlackWebhookSecretOfThisTest'
export const BOT_TOKEN = '424242:AAtelegramBotTokenOfThisTest-_99'
export const CHAT = '-1001234'

/** @property troubles answers of the next attempts. @property attempts times of all requests, in milliseconds. */
export async function startChatServices() {
  const slack = {
    received: [] as SlackMessage[],
    refused: [] as string[],
    troubles: [] as Trouble[],
    attempts: [] as number[],
  }
  const telegram = {
    received: [] as TelegramMessage[],
    refused: [] as string[],
    troubles: [] as Trouble[],
    attempts: [] as number[],
  }
  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      if (request.url?.startsWith('/services/')) answerSlack(request, body, response)
      else answerTelegram(request, body, response)
    })
  })

  function answerSlack(request: IncomingMessage, body: string, response: ServerResponse) {
    slack.attempts.push(Date.now())
    const end = (status: number, text: string, headers: Record<string, string> = {}) => {
      if (status !== 200) slack.refused.push(text)
      response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(text)
    }
    const trouble = slack.troubles.shift()
    if (trouble !== undefined)
      return end(
        trouble.status,
        trouble.code ?? 'service_error',
        trouble.retryAfter === undefined ? {} : { 'retry-after': String(trouble.retryAfter) },
      )
    if (request.url !== `/services/T0001/B0001/${WEBHOOK_SECRET}`) return end(404, 'no_service')
    if (request.method !== 'POST' || !request.headers['content-type']?.startsWith('application/json'))
      return end(400, 'invalid_payload')
    const { data } = slackMessage.safeParse(jsonOrNull(body))
    if (data === undefined) return end(400, 'invalid_blocks')
    slack.received.push(data)
    end(200, 'ok')
  }

  function answerTelegram(request: IncomingMessage, body: string, response: ServerResponse) {
    telegram.attempts.push(Date.now())
    const end = (status: number, answer: object) => {
      if (status !== 200) telegram.refused.push(JSON.stringify(answer))
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    }
    const refuse = (status: number, description: string, parameters?: object) =>
      end(status, {
        ok: false,
        error_code: status,
        description,
        ...(parameters === undefined ? {} : { parameters }),
      })
    const trouble = telegram.troubles.shift()
    if (trouble !== undefined) {
      const { status, retryAfter } = trouble
      return refuse(
        status,
        'Too Many Requests',
        retryAfter === undefined ? undefined : { retry_after: retryAfter },
      )
    }
    if (request.url !== `/bot${BOT_TOKEN}/sendMessage`) return refuse(401, 'Unauthorized')
    const { data } = telegramMessage.safeParse(jsonOrNull(body))
    if (data === undefined) return refuse(400, 'Bad Request: unknown parameter')
    if (data.chat_id !== CHAT) return refuse(400, 'Bad Request: chat not found')
    if (data.text.trim() === '') return refuse(400, 'Bad Request: message text is empty')
    if (data.text.length > 4_096) return refuse(400, 'Bad Request: message is too long')
    if (data.parse_mode !== undefined && /[_*[\]()~`>#+\-=|{}.!<&]/.test(data.text))
      return refuse(400, "Bad Request: can't parse entities")
    telegram.received.push(data)
    end(200, { ok: true, result: { message_id: telegram.received.length, chat: { id: Number(CHAT) } } })
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const origin = `http://127.0.0.1:${address.port}`
  return {
    origin,
    webhookUrl: `${origin}/services/T0001/B0001/${WEBHOOK_SECRET}`,
    slack,
    telegram,
    clear: () => {
      for (const service of [slack, telegram])
        for (const list of [service.received, service.refused, service.troubles, service.attempts])
          list.length = 0
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
  return Buffer.concat(parts).toString()
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** What a reader of the message sees in blocks of plain text, one text a block. */
export function plainTexts({ blocks }: SlackMessage): readonly string[] {
  return blocks.flatMap((one) =>
    one.type === 'divider' || one.text.type !== 'plain_text' ? [] : [one.text.text],
  )
}

/** Texts that are read as markup. */
export function markedTexts({ blocks }: SlackMessage): readonly string[] {
  return blocks.flatMap((one) =>
    one.type === 'section' && one.text.type === 'mrkdwn' ? [one.text.text] : [],
  )
}
