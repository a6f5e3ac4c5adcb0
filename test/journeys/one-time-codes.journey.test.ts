/** Sign-in by one-time codes over real HTTP: new and existing accounts, mail and phone, lockout and recovery. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { text as readStream } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { startSmtp } from '../smtp.ts'
import { newAgent } from './agent.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newMailbox } from './people.ts'
import { redisUrl, worlds } from './worlds.ts'

const started = z.object({ challengeId: z.string(), expiresAt: z.string(), resendAfter: z.int() })
const session = z.object({
  account: z.object({ id: z.string(), displayName: z.string() }),
  sessionToken: z.string(),
})
const outbox = z.strictObject({
  messages: z.array(
    z.strictObject({
      channel: z.enum(['email', 'sms']),
      destination: z.string(),
      code: z.string(),
      text: z.string(),
      sentAt: z.string(),
    }),
  ),
})
const problem = z.object({ code: z.string(), retryAfter: z.int().optional() })

function createClient(gateway: () => Gateway) {
  const api = (path: string, init: RequestInit = {}) => fetch(`${gateway().origin}${path}`, init)
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    api(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const messages = async () => outbox.parse(await (await api('/sandbox/outbox')).json()).messages
  const requestCode = async (kind: 'otp' | 'recovery', destination: string) => {
    const channel = destination.includes('@') ? 'email' : 'sms'
    const response = await post(`/api/auth/${kind}/start`, { channel, destination })
    expect(response.status).toBe(200)
    return started.parse(await response.json())
  }
  return {
    api,
    post,
    bearer,
    messages,
    requestCode,
    /** Requests a code and reads it from the outbox. */
    codeFor: async (kind: 'otp' | 'recovery', destination: string) => {
      const { challengeId } = await requestCode(kind, destination)
      const message = (await messages()).find((sent) => sent.destination === destination && sent.code !== '')
      return { challengeId, code: message?.code ?? '' }
    },
    show: (kind: 'otp' | 'recovery', shown: object, headers: Record<string, string> = {}) =>
      post(`/api/auth/${kind}/${kind === 'otp' ? 'verify' : 'complete'}`, shown, headers),
    readStatus: async (token: string) => (await api('/api/wallets', { headers: bearer(token) })).status,
  }
}

const otherThan = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0')
const mailbox = 'Ada.Lovelace@example.com'
const asSent = mailbox.toLowerCase()
const newPhone = () => `+49151${String(Math.floor(Math.random() * 1e8)).padStart(8, '0')}`

