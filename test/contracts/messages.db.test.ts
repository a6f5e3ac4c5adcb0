import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text as readStream } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { newId } from '../../src/core/base/ids.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { joinMessages } from '../../src/providers/messages/joined.ts'
import { createOutboxMessages } from '../../src/providers/messages/outbox.ts'
import type { Message, Messages } from '../../src/providers/messages/port.ts'
import { createSmtpMessages } from '../../src/providers/messages/smtp.ts'
import { createTwilioMessages } from '../../src/providers/messages/twilio.ts'
import { onBothEngines } from '../engines.ts'
import { closedPort, startSmtp } from '../smtp.ts'

const at = new Date('2026-11-20T12:00:00.000Z')
const mail: Message = {
  channel: 'email',
  destination: 'ada@example.com',
  subject: 'Your sign-in code',
  text: 'Your code is 123456.\n\nNever share it — with nobody.',
  code: '123456',
  at,
}
const sms: Message = {
  ...mail,
  channel: 'sms',
  destination: '+4915112345678',
  text: 'Your code is 123456.\n\n@bursar.example #123456',
}

/** Resources to release after a test. */
const opened: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of opened.splice(0)) await close()
})

/** The failure of a message, and its log lines. */
async function catchRefusal(
  create: (log: typeof silentLog) => Messages,
  message: Message,
): Promise<{ failure: Failure; text: string }> {
  const lines: unknown[] = []
  const log = { ...silentLog, warn: (facts: object, line: string) => void lines.push([facts, line]) }
  const failure: unknown = await create(log)
    .send(message)
    .catch((error: unknown) => error)
  if (!(failure instanceof Failure)) throw new Error('it was not refused')
  expect(lines).toHaveLength(1)
  return {
    failure,
    text: JSON.stringify([failure.toProblem(), failure.message, String(failure.cause), lines]),
  }
}

async function refusesLikeAnyOther(
  create: (log: typeof silentLog) => Messages,
  message: Message,
  { reason = '', retryAfter = 60 } = {},
) {
  const { failure, text: visibleText } = await catchRefusal(create, message)
  expect(failure).toMatchObject({
    code: 'provider_unavailable',
    message: 'The message could not be sent.',
    members: { retryAfter },
  })
  expect(visibleText).not.toContain(message.destination)
  expect(visibleText).not.toContain(message.code)
  expect(visibleText).not.toContain('pa:ss')
  expect(visibleText).toContain(reason)
}

onBothEngines('messages: outbox', (database) => {
  it('stores messages of both channels', async () => {
    const outbox = createOutboxMessages({ database: database(), newId })
    expect(outbox.channels).toEqual(['email', 'sms'])
    await outbox.send(mail)
    await outbox.send(sms)
    const rows = await database()
      .kysely.selectFrom('sandbox_message')
      .selectAll()
      .orderBy('channel')
      .execute()
    expect(rows).toMatchObject([
      { channel: 'email', destination: mail.destination, code: mail.code, body: mail.text, sent_at: at },
      { channel: 'sms', destination: sms.destination, code: sms.code, body: sms.text, sent_at: at },
    ])
  })
})

describe('messages: smtp', () => {
  const from = 'Bursar <no-reply@bursar.example>'
  const serving = async (behaviour: Parameters<typeof startSmtp>[0] = {}) => {
    const server = await startSmtp(behaviour)
    opened.push(server.close)
    return server
  }
  const on = (port: number, credentials = '', timeoutMs = 2000) => {
    const url = `smtp://${credentials}127.0.0.1:${port}`
    return (log: typeof silentLog) => createSmtpMessages({ url, from, log, timeoutMs })
  }

  it('offers e-mail and delivers the text unchanged, without naming its software', async () => {
    const { port, mails } = await serving()
    const smtp = on(port)(silentLog)
    expect(smtp.channels).toEqual(['email'])
    await smtp.send(mail)
    expect(mails).toHaveLength(1)
    const [received] = mails
    expect(received).toMatchObject({ from: 'no-reply@bursar.example', to: ['ada@example.com'] })
    expect(received?.headers.get('subject')).toBe('Your sign-in code')
    expect(received?.headers.get('from')).toBe(from)
    expect(received?.headers.get('to')).toBe('ada@example.com')
    expect([...(received?.headers.keys() ?? [])].filter((name) => name.startsWith('x-'))).toEqual([])
    expect(received?.text).toContain('Your code is 123456.')
  })

  it('authenticates with the credentials of the URL, decoded', async () => {
    const { port, mails } = await serving({ user: 'ada@home', password: 'pa:ss%40/' })
    await on(
      port,
      `${encodeURIComponent('ada@home')}:${encodeURIComponent('pa:ss%40/')}@`,
    )(silentLog).send(mail)
    expect(mails).toHaveLength(1)
  })

  it('fails identically for a wrong password, a rejected recipient and an unreachable server', async () => {
    const strict = await serving({ user: 'ada', password: 'right' })
    await refusesLikeAnyOther(on(strict.port, 'ada:pa%3Ass@'), mail, { reason: 'EAUTH' })
    const refusing = await serving({ isRefusing: true })
    await refusesLikeAnyOther(on(refusing.port), mail, { reason: 'EENVELOPE 550' })
    await refusesLikeAnyOther(on(await closedPort(), 'ada:pa%3Ass@'), mail, { reason: 'E' })
    expect([...strict.mails, ...refusing.mails]).toEqual([])
  })

  it('times out on a slow server', async () => {
    const { port, mails } = await serving({ delayMs: 1500 })
    await refusesLikeAnyOther(on(port, '', 150), mail, { reason: 'ETIMEDOUT' })
    expect(mails).toEqual([])
  })

  it('sends to one address, despite header characters in it', async () => {
    const { port, mails } = await serving()
    await on(port)(silentLog)
      .send({ ...mail, destination: "o'neil+a=b@example.com" })
      .catch(() => undefined)
    expect(mails.map(({ to }) => to)).toEqual([["o'neil+a=b@example.com"]])
  })
})

