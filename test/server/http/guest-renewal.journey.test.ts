/** A guest's short token over HTTP: browsers renew it by a cookie for thirty days, programs by asking in time. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from '../../journeys/both-engines.ts'
import { signInByEmail } from '../../journeys/people.ts'

const DAY = 86_400
const MINUTE = 60
const session = z.looseObject({
  account: z.looseObject({ id: z.string(), guest: z.boolean() }),
  sessionToken: z.string().nullish(),
  expiresAt: z.string(),
  hint: z.string().optional(),
})

overBothEngines('a guest', {}, ({ gateway, pass, now }) => {
  /** Cookies as a browser keeps them: none after its Max-Age. */
  const newJar = () => {
    const jar = new Map<string, { value: string; until: number }>()
    return {
      jar,
      keep: (response: Response) => {
        for (const line of response.headers.getSetCookie()) {
          const [, name = '', value = '', age = ''] = /^([^=]+)=([^;]*).*?Max-Age=(\d+)/.exec(line) ?? []
          if (Number(age) === 0) jar.delete(name)
          else jar.set(name, { value, until: now().getTime() + Number(age) * 1000 })
        }
      },
      header: () =>
        [...jar]
          .filter(([, { until }]) => until > now().getTime())
          .map(([name, { value }]) => `${name}=${value}`)
          .join('; '),
    }
  }
  // Passkeys are bound to this name, so pages redirect the address to it.
  const site = () => `http://localhost:${new URL(gateway().origin).port}`
  const newVisitor = () => {
    const cookies = newJar()
    const send = async (route: string, body?: unknown, headers: Record<string, string> = {}) => {
      const [method = '', path = ''] = route.split(' ')
      const response = await fetch(`${site()}${path}`, {
        method,
        redirect: 'manual',
        headers: {
          'sec-fetch-site': 'same-origin',
          'content-type': 'application/json',
          cookie: cookies.header(),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      cookies.keep(response)
      return response
    }
    const readAccount = async () => {
      const response = await send('GET /api/auth/session')
      return response.ok ? session.parse(await response.json()).account.id : response.status
    }
    return { ...cookies, send, readAccount }
  }
  const newGuest = async () => {
    const visitor = newVisitor()
    const { account } = session.parse(await (await visitor.send('POST /api/auth/guest', {})).json())
    return { ...visitor, accountId: account.id }
  }
  const lifetimes = (response: Response) =>
    response.headers.getSetCookie().map((line) => /^(\w+)=.*(Max-Age=\d+)/.exec(line)?.slice(1).join(' '))
  /** A cookie's name on this gateway: browsers send a host's cookies to every port. */
  const nameCookie = (name: string) => `${name}_${new URL(gateway().origin).port}`
  const expectRenewal = () => [
    'bursar_session Max-Age=900',
    `${nameCookie('bursar_session')} Max-Age=900`,
    `${nameCookie('bursar_renewal')} Max-Age=2592000`,
  ]

  it('gets a token of 15 minutes and a renewal of 30 days, both hidden from scripts', async () => {
    const response = await newVisitor().send('POST /api/auth/guest', {})
    expect(lifetimes(response)).toEqual(expectRenewal())
    for (const line of response.headers.getSetCookie()) expect(line).toMatch(/; HttpOnly; SameSite=Lax$/)
    const { expiresAt } = session.parse(await response.json())
    expect(Date.parse(expiresAt) - now().getTime()).toBeLessThanOrEqual(15 * MINUTE * 1000)
  })

  it('keeps the account in a browser that comes back after days, by a call or by a page', async () => {
    const guest = await newGuest()
    pass(16 * MINUTE)
    expect(guest.header()).toMatch(/^bursar_renewal_\d+=/)
    expect(await guest.readAccount()).toBe(guest.accountId)
    expect(guest.header()).toMatch(/bursar_session=/)
    pass(20 * DAY)
    const page = await guest.send('GET /agents', undefined, { accept: 'text/html' })
    expect([page.status, lifetimes(page)]).toEqual([200, expectRenewal()])
    pass(20 * DAY)
    const away = await guest.send('GET /sign-in')
    expect([away.status, away.headers.get('location')]).toEqual([302, '/'])
    expect(await guest.readAccount()).toBe(guest.accountId)
  })

  it('may change things by the renewal only from a page of the gateway', async () => {
    const guest = await newGuest()
    pass(16 * MINUTE)
    const body = { name: 'K', scopes: ['wallets:read'] }
    const evil = await guest.send('POST /api/developer/keys', body, {
      origin: 'https://evil.example',
      'sec-fetch-site': 'cross-site',
    })
    expect([evil.status, evil.headers.getSetCookie()]).toEqual([403, []])
    expect((await guest.send('POST /api/developer/keys', body)).status).toBe(200)
  })

  it('is renewed too where the expired session cookie is still sent', async () => {
    const guest = await newGuest()
    const cookie = guest.header()
    pass(16 * MINUTE)
    const response = await fetch(`${gateway().origin}/api/auth/session`, { headers: { cookie } })
    expect([response.status, session.parse(await response.json()).account.id]).toEqual([200, guest.accountId])
  })

  it('is gone with a sign-out, a new sign-in, thirty days, and a session that was ended', async () => {
    const left = await newGuest()
    const kept = left.header()
    expect((await left.send('POST /api/auth/logout', {})).status).toBe(200)
    expect(left.header()).toBe('')

    const replaced = await newGuest()
    const mail = 'renewed@example.com'
    const start = await replaced.send('POST /api/auth/otp/start', { channel: 'email', destination: mail })
    const { challengeId } = z.object({ challengeId: z.string() }).parse(await start.json())
    const { messages } = z
      .object({ messages: z.array(z.object({ destination: z.string(), code: z.string() })) })
      .parse(await (await replaced.send('GET /sandbox/outbox')).json())
    const code = messages.find(({ destination }) => destination === mail)?.code
    expect((await replaced.send('POST /api/auth/otp/verify', { challengeId, code })).status).toBe(200)
    expect(await replaced.readAccount()).not.toBe(replaced.accountId)
    expect([...replaced.jar.keys()].sort()).toEqual([
      nameCookie('bursar_browser'),
      'bursar_session',
      nameCookie('bursar_session'),
    ])

    const unused = await newGuest()
    const renewal = unused.header()
    const statusBy = async (cookie: string) =>
      (await fetch(`${gateway().origin}/api/auth/session`, { headers: { cookie } })).status
    expect(await statusBy(kept)).toBe(401)
    pass(30 * DAY + 1)
    expect([await statusBy(kept), await statusBy(renewal)]).toEqual([401, 401])
  })

  it('is refused with two renewals, one of which a neighbour may have planted', async () => {
    const [mine, planted] = [await newGuest(), await newGuest()]
    pass(16 * MINUTE)
    const cookie = `${planted.header()}; ${mine.header()}`
    const response = await fetch(`${gateway().origin}/api/auth/session`, { headers: { cookie } })
    expect(response.status).toBe(400)
  })

  it('leaves other credentials alone', async () => {
    const guest = await newGuest()
    pass(16 * MINUTE)
    const person = await signInByEmail(gateway().origin, 'beside@example.com')
    const authorization = `Bearer ${person.token}`
    const response = await guest.send('GET /api/auth/session', undefined, { authorization })
    expect(session.parse(await response.json()).account.id).toBe(person.accountId)
  })

  it('tells programs how to renew, and serves one that renews in time, not one that does not', async () => {
    const post = await fetch(`${gateway().origin}/api/auth/guest`, { method: 'POST' })
    const { sessionToken, hint, account } = session.parse(await post.json())
    expect(hint).toContain('GET /api/auth/session')
    const read = (token: unknown) =>
      fetch(`${gateway().origin}/api/auth/session`, { headers: { authorization: `Bearer ${String(token)}` } })
    let token = sessionToken
    for (let times = 0; times < 3; times += 1) {
      pass(14 * MINUTE)
      const renewed = session.parse(await (await read(token)).json())
      expect(renewed.account.id).toBe(account.id)
      token = renewed.sessionToken
    }
    expect((await read(sessionToken)).status).toBe(401)
    pass(16 * MINUTE)
    expect((await read(token)).status).toBe(401)
  })
})
