import { describe, expect, it } from 'vitest'
import { fitText } from '../../../src/providers/chats/fit-text.ts'
import { writeSlackMessage } from '../../../src/providers/chats/slack.ts'
import { writeTelegramText } from '../../../src/providers/chats/telegram.ts'
import { quoteText } from '../../../src/records/notifications/quote-text.ts'
import { markedTexts, plainTexts, slackMessage } from '../../records/notifications/chat-services.ts'
import { lies } from '../../records/notifications/lies.ts'

const url = 'https://bursar.example/approvals/appr_01kah4c2wvf3et8g4r7s1n5m9q'
const announce = (texts: readonly string[]) => ({
  title: 'An agent asks for your approval',
  items: texts.map((text) => ({ lines: [`Agent: ${quoteText(text)}`, `To: ${quoteText(text)}`], url })),
})

describe('a message to Slack', () => {
  it.each(lies)('has what a stranger wrote in plain text only: %j', (lie) => {
    const message = slackMessage.parse(writeSlackMessage(announce([lie])))
    for (const text of [message.text, ...plainTexts(message)]) {
      expect(text).not.toMatch(/[<>]/)
      expect(text.replaceAll(/&(amp|lt|gt);/g, '')).not.toContain('&')
    }
    expect(markedTexts(message)).toEqual([`<${url}|Open in Bursar>`])
    expect(message.text).toBe('An agent asks for your approval')
    expect(JSON.stringify(message)).not.toMatch(/evil\.example|@channel|@evil/)
  })

  it('stays within fifty blocks of 3,000 characters, however much there is to tell', () => {
    const much = Array.from({ length: 40 }, () => '<&>'.repeat(100))
    const long = {
      title: '&'.repeat(300),
      items: [{ lines: Array.from({ length: 40 }, () => '<'.repeat(300)), url }],
    }
    expect(slackMessage.parse(writeSlackMessage(announce(much))).blocks.length).toBeLessThanOrEqual(50)
    const message = slackMessage.parse(writeSlackMessage(long))
    for (const text of plainTexts(message)) expect(text).toMatch(/;…$/)
  })
})

describe('a message to Telegram', () => {
  it.each(lies)('has no link, command, tag or mention that a stranger wrote: %j', (lie) => {
    const text = writeTelegramText(announce([lie]))
    expect(text.length).toBeLessThanOrEqual(4_096)
    const own = text.replaceAll(url, '')
    expect(own).not.toMatch(/https?:\/\/|tg:\/\/|evil\.example|t\.me/)
    expect(own).not.toMatch(/(^|\s)[/#@$]\w/)
    expect(text.split('\n').at(-1)).toBe(url)
    // Title, the two lines and the link: strangers write no lines.
    expect(text.split('\n')).toHaveLength(5)
  })

  it('keeps every link, however much there is to tell', () => {
    const text = writeTelegramText(announce(Array.from({ length: 20 }, () => 'x'.repeat(300))))
    expect(text.length).toBeLessThanOrEqual(4_096)
    expect(text.split(url)).toHaveLength(21)
  })
})

describe('a text that must fit', () => {
  it('is cut between characters, by the length of its escaped form', () => {
    const escapeCharacter = (character: string) => (character === '&' ? '&amp;' : character)
    expect(fitText('a&b', 7, escapeCharacter)).toBe('a&amp;b')
    expect(fitText('a&bc', 7, escapeCharacter)).toBe('a&amp;…')
    expect(fitText('𝕳𝕳𝕳', 5)).toBe('𝕳𝕳…')
    expect(fitText('', 5)).toBe('')
  })
})