describe.each(worlds)('one-time codes on $name', ({ isReal, isThere }) => {
  describe.runIf(isThere)('', () => {
    let dropDatabase = async () => {}
    let gateway: Gateway
    const { api, post, bearer, messages, requestCode, codeFor, show, readStatus } = createClient(
      () => gateway,
    )

    beforeAll(async () => {
      let env: Record<string, string> = {}
      if (isReal) {
        const database = await createTestDatabase(testServerUrl ?? '')
        dropDatabase = database.drop
        // A Redis database that no other test counts in.
        const redis = new URL(redisUrl ?? '')
        redis.pathname = '/9'
        env = { DATABASE_URL: database.url, REDIS_URL: redis.href }
      }
      gateway = await startGateway({
        CHAIN: 'simulated',
        RATE_MUTATIONS: '100000/60',
        RATE_OTP_IP: '1000/60',
        RATE_OTP_TOTAL: '9999999/60',
        RATE_OTP_COUNTRY: '9999999/60',
        RATE_OTP_RESEND: '1000/60',
        RATE_OTP_DESTINATION: '1000/60',
        RATE_RECOVERY: '1000/60',
        ...env,
      })
    })
    afterAll(async () => {
      await gateway?.stop()
      await dropDatabase()
    })

    /** Signs in by a mailbox of its own. */
    const newPerson = async () => {
      const asSent = newMailbox('ada')
      const response = await show('otp', await codeFor('otp', asSent))
      return { asSent, ...session.parse(await response.json()) }
    }

    it('sign in a new person by mail, with a wallet and a cookie', async () => {
      const { challengeId, resendAfter } = await requestCode('otp', mailbox)
      expect(resendAfter).toBe(0)
      const [message] = await messages()
      expect(message).toMatchObject({ channel: 'email', destination: asSent })
      expect(message?.text).toContain(message?.code)
      const response = await show('otp', { challengeId, code: message?.code })
      expect(response.status).toBe(200)
      expect(response.headers.get('set-cookie')).toMatch(/^bursar_session=eyJ.*HttpOnly/)
      const { account, sessionToken } = session.parse(await response.json())
      expect(account.displayName).toBe('a•••@example.com')
      expect(await readStatus(sessionToken)).toBe(200)
    })

    it('reach the same account from a differently written address of the same mailbox', async () => {
      const person = await newPerson()
      const { challengeId } = await requestCode('otp', person.asSent.replace(/^a/, 'A'))
      const [message] = await messages()
      const given = { challengeId, code: message?.code }
      const again = session.parse(await (await show('otp', given)).json())
      expect(again.account.id).toBe(person.account.id)
      const used = await show('otp', given)
      expect([used.status, problem.parse(await used.json()).code]).toEqual([401, 'unauthenticated'])
    })

    it('sign in by phone, and add the phone to the account that requests it', async () => {
      const [person, phone] = [await newPerson(), newPhone()]
      const linked = await show(
        'otp',
        { ...(await codeFor('otp', phone)), link: true },
        bearer(person.sessionToken),
      )
      expect(session.parse(await linked.json()).account.id).toBe(person.account.id)
      const byPhone = await show('otp', await codeFor('otp', phone))
      expect(session.parse(await byPhone.json()).account.id).toBe(person.account.id)
      const [sms] = await messages()
      expect(sms?.text.split('\n').at(-1)).toBe(`@localhost #${sms?.code}`)
    })

    it('sign nobody in from another site’s page', async () => {
      const response = await show('otp', await codeFor('otp', newMailbox('ada')), {
        origin: 'https://evil.example',
      })
      expect([response.status, problem.parse(await response.json()).code]).toEqual([
        403,
        'cross_site_request',
      ])
    })

    describe('wrong codes from unauthenticated callers', () => {
      const guessAt = async (destination: string) => {
        for (const kind of ['otp', 'recovery', 'otp'] as const) {
          const given = await codeFor(kind, destination)
          for (let tries = 0; tries < 5; tries += 1) {
            const wrong = await show(kind, { ...given, code: otherThan(given.code) })
            expect([wrong.status, problem.parse(await wrong.json()).code]).toEqual([401, 'unauthenticated'])
          }
        }
      }

      it('lock neither the account nor its session, agent or API key', async () => {
        const person = await newPerson()
        const agent = await newAgent()
        const grant = { name: 'Reports', scopes: ['wallets:read'] }
        const owner = bearer(person.sessionToken)
        await post('/api/agents/keys', { ...grant, publicKey: agent.jwk.x }, owner)
        const created = await post('/api/developer/keys', grant, owner)
        const apiKey = z.object({ key: z.string() }).parse(await created.json()).key
        await guessAt(person.asSent)
        const agentRead = await agent.fetch({ method: 'GET', url: `${gateway.origin}/api/wallets` })
        expect([await readStatus(person.sessionToken), agentRead.status, await readStatus(apiKey)]).toEqual([
          200, 200, 200,
        ])
        const right = await show('otp', await codeFor('otp', person.asSent))
        expect(right.status).toBe(200)
      })

      it('do not block recovery, which ends the old sessions', async () => {
        const person = await newPerson()
        await guessAt(person.asSent)
        const response = await show('recovery', await codeFor('recovery', person.asSent))
        const recovered = session.parse(await response.json())
        expect(recovered.account.id).toBe(person.account.id)
        expect(await readStatus(recovered.sessionToken)).toBe(200)
        expect(await readStatus(person.sessionToken)).toBe(401)
      })
    })

    it('names the invalid member of a request', async () => {
      for (const [body, path] of [
        [{ channel: 'fax', destination: mailbox }, 'channel'],
        [{ channel: 'email', destination: 'ada' }, 'destination'],
        [{ channel: 'sms', destination: '015123456789' }, 'destination'],
      ] as const) {
        const response = await post('/api/auth/otp/start', body)
        expect(response.status).toBe(400)
        expect(await response.json()).toMatchObject({ code: 'invalid_request', issues: [{ path }] })
      }
    })

    it('writes no code or address to the log', async () => {
      const [person, phone] = [await newPerson(), newPhone()]
      await show('otp', { ...(await codeFor('otp', phone)), link: true }, bearer(person.sessionToken))
      expect((await api('/healthz')).status).toBe(200)
      // Of this test, and of all that ran before.
      const sent = await messages()
      const codes = sent.map(({ code }) => code).filter((code) => code !== '')
      expect(codes.length).toBeGreaterThanOrEqual(2)
      for (const secret of [person.asSent, mailbox, phone, ...codes])
        expect(gateway.output()).not.toContain(secret)
    })
  })
})

