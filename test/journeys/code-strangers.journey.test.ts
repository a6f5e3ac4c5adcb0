/** Sign-in and recovery while strangers ask for codes to the owner's address, and flood the owner's network address. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from './both-engines.ts'
import { lastCodeTo, newMailbox } from './people.ts'

const env = {
  TRUSTED_PROXIES: '127.0.0.0/8',
  RATE_MUTATIONS: '150/60',
  RATE_OTP_RESEND: '100/60',
  RATE_OTP_DESTINATION: '2/3600',
  RATE_OTP_IP: '2/3600',
  RATE_OTP_TOTAL: '60/86400',
  RATE_OTP_COUNTRY: '3/86400',
  RATE_RECOVERY: '2/3600',
  RATE_MESSAGES: '8/3600',
}

const started = z.object({ challengeId: z.string() })

overBothEngines('codes while strangers ask', env, ({ gateway }) => {
  let networks = 0
  const newAddress = () => {
    networks += 1
    return `198.51.${Math.floor(networks / 250)}.${(networks % 250) + 1}`
  }
  const post = (
    path: string,
    body: object,
    { from = newAddress(), cookie }: { from?: string; cookie?: string } = {},
  ) =>
    fetch(`${gateway().origin}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-forwarded-for': from,
        ...(cookie === undefined ? {} : { cookie, origin: gateway().origin }),
      },
      body: JSON.stringify(body),
    })
  type Client = Parameters<typeof post>[2]
  const ask = (kind: 'otp' | 'recovery', destination: string, client: Client = {}) =>
    post(`/api/auth/${kind}/start`, { channel: 'email', destination }, client)
  const askOk = async (kind: 'otp' | 'recovery', destination: string, client: Client = {}) => {
    const response = await ask(kind, destination, client)
    expect(response.status).toBe(200)
    const { challengeId } = started.parse(await response.json())
    return { challengeId, code: await lastCodeTo(gateway().origin, destination) }
  }
  const verify = (shown: object, client: Client = {}) => post('/api/auth/otp/verify', shown, client)
  /** Signs in by mail. @returns the cookie by which the browser stays known. */
  const newOwner = async (mailbox: string, cookie?: string) => {
    const response = await verify(await askOk('otp', mailbox, cookie === undefined ? {} : { cookie }))
    expect(response.status).toBe(200)
    const cookies = response.headers.getSetCookie().map((line) => line.split(';')[0] ?? '')
    return { known: cookies.find((line) => line.startsWith('bursar_browser_')) ?? '' }
  }
  const wrong = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0')

  it('are ended neither by the requests nor by the wrong tries of others', async () => {
    const mailbox = newMailbox('ada')
    for (const kind of ['otp', 'recovery'] as const) {
      const mine = await askOk(kind, mailbox)
      const theirs = await askOk(kind, mailbox)
      expect(theirs.challengeId).not.toBe(mine.challengeId)
      const path = kind === 'otp' ? '/api/auth/otp/verify' : '/api/auth/recovery/complete'
      for (let tries = 0; tries < 6; tries += 1)
        expect((await post(path, { ...theirs, code: wrong(theirs.code) })).status).toBe(401)
      expect((await post(path, mine)).status).toBe(200)
    }
  })

  it('are sent again while they are open, without counting, up to the limit of messages', async () => {
    const [mailbox, from] = [newMailbox('ada'), newAddress()]
    const first = await askOk('otp', mailbox, { from })
    for (let again = 0; again < 6; again += 1) expect(await askOk('otp', mailbox, { from })).toEqual(first)
    expect((await ask('otp', mailbox)).status).toBe(200)
    // Eight messages in an hour, whoever asks for them.
    expect((await ask('otp', mailbox, { from })).status).toBe(429)
    expect((await verify(first)).status).toBe(200)
  })

  it('reach a browser that its owner signed in with before, whatever strangers have used up', async () => {
    const mailbox = newMailbox('ada')
    const { known } = await newOwner(mailbox)
    const attacker = await newOwner(newMailbox('eve'))
    const statuses = await Promise.all(Array.from({ length: 10 }, () => ask('otp', mailbox)))
    expect(statuses.filter(({ status }) => status === 200)).toHaveLength(1)
    const forged = known.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
    for (const cookie of [attacker.known, forged, known.replace(/=.*/, '=x')])
      expect((await ask('otp', mailbox, { cookie })).status).toBe(429)
    const again = await newOwner(mailbox, known)
    expect(again.known.split('.')[1]).toBe(known.split('.')[1])
    // Its own budget ends too.
    expect((await ask('otp', mailbox, { cookie: known })).status).toBe(200)
  })

  it('are texts that a country has a budget for, new or sent again', async () => {
    const [destination, from] = ['+4915112345678', newAddress()]
    for (const kind of ['otp', 'recovery']) {
      const text = () => post(`/api/auth/${kind}/start`, { channel: 'sms', destination }, { from })
      const statuses: number[] = []
      for (let times = 0; times < 6; times += 1) statuses.push((await text()).status)
      // One new code, and as many repetitions as new codes.
      expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
    }
  })

  it('are not sent to satellite and premium numbers', async () => {
    for (const kind of ['otp', 'recovery'])
      for (const destination of [
        '+881612345678',
        '+870773123456',
        '+61147123456',
        '+19002345678',
        '+97912345678',
      ]) {
        const response = await post(`/api/auth/${kind}/start`, { channel: 'sms', destination })
        expect([destination, response.status]).toEqual([destination, 400])
      }
  })

  it('sign in from an address that is flooded, in a browser that is known there', async () => {
    const [mailbox, home] = [newMailbox('ada'), newAddress()]
    const { known: cookie } = await newOwner(mailbox)
    await Promise.all(Array.from({ length: 160 }, () => post('/api/nowhere', {}, { from: home })))
    expect((await ask('otp', mailbox, { from: home })).status).toBe(429)
    const shown = await askOk('otp', mailbox, { from: home, cookie })
    expect((await verify(shown, { from: home })).status).toBe(429)
    expect((await verify(shown, { from: home, cookie })).status).toBe(200)
  })

  it('are limited for all strangers, by /48 and by day, for sign-in and recovery apart', async () => {
    const mailbox = newMailbox('ada')
    const { known: cookie } = await newOwner(mailbox)
    const flood = async (kind: 'otp' | 'recovery', network: string) => {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, at) =>
          ask(kind, newMailbox('x'), { from: `2001:db8:${network}:${at.toString(16)}::1` }),
        ),
      )
      return answers.filter(({ status }) => status === 200).length
    }
    expect(await flood('otp', 'a')).toBe(32)
    await flood('otp', 'b')
    // The day is over for strangers who sign in, and only for them.
    expect((await ask('otp', newMailbox('bob'))).status).toBe(429)
    expect((await verify(await askOk('otp', mailbox, { cookie }))).status).toBe(200)
    expect((await ask('recovery', newMailbox('bob'))).status).toBe(200)
    for (const network of ['a', 'b']) await flood('recovery', network)
    expect((await ask('recovery', mailbox)).status).toBe(429)
    const shown = await askOk('recovery', mailbox, { cookie })
    expect((await post('/api/auth/recovery/complete', shown, { cookie })).status).toBe(200)
  })
})
