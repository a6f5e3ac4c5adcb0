/** Account recovery over HTTP: what it revokes, what it lists, and the locks that only an administrator lifts. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { newAuthenticator } from '../identity/authenticator.ts'
import { totpOf } from '../identity/signed-in.ts'
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

  it('lists every credential of the account, pauses its keys until the owner resumes them, and disables webhooks', async () => {
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
    const statusOf = async () => {
      const { keys } = (await again.send('GET', '/api/developer/keys')).body
      return z.array(z.looseObject({ status: z.string() })).parse(keys)[0]?.status
    }
    expect(await statusOf()).toBe('paused')
    const { body: receiver } = await again.send('GET', `/api/webhook-endpoints/${String(endpoint.id)}`)
    expect(receiver.status).toBe('disabled')
    const resume = await again.send('PATCH', `/api/developer/keys/${String(key.id)}`, { status: 'active' })
    expect([resume.status, await statusOf()]).toEqual([200, 'active'])
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
    const code = totpOf(secret, new Date(Date.now() + 30_000))
    expect((await again.send('POST', '/api/security/mfa', { action: 'verify', code })).status).toBe(200)
    expect((await makeKey()).status).toBe(200)
  })

  it('leaves an administrator’s lock to administrators, even after the person’s own lock', async () => {
    const admin = await newAdmin('root')
    for (const [name, isLockedBefore] of [
      [newMailbox('mallory'), false],
      [newMailbox('trent'), true],
    ] as const) {
      const person = await signInByEmail(gateway().origin, name)
      if (isLockedBefore) await person.send('POST', '/api/security/lock', {})
      const path = `/api/admin/accounts/${person.accountId}`
      expect((await admin.send('POST', `${path}/lock`, {})).status).toBe(200)
      const refused = await recover(name)
      expect([refused.status, refused.body.code]).toEqual([423, 'account_locked'])
      expect((await person.send('GET', '/api/auth/session')).status).toBe(423)
      await admin.send('POST', `${path}/unlock`, {})
      expect((await recover(name)).status).toBe(200)
    }
  })

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

    const { body: started } = await send('POST', '/api/auth/recovery/start', {
      channel: 'guest',
      destination: guest.accountId,
    })
    const { status, body } = await send('POST', '/api/auth/recovery/complete', {
      challengeId: started.challengeId,
      code: started.code,
    })
    expect(status).toBe(200)
    const back = personFrom(gateway().origin, body)
    expect(back.accountId).toBe(guest.accountId)
    expect((await back.send('GET', '/api/wallets')).status).toBe(200)
  })

  it('does not unlock a guest’s account that an administrator locked', async () => {
    const guest = await newGuest(gateway().origin)
    const admin = await newAdmin('operator')
    await admin.send('POST', `/api/admin/accounts/${guest.accountId}/lock`, {})
    const { body: started } = await send('POST', '/api/auth/recovery/start', {
      channel: 'guest',
      destination: guest.accountId,
    })
    const { status } = await send('POST', '/api/auth/recovery/complete', {
      challengeId: started.challengeId,
      code: started.code,
    })
    expect(status).toBe(423)
  })
})