describe('messages: twilio', () => {
  const account = { accountSid: 'AC0123456789abcdef', authToken: 'pa:ss', from: '+15005550006' }
  const answering = async (answer: (request: IncomingMessage, response: ServerResponse) => void) => {
    const requests: { url: string; method: string; authorization: string; type: string; body: string }[] = []
    const server = createServer((request, response) => {
      void readStream(request).then((body) => {
        const { url = '', method = '', headers } = request
        const { authorization = '', 'content-type': type = '' } = headers
        requests.push({ url, method, authorization, type, body })
        answer(request, response)
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    opened.push(async () => {
      server.closeAllConnections()
      server.close()
    })
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    const url = `http://127.0.0.1:${address.port}`
    return {
      url,
      requests,
      create: (log: typeof silentLog) => createTwilioMessages({ ...account, url, log, timeoutMs: 300 }),
    }
  }
  const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
    answering((_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
    })
  const error = (status: number, code: number) =>
    json(status, {
      code,
      message: `The 'To' number ${sms.destination} is not a valid phone number.`,
      more_info: `https://www.twilio.com/docs/errors/${code}`,
      status,
    })

  it('offers SMS and creates a message as documented', async () => {
    const { requests, create } = await json(201, { sid: 'SM0123', status: 'queued' })
    expect(create(silentLog).channels).toEqual(['sms'])
    await create(silentLog).send(sms)
    expect(requests).toHaveLength(1)
    const [request] = requests
    expect(request).toMatchObject({
      method: 'POST',
      url: `/2010-04-01/Accounts/${account.accountSid}/Messages.json`,
      authorization: `Basic ${btoa(`${account.accountSid}:${account.authToken}`)}`,
    })
    expect(request?.type).toMatch(/^application\/x-www-form-urlencoded/)
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
      To: sms.destination,
      From: account.from,
      Body: sms.text,
    })
  })

  it.each([
    ['an invalid number', 400, 21211],
    ['no mobile number', 400, 21614],
    ['a number that opted out', 400, 21610],
    ['a wrong token', 401, 20003],
    ['an error code', 500, 20500],
  ])('fails for %s as for any other rejection', async (_name, status, code) => {
    const { create } = await error(status, code)
    await refusesLikeAnyOther(create, sms, { reason: `${status} ${code}` })
  })

  it('passes on the retry time of a 429', async () => {
    const { create } = await json(429, { code: 20429, status: 429 }, { 'retry-after': '17' })
    await refusesLikeAnyOther(create, sms, { reason: '429 20429', retryAfter: 17 })
  })

  it('rejects an empty answer, and a message that failed', async () => {
    await refusesLikeAnyOther((await json(201, { unexpected: true })).create, sms)
    await refusesLikeAnyOther((await json(201, { sid: 'SM0123', status: 'failed' })).create, sms)
    const html = await answering((_request, response) => void response.writeHead(502).end('<html>'))
    await refusesLikeAnyOther(html.create, sms, { reason: '502' })
  })

  it('does not send its credentials to a redirect target', async () => {
    const elsewhere = await json(201, { sid: 'SM0123', status: 'queued' })
    const { create } = await json(307, {}, { location: elsewhere.url })
    await refusesLikeAnyOther(create, sms)
    expect(elsewhere.requests).toEqual([])
  })

  it('times out on a slow or unreachable provider', async () => {
    const silent = await answering(() => undefined)
    await refusesLikeAnyOther(silent.create, sms, { reason: 'TimeoutError' })
    const url = `http://127.0.0.1:${await closedPort()}`
    await refusesLikeAnyOther((log) => createTwilioMessages({ ...account, url, log }), sms)
  })
})

describe('messages: joined', () => {
  const sending = (channels: Messages['channels'], sent: string[], name: string): Messages => ({
    channels,
    send: async () => void sent.push(name),
  })

  it('sends each channel by the first adapter that offers it', async () => {
    const sent: string[] = []
    const joined = joinMessages([sending(['email'], sent, 'smtp'), sending(['email', 'sms'], sent, 'outbox')])
    expect(joined.channels).toEqual(['email', 'sms'])
    await joined.send(mail)
    await joined.send(sms)
    expect(sent).toEqual(['smtp', 'outbox'])
  })

  it('offers and sends nothing without adapters', async () => {
    const none = joinMessages([])
    expect(none.channels).toEqual([])
    await expect(none.send(sms)).rejects.toMatchObject({ code: 'provider_unavailable' })
  })
})