describe('one-time codes with a mail server', () => {
  let gateway: Gateway
  let smtp: Awaited<ReturnType<typeof startSmtp>>
  const { requestCode, show, messages, codeFor, post } = createClient(() => gateway)
  beforeAll(async () => {
    smtp = await startSmtp({ user: 'bursar', password: 'p@ss' })
    gateway = await startGateway({
      CHAIN: 'simulated',
      SMTP_URL: `smtp://bursar:p%40ss@127.0.0.1:${smtp.port}`,
      SMTP_FROM: 'Bursar <no-reply@bursar.example>',
    })
  })
  afterAll(async () => {
    await gateway?.stop()
    await smtp?.close()
  })

  it('are sent there while it answers, and nowhere else; then they answer provider_unavailable without details', async () => {
    const { challengeId } = await requestCode('otp', mailbox)
    const [mail] = smtp.mails
    expect(mail?.to).toEqual([asSent])
    expect(await messages()).toEqual([])
    const code = /\d{6}/.exec(mail?.text ?? '')?.[0]
    expect((await show('otp', { challengeId, code })).status).toBe(200)
    expect((await show('otp', await codeFor('otp', newPhone()))).status).toBe(200)
    expect(smtp.mails).toHaveLength(1)

    await smtp.close()
    const response = await post('/api/auth/otp/start', { channel: 'email', destination: 'b@example.com' })
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '60'])
    const answerText = await response.text()
    expect(problem.parse(JSON.parse(answerText)).code).toBe('provider_unavailable')
    for (const text of [answerText, gateway.output()]) {
      expect(text).not.toContain('b@example.com')
      expect(text).not.toContain('p@ss')
      expect(text).not.toContain('p%40ss')
    }
    await expect.poll(() => gateway.output(), { timeout: 10_000 }).toContain('a message was not sent')
  })
})

describe('one-time codes with an SMS provider', () => {
  const sent: URLSearchParams[] = []
  const provider = createServer((request, response) => {
    void readStream(request).then((body) => {
      sent.push(new URLSearchParams(body))
      response.writeHead(201, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ sid: 'SM0123', status: 'queued' }))
    })
  })
  let gateway: Gateway
  const { requestCode, show, messages, codeFor } = createClient(() => gateway)
  beforeAll(async () => {
    provider.listen(0, '127.0.0.1')
    await once(provider, 'listening')
    const address = provider.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    gateway = await startGateway({
      CHAIN: 'simulated',
      TWILIO_ACCOUNT_SID: 'AC0123456789abcdef',
      TWILIO_AUTH_TOKEN: 'secret',
      TWILIO_FROM: '+15005550006',
      TWILIO_API_URL: `http://127.0.0.1:${address.port}`,
    })
  })
  afterAll(async () => {
    await gateway?.stop()
    provider.close()
  })

  it('are sent there, while mail goes to the outbox', async () => {
    const phone = newPhone()
    const { challengeId } = await requestCode('otp', phone)
    expect(sent.map((form) => form.get('To'))).toEqual([phone])
    expect(await messages()).toEqual([])
    const code = /#(\d{6})$/.exec(sent[0]?.get('Body') ?? '')?.[1]
    expect((await show('otp', { challengeId, code })).status).toBe(200)
    expect((await show('otp', await codeFor('otp', asSent))).status).toBe(200)
    expect(sent).toHaveLength(1)
  })
})
