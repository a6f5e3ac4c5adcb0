/** Session tokens in answers: programs get them in the body, browsers in the cookie only, on every route that has one. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overSharedAndPostgres } from '../../journeys/both-engines.ts'
import { newBrowser } from '../../journeys/browser.ts'
import { lastCodeTo, newGuest, newMailbox } from '../../journeys/people.ts'
import { newAuthenticator } from '../../people/identity/authenticator.ts'

const answer = z.record(z.string(), z.unknown())
const catalogue = z.object({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({
        operationId: z.string(),
        responses: z.looseObject({ 200: z.looseObject({}).optional() }),
      }),
    ),
  ),
  components: z.looseObject({}),
})

overSharedAndPostgres('a session token', ({ gateway }) => {
  /** The headers of a page of the gateway, or of a program. */
  const buildHeaders = (isBrowser: boolean) => (isBrowser ? { 'sec-fetch-site': 'same-origin' } : {})
  const send = async (isBrowser: boolean, route: string, body?: unknown, headers = {}) => {
    const [method = '', path = ''] = route.split(' ')
    const response = await fetch(`${gateway().origin}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...buildHeaders(isBrowser), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const cookies = response.headers.getSetCookie().filter((line) => /^bursar_session=eyJ/.test(line))
    return { status: response.status, body: answer.parse(await response.json()), cookies }
  }
  type Sent = Awaited<ReturnType<typeof send>>
  const codeFor = async (kind: 'otp' | 'recovery', destination: string) => {
    const { body } = await send(false, `POST /api/auth/${kind}/start`, { channel: 'email', destination })
    return { challengeId: body.challengeId, code: await lastCodeTo(gateway().origin, destination) }
  }
  const signInByMail = async (isBrowser: boolean, destination = newMailbox('token')) =>
    send(isBrowser, 'POST /api/auth/otp/verify', await codeFor('otp', destination))
  const device = () => newAuthenticator(`http://localhost:${new URL(gateway().origin).port}`)
  const bearer = ({ token }: { token: string }) => ({ authorization: `Bearer ${token}` })

  /** Every operation whose answer holds a session token, by its name. */
  const openings: Record<string, (isBrowser: boolean) => Promise<Sent>> = {
    'auth.guest': (isBrowser) => send(isBrowser, 'POST /api/auth/guest', {}),
    'auth.otp.verify': (isBrowser) => signInByMail(isBrowser),
    'auth.webauthn': async (isBrowser) => {
      const key = device()
      const { body } = await send(isBrowser, 'POST /api/auth/webauthn', { action: 'register' })
      const registered = { action: 'register', credential: key.create(body.publicKey) }
      const made = await send(isBrowser, 'POST /api/auth/webauthn', registered)
      expect(made.status).toBe(200)
      const { body: asked } = await send(isBrowser, 'POST /api/auth/webauthn', { action: 'login' })
      return send(isBrowser, 'POST /api/auth/webauthn', {
        action: 'login',
        credential: key.get(asked.publicKey),
      })
    },
    'auth.recovery.complete': async (isBrowser) => {
      const mailbox = newMailbox('recovered')
      await signInByMail(false, mailbox)
      return send(isBrowser, 'POST /api/auth/recovery/complete', await codeFor('recovery', mailbox))
    },
    'auth.identity_provider.google': (isBrowser) => signInWith('google', isBrowser),
    'auth.identity_provider.apple': (isBrowser) => signInWith('apple', isBrowser),
    'auth.devices.outcome': async (isBrowser) => {
      const owner = await newGuest(gateway().origin)
      const { body } = await send(false, 'POST /api/auth/devices', { name: 'Command line' })
      await owner.send('POST', `/api/auth/devices/${String(body.code)}/allow`, {})
      const { secret } = body
      return send(isBrowser, `POST /api/auth/devices/${String(body.code)}/outcome`, { secret })
    },
    'auth.session': async (isBrowser) =>
      send(isBrowser, 'GET /api/auth/session', undefined, bearer(await newGuest(gateway().origin))),
  }
  const signInWith = async (name: string, isBrowser: boolean) => {
    const { body } = await send(isBrowser, `POST /api/auth/${name}`, {})
    const visitor = newBrowser(({ pathname }) => pathname.startsWith('/sign-in/'))
    const { url } = await visitor.visit(String(body.authorizationUrl))
    const back = await visitor.visit(url.href, { action: 'sign-in', email: newMailbox(name), name: 'Ada' })
    const { code, state } = Object.fromEntries(back.url.searchParams)
    return send(isBrowser, `POST /api/auth/${name}`, { code, state })
  }

  it.each(Object.keys(openings))(
    'a token of %s is in the body for programs, and in the cookie only for browsers',
    async (name) => {
      const program = await openings[name]?.(false)
      expect([program?.status, JSON.stringify(program?.body)]).toEqual([
        200,
        expect.stringMatching(/"sessionToken":"eyJ/),
      ])
      const browser = await openings[name]?.(true)
      expect(browser?.status).toBe(200)
      expect(JSON.stringify(browser?.body)).not.toMatch(/sessionToken|eyJ/)
      expect(browser?.cookies).toEqual([expect.stringMatching(/; HttpOnly; SameSite=Lax$/)])
      const [cookie = ''] = browser?.cookies[0]?.split(';') ?? []
      const session = await send(true, 'GET /api/auth/session', undefined, { cookie })
      expect(session).toMatchObject({ status: 200, body: { sessionToken: null } })
    },
  )

  it('is in the answer of no other operation', async () => {
    const { paths, components } = catalogue.parse((await send(false, 'GET /api/openapi.json')).body)
    const schemas = Object.entries(components.schemas ?? {})
    const isHolder = (text: string, seen: readonly string[] = []): boolean =>
      text.includes('"sessionToken"') ||
      schemas.some(
        ([name, schema]) =>
          !seen.includes(name) &&
          text.includes(`#/components/schemas/${name}"`) &&
          isHolder(JSON.stringify(schema), [...seen, name]),
      )
    const found = Object.values(paths).flatMap((methods) =>
      Object.values(methods).flatMap(({ operationId, responses }) =>
        isHolder(JSON.stringify(responses[200] ?? {})) ? [operationId] : [],
      ),
    )
    expect([...new Set(found)].sort()).toEqual(Object.keys(openings).sort())
  })

  it('does not reach a page of another site', async () => {
    const owner = await newGuest(gateway().origin)
    for (const site of ['cross-site', 'same-site']) {
      const headers = { ...bearer(owner), 'sec-fetch-site': site }
      const read = await send(false, 'GET /api/auth/session', undefined, headers)
      expect(JSON.stringify(read.body)).not.toMatch(/sessionToken|eyJ/)
      const opened = await send(false, 'POST /api/auth/guest', {}, { 'sec-fetch-site': site })
      expect([opened.status, opened.cookies]).toEqual([403, []])
    }
  })
})
