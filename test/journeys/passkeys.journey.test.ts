/** A person with a passkey, over real HTTP against the built gateway. */
import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import { sharedGateway } from './gateway.ts'

const challenge = z.strictObject({
  challengeId: z.string(),
  publicKey: z.looseObject({ challenge: z.string() }),
})
const session = z.strictObject({
  personId: z.string(),
  role: z.literal('owner'),
  account: z.looseObject({ id: z.string(), displayName: z.string() }),
  sessionToken: z.string(),
  expiresAt: z.string(),
})
const list = z.strictObject({
  passkeys: z.array(z.looseObject({ id: z.string() })),
  nextCursor: z.string().nullable(),
})

const origin = sharedGateway()
/** Origin of the pages. */
const page = `http://localhost:${new URL(origin).port}`

const post = (body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${origin}/api/auth/webauthn`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
const begin = async (action: 'register' | 'login', headers?: Record<string, string>) => {
  const response = await post({ action, credential: null, displayName: 'Ada' }, headers)
  expect([response.status, response.headers.get('set-cookie')]).toEqual([200, null])
  return challenge.parse(await response.json())
}
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const get = (path: string, headers: Record<string, string>, method = 'GET') =>
  fetch(`${origin}${path}`, { method, headers })

describe('a person with a passkey', () => {
  it('registers, has a wallet, signs in again, adds, lists and removes passkeys', async () => {
    const device = newAuthenticator(page)
    const first = await begin('register')
    const made = await post({
      action: 'register',
      challengeId: first.challengeId,
      credential: device.create(first.publicKey),
    })
    expect(made.headers.get('set-cookie')).toMatch(/^bursar_session=.+; Path=\/; HttpOnly; SameSite=Lax$/)
    const ada = session.parse(await made.json())
    expect(ada.account).toMatchObject({ displayName: 'Ada', guest: false, role: 'user' })
    const wallet = await get('/api/wallets', bearer(ada.sessionToken))
    expect([wallet.status, await wallet.json()]).toMatchObject([
      200,
      { safeAddress: expect.stringMatching(/^0x/) },
    ])

    const again = await begin('login')
    const entered = await post({ action: 'login', credential: device.get(again.publicKey) })
    expect(entered.status).toBe(200)
    const { account, sessionToken } = session.parse(await entered.json())
    expect(account.id).toBe(ada.account.id)

    const cookie = { cookie: `bursar_session=${sessionToken}`, origin: page }
    const more = await begin('register', cookie)
    const second = newAuthenticator(page)
    const added = await post({ action: 'register', credential: second.create(more.publicKey) }, cookie)
    // The cookie is renewed, and its token is not returned to page scripts.
    const stays = session.extend({ sessionToken: z.null() }).parse(await added.json())
    expect([added.status, stays.account.id]).toEqual([200, account.id])

    const { passkeys } = list.parse(await (await get('/api/security/passkeys', bearer(sessionToken))).json())
    expect(passkeys).toHaveLength(2)
    const removals = []
    for (const { id } of passkeys)
      removals.push((await get(`/api/security/passkeys/${id}`, bearer(sessionToken), 'DELETE')).status)
    expect(removals).toEqual([200, 409])
  })

  it('signs in only by a sign-in challenge, and pays only by a payment challenge', async () => {
    const own = newAuthenticator(page)
    const { publicKey } = await begin('register')
    const made = await post({ action: 'register', credential: own.create(publicKey) })
    const { sessionToken } = session.parse(await made.json())
    const { publicKey: signIn } = await begin('login')
    expect(Buffer.from(signIn.challenge, 'base64url').toString('latin1')).toMatch(/^bursar sign-in: /)

    const send = async (path: string, body: object) => {
      const headers = { 'content-type': 'application/json', ...bearer(sessionToken) }
      const response = await fetch(`${origin}${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      return { status: response.status, body: z.looseObject({}).parse(await response.json()) }
    }
    const transfer = { destination: `0x${'1'.repeat(40)}`, amount: '1' }
    const { body: intent } = await send('/api/wallets/transfer/intent', transfer)
    expect(Buffer.from(String(intent.challenge), 'base64url')).toHaveLength(32)

    const signedIn = Buffer.from(JSON.stringify(own.get(signIn))).toString('base64url')
    expect(await send('/api/wallets/transfer', { ...transfer, signature: signedIn })).toMatchObject({
      status: 403,
      body: { code: 'signature_rejected' },
    })
    const paid = own.get({
      challenge: intent.challenge,
      rpId: 'localhost',
      allowCredentials: [],
      userVerification: 'required',
    })
    expect((await post({ action: 'login', credential: paid })).status).toBe(401)
  })

  it('is offered challenges only for our pages’ domain, and answers only from our origin', async () => {
    const evil = { origin: 'https://evil.example' }
    const response = await post({ action: 'login' }, evil)
    expect([response.status, await response.json()]).toMatchObject([403, { code: 'cross_site_request' }])
    const listed = await get('/api/security/passkeys', {})
    expect([listed.status, await listed.json()]).toMatchObject([401, { code: 'unauthenticated' }])
  })

  it('gets the same error for every wrong sign-in', async () => {
    const { publicKey } = await begin('login')
    const otherDevice = newAuthenticator(page)
    otherDevice.create((await begin('register')).publicKey)
    const response = await post({ action: 'login', credential: otherDevice.get(publicKey) })
    expect([response.status, await response.json()]).toMatchObject([
      401,
      { code: 'unauthenticated', detail: 'The passkey was not accepted.' },
    ])
    expect(response.headers.get('set-cookie')).toBeNull()
  })
})

describe('the Host header', () => {
  const answerTo = (host: string, path: string, body?: string) =>
    new Promise<{ status: number; location: string | undefined; text: string }>((resolve, reject) => {
      const sent = request(`${origin}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { host, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      })
      sent.on('error', reject).on('response', (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part
        })
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, location: response.headers.location, text }),
        )
      })
      sent.end(body)
    })

  it('does not influence the relying party, and foreign names are rejected', async () => {
    const { port } = new URL(origin)
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
      const login = await answerTo(host, '/api/auth/webauthn', '{"action":"login"}')
      expect(challenge.parse(JSON.parse(login.text)).publicKey).toMatchObject({ rpId: 'localhost' })
    }
    for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1:1', `127.0.0.2:${port}`]) {
      const { status, location } = await answerTo(host, '/sign-in')
      expect([host, status, location]).toEqual([host, 403, undefined])
    }
  })

  it('causes no redirect, except from our own address to its name', async () => {
    const { port } = new URL(origin)
    for (const host of [`127.0.0.1:${port}`, `[::1]:${port}`])
      expect(await answerTo(host, '/sign-in?a=b')).toMatchObject({
        status: 302,
        location: `${page}/sign-in?a=b`,
      })
    expect(await answerTo(`localhost:${port}`, '/sign-in')).toMatchObject({
      status: 200,
      location: undefined,
    })
  })
})
