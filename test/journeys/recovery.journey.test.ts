/** Account recovery over HTTP: what it revokes, what it lists, and the locks that only an administrator lifts. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import { computeTotp } from '../people/identity/signed-in.ts'
import { newAgent } from './agent.ts'
import { overSharedAndPostgres } from './both-engines.ts'
import {
  enrollMfa,
  newGuest,
  newMailbox,
  type Person,
  personFrom,
  requestJson,
  signInByEmail,
} from './people.ts'

const outbox = z.object({ messages: z.array(z.object({ destination: z.string(), code: z.string() })) })

const reviews = z.object({
  reviews: z.array(
    z.looseObject({ id: z.string(), accountId: z.string(), decidedBy: z.string().nullable() }),
  ),
})

overSharedAndPostgres('recovery', ({ gateway }) => {
  const send = (method: string, path: string, body?: unknown) =>
    requestJson(gateway().origin, method, path, body === undefined ? {} : { body })
  /** Begins a recovery, and reads its code. */
  const begin = async (destination: string) => {
    const { body } = await send('POST', '/api/auth/recovery/start', { channel: 'email', destination })
    const { messages } = outbox.parse((await send('GET', '/sandbox/outbox')).body)
    const code = messages.find((message) => message.destination === destination && message.code !== '')?.code
    return { challengeId: body.challengeId, publicKey: body.publicKey, code }
  }
  const recover = async (destination: string) => {
    const { challengeId, code } = await begin(destination)
    return send('POST', '/api/auth/recovery/complete', { challengeId, code })
  }
  const newAdmin = async (name: string): Promise<Person> => {
    const admin = await signInByEmail(gateway().origin, newMailbox(name))
    await admin.send('POST', '/sandbox/admin', {})
    return admin
  }

  it('lists every credential of the account, pauses its keys until the owner resumes them, disables webhooks and removes channels', async () => {
    const mailbox = newMailbox('grace')
    const owner = await signInByEmail(gateway().origin, mailbox)
    const agent = await newAgent()
    const policy = {
      perTransaction: { max: '5' },
      dailyBudget: { max: '50' },
      categories: { allow: ['transfer'] },
    }
    const grant = { name: 'Bot', scopes: ['wallets:read', 'wallets:transfer'], policy }
    const { body: bot } = await owner.send('POST', '/api/agents/keys', { ...grant, publicKey: agent.jwk })
    const { body: key } = await owner.send('POST', '/api/developer/keys', { ...grant, name: 'Key' })
    const { body: endpoint } = await owner.send('POST', '/api/webhook-endpoints', {
      url: 'http://127.0.0.1:9/',
    })
    expect(endpoint.status).toBe('active')
    const webhookUrl = 'http://127.0.0.1:9/services/T/B/x'
    expect(
      (await owner.send('POST', '/api/notifications/channels', { type: 'slack', webhookUrl })).status,
    ).toBe(200)
    const device = newAuthenticator(`http://localhost:${new URL(gateway().origin).port}`)
    const { body: registration } = await owner.send('POST', '/api/auth/webauthn', { action: 'register' })
    const made = device.create(registration.publicKey)
    await owner.send('POST', '/api/auth/webauthn', { action: 'register', credential: made })

    const { challengeId, code, publicKey } = await begin(mailbox)
    const credential = device.get(publicKey)
    const { status, body } = await send('POST', '/api/auth/recovery/complete', {
      challengeId,
      code,
      credential,
    })
    expect(status).toBe(200)
    expect(body.keys).toEqual([
      expect.objectContaining({ id: key.id, kind: 'developer', status: 'paused' }),
      expect.objectContaining({ id: bot.agentId, kind: 'agent', status: 'paused' }),
    ])
    expect(body.passkeys).toHaveLength(1)
    expect(body.signers).toEqual([])

    const again = personFrom(gateway().origin, body)
    const readStatus = async () => {
      const { keys } = (await again.send('GET', '/api/developer/keys')).body
      return z.array(z.looseObject({ status: z.string() })).parse(keys)[0]?.status
    }
    expect(await readStatus()).toBe('paused')
    const { body: receiver } = await again.send('GET', `/api/webhook-endpoints/${String(endpoint.id)}`)
    expect(receiver.status).toBe('disabled')
    expect((await again.send('GET', '/api/notifications/channels')).body.channels).toEqual([])
    const resume = await again.send('PATCH', `/api/developer/keys/${String(key.id)}`, { status: 'active' })
    expect([resume.status, await readStatus()]).toEqual([200, 'active'])
  })

  it('keeps the second factor: privileged operations still need it', async () => {
    const mailbox = newMailbox('hedy')
    const owner = await signInByEmail(gateway().origin, mailbox)
    const secret = await enrollMfa(owner)
    const { status, body } = await recover(mailbox)
    expect([status, body.account]).toMatchObject([200, { mfaEnrolled: true }])
    const again = personFrom(gateway().origin, body)
    const makeKey = () => again.send('POST', '/api/developer/keys', { name: 'K', scopes: ['wallets:read'] })
    expect(await makeKey()).toMatchObject({ status: 401, body: { code: 'step_up_required' } })
    const disable = { action: 'disable', code: '000000' }
    expect((await again.send('POST', '/api/security/mfa', disable)).status).toBe(401)
    // The time step after the one spent by the enrollment.
    const code = computeTotp(secret, new Date(Date.now() + 30_000))
    expect((await again.send('POST', '/api/security/mfa', { action: 'verify', code })).status).toBe(200)
    expect((await makeKey()).status).toBe(200)
  })

  const readOpenReviews = async (admin: Person, accountId: string, status = 'open') => {
    const { body } = await admin.send('GET', `/api/admin/reviews?limit=100&status=${status}`)
    return reviews.parse(body).reviews.filter((review) => review.accountId === accountId)
  }
  const decide = (admin: Person, id: string, decision: 'release' | 'block') =>
    admin.send('POST', `/api/admin/reviews/${id}`, { decision, reason: 'Spoke to the owner.' })
  /** A person with a key whom an administrator locked out, possibly after the person's own lock. */
  const lockedOut = async (admin: Person, { isLockedBefore = false } = {}) => {
    const mailbox = newMailbox('mallory')
    const person = await signInByEmail(gateway().origin, mailbox)
    const grant = { name: 'K', scopes: ['wallets:read'] }
    const { body: key } = await person.send('POST', '/api/developer/keys', grant)
    if (isLockedBefore) await person.send('POST', '/api/security/lock', {})
    const path = `/api/admin/accounts/${person.accountId}`
    expect((await admin.send('POST', `${path}/lock`, {})).status).toBe(200)
    return { person, mailbox, path, key: String(key.key) }
  }
  const statusBy = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` }
    return (await requestJson(gateway().origin, 'GET', '/api/wallets', { headers })).status
  }
  const signIn = async (mailbox: string) => {
    const { body } = await send('POST', '/api/auth/otp/start', { channel: 'email', destination: mailbox })
    const { messages } = outbox.parse((await send('GET', '/sandbox/outbox')).body)
    const code = messages.find(({ destination, code: sent }) => destination === mailbox && sent !== '')?.code
    const { challengeId } = body
    return send('POST', '/api/auth/otp/verify', { challengeId, code })
  }

  it('a recovery from an administrator’s lock waits for an administrator, and changes nothing until the release', async () => {
    const admin = await newAdmin('root')
    for (const isLockedBefore of [false, true]) {
      const { person, mailbox, key } = await lockedOut(admin, { isLockedBefore })
      const asked = await recover(mailbox)
      expect(asked).toEqual({ status: 202, body: { status: 'review' } })
      expect(await recover(mailbox)).toEqual(asked)
      const found = await readOpenReviews(admin, person.accountId)
      expect(found).toEqual([
        expect.objectContaining({
          operation: 'recovery',
          direction: null,
          lists: ['admin_lock'],
          proofs: ['code'],
          status: 'open',
        }),
      ])
      const { status: signedIn } = await signIn(mailbox)
      expect([await statusBy(person.token), await statusBy(key), signedIn]).toEqual([423, 423, 423])
      const id = found[0]?.id ?? ''
      expect(await decide(admin, id, 'release')).toMatchObject({
        status: 200,
        body: { status: 'released', releasedUntil: null },
      })
      expect((await decide(admin, id, 'block')).status).toBe(409)
      // The release opens no session, and leaves the keys paused: an intruder may have made some.
      expect(await statusBy(person.token)).toBe(401)
      const owner = personFrom(gateway().origin, (await signIn(mailbox)).body)
      expect((await owner.send('GET', '/api/developer/keys')).body).toMatchObject({
        keys: [{ status: 'paused' }],
      })
      expect((await recover(mailbox)).status).toBe(200)
      expect(await readOpenReviews(admin, person.accountId)).toEqual([])
      const { messages } = z
        .object({ messages: z.array(z.object({ destination: z.string(), text: z.string() })) })
        .parse((await send('GET', '/sandbox/outbox')).body)
      const told = messages.flatMap(({ destination, text }) => (destination === mailbox ? [text] : [])).join()
      expect(told).toMatch(/An administrator was asked to unlock your Bursar account/)
      expect(told).toMatch(/An administrator unlocked, after a recovery, and paused the keys of your/)
    }
  })

  it('a recovery that an administrator refuses stays refused for that lock, and only for it', async () => {
    const admin = await newAdmin('root')
    const { person, mailbox, path } = await lockedOut(admin)
    await recover(mailbox)
    const [{ id } = { id: '' }] = await readOpenReviews(admin, person.accountId)
    expect((await decide(admin, id, 'block')).status).toBe(200)
    for (let times = 0; times < 2; times += 1)
      expect(await recover(mailbox)).toMatchObject({ status: 423, body: { code: 'account_locked' } })
    expect(await readOpenReviews(admin, person.accountId)).toEqual([])
    expect(await readOpenReviews(admin, person.accountId, 'blocked')).toMatchObject([
      { id, decidedBy: admin.accountId, reason: 'Spoke to the owner.' },
    ])
    await admin.send('POST', `${path}/unlock`, {})
    expect((await recover(mailbox)).status).toBe(200)
    await admin.send('POST', `${path}/lock`, {})
    expect((await recover(mailbox)).status).toBe(202)
  })

  it('a recovery that waits ends with an administrator’s unlocking', async () => {
    const admin = await newAdmin('root')
    const { person, mailbox, path, key } = await lockedOut(admin)
    await recover(mailbox)
    const [{ id } = { id: '' }] = await readOpenReviews(admin, person.accountId)
    await admin.send('POST', `${path}/unlock`, {})
    expect(await statusBy(key)).toBe(200)
    expect(await readOpenReviews(admin, person.accountId, 'released')).toMatchObject([
      { id, decidedBy: admin.accountId },
    ])
    await admin.send('POST', `${path}/lock`, {})
    // An old release unlocks no later lock.
    expect((await decide(admin, id, 'release')).status).toBe(409)
    expect(await statusBy(key)).toBe(423)
  })

  it('asks no administrator without the whole proof, and lets nobody else decide', async () => {
    const admin = await newAdmin('root')
    const { person, mailbox } = await lockedOut(admin)
    const { challengeId, code } = await begin(mailbox)
    const wrong = String((Number(code) + 1) % 1_000_000).padStart(6, '0')
    const shown = await send('POST', '/api/auth/recovery/complete', { challengeId, code: wrong })
    expect(shown.status).toBe(401)
    expect(await readOpenReviews(admin, person.accountId)).toEqual([])
    expect((await send('POST', '/api/auth/recovery/complete', { challengeId, code })).status).toBe(202)
    // The code is used up.
    expect((await send('POST', '/api/auth/recovery/complete', { challengeId, code })).status).toBe(401)
    const [{ id } = { id: '' }] = await readOpenReviews(admin, person.accountId)
    const stranger = await newGuest(gateway().origin)
    expect((await decide(stranger, id, 'release')).status).toBe(403)
    expect((await decide(person, id, 'release')).status).toBe(423)
    expect(await statusBy(person.token)).toBe(423)
  })

  const recoverGuest = async (accountId: string) => {
    const { body } = await send('POST', '/api/auth/recovery/start', {
      channel: 'guest',
      destination: accountId,
    })
    const { challengeId, code } = body
    return send('POST', '/api/auth/recovery/complete', { challengeId, code })
  }

  it('returns the account to a guest who locked it', async () => {
    const guest = await newGuest(gateway().origin)
    const open = await send('POST', '/api/auth/recovery/start', {
      channel: 'guest',
      destination: guest.accountId,
    })
    const { body: locked } = await guest.send('POST', '/api/security/lock', {})
    expect(locked).toEqual({ locked: true, recovery: ['guest'] })
    expect((await guest.send('GET', '/api/wallets')).status).toBe(423)
    // The code of a guest who was not locked is then worthless.
    const { challengeId, code } = open.body
    expect((await send('POST', '/api/auth/recovery/complete', { challengeId, code })).status).toBe(401)

    const { status, body } = await recoverGuest(guest.accountId)
    expect(status).toBe(200)
    const back = personFrom(gateway().origin, body)
    expect(back.accountId).toBe(guest.accountId)
    expect((await back.send('GET', '/api/wallets')).status).toBe(200)
  })

  it('a recovery of a guest whom an administrator locked waits too, and says that only an id was shown', async () => {
    const guest = await newGuest(gateway().origin)
    const admin = await newAdmin('operator')
    await admin.send('POST', `/api/admin/accounts/${guest.accountId}/lock`, {})
    const { status, body } = await recoverGuest(guest.accountId)
    expect([status, body]).toEqual([202, { status: 'review' }])
    expect(await readOpenReviews(admin, guest.accountId)).toMatchObject([{ proofs: ['guest'] }])
    expect((await guest.send('GET', '/api/wallets')).status).toBe(423)
  })
})
