/** Mail notices to owners about changes to their accounts, and the sessions that a change ends, over HTTP. */
import { privateKeyToAccount } from 'viem/accounts'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import { computeTotp, readSecret } from '../people/identity/signed-in.ts'
import { overBothEngines } from './both-engines.ts'
import { enrollMfa, requestJson, signInByEmail } from './people.ts'

const outbox = z.object({ messages: z.array(z.object({ destination: z.string(), text: z.string() })) })
const typed = z.object({
  domain: z.record(z.string(), z.unknown()),
  types: z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() }))),
  primaryType: z.string(),
  message: z.record(z.string(), z.unknown()),
})

overBothEngines('a change to an account', { RATE_MESSAGES: '12/3600' }, ({ gateway, now, pass }) => {
  const noticesTo = async (destination: string) => {
    const { messages } = outbox.parse((await requestJson(gateway().origin, 'GET', '/sandbox/outbox')).body)
    return messages.filter((message) => message.destination === destination).map(({ text }) => text)
  }

  it('is announced to its owner at every address', async () => {
    const [first, second] = ['ada@example.com', 'ada@elsewhere.example']
    const person = await signInByEmail(gateway().origin, first)
    const noticesBefore = await noticesTo(first)
    expect(noticesBefore.filter((text) => /was (added|activated|started)/.test(text))).toEqual([])

    const device = newAuthenticator(`http://localhost:${new URL(gateway().origin).port}`)
    const { body: registration } = await person.send('POST', '/api/auth/webauthn', { action: 'register' })
    const credential = device.create(registration.publicKey)
    await person.send('POST', '/api/auth/webauthn', { action: 'register', credential })
    expect((await noticesTo(first))[0]).toMatch(/^A passkey was added to your Bursar account/)

    const key = privateKeyToAccount(`0x${'7'.repeat(64)}`)
    const { body: signing } = await person.send('POST', '/api/wallets/signers', { address: key.address })
    const signature = await key.signTypedData(typed.parse(signing.typedData))
    const added = await person.send('POST', '/api/wallets/signers', { address: key.address, signature })
    expect(added.status).toBe(200)
    expect((await noticesTo(first))[0]).toMatch(/^A wallet signing key was added/)

    const { body: started } = await requestJson(gateway().origin, 'POST', '/api/auth/otp/start', {
      body: { channel: 'email', destination: second },
    })
    const code = /^\d{6}/.exec((await noticesTo(second))[0] ?? '')?.[0]
    const link = { challengeId: started.challengeId, code, link: true }
    expect((await person.send('POST', '/api/auth/otp/verify', link)).status).toBe(200)
    for (const destination of [first, second])
      expect((await noticesTo(destination))[0]).toMatch(/^A sign-in address was added/)

    await enrollMfa(person)
    for (const destination of [first, second])
      expect((await noticesTo(destination)).slice(0, 2)).toEqual([
        expect.stringMatching(/^A second factor was activated/),
        expect.stringMatching(/^Enrollment of a second factor was started/),
      ])
  })

  it('is announced to its owner when it removes something, too', async () => {
    const address = 'grace@example.com'
    const person = await signInByEmail(gateway().origin, address)
    // The first passkey owns the wallet, and stays.
    for (const _ of ['the first', 'the second']) {
      const device = newAuthenticator(`http://localhost:${new URL(gateway().origin).port}`)
      const { body: registration } = await person.send('POST', '/api/auth/webauthn', { action: 'register' })
      const credential = device.create(registration.publicKey)
      await person.send('POST', '/api/auth/webauthn', { action: 'register', credential })
    }
    const { body } = await person.send('GET', '/api/security/passkeys')
    const [newest] = z.array(z.looseObject({ id: z.string() })).parse(body.passkeys)
    const removed = await person.send('DELETE', `/api/security/passkeys/${newest?.id}`)
    expect(removed.status).toBe(200)
    expect((await noticesTo(address))[0]).toMatch(/^A passkey was removed from your Bursar account/)

    const policy = { perTransaction: { max: '1' }, dailyBudget: { max: '1' }, categories: { allow: [] } }
    for (const [index, how] of ['DELETE', 'PATCH'].entries()) {
      const publicKey = Buffer.alloc(32, index + 9).toString('base64url')
      const keyRequest = { name: 'Bot', publicKey, scopes: ['wallets:read'], policy }
      const { body: agent } = await person.send('POST', '/api/agents/keys', keyRequest)
      const change = how === 'PATCH' ? { status: 'revoked' } : undefined
      expect((await person.send(how, `/api/agents/keys/${agent.agentId}`, change)).status).toBe(200)
      const notices = (await noticesTo(address)).filter((text) =>
        text.startsWith('An agent’s key was revoked'),
      )
      expect(notices).toHaveLength(index + 1)
    }
    const { body: key } = await person.send('POST', '/api/developer/keys', {
      name: 'n',
      scopes: ['wallets:read'],
    })
    await person.send('DELETE', `/api/developer/keys/${key.id}`)
    expect((await noticesTo(address))[0]).toMatch(/^An API key was revoked/)

    await signInByEmail(gateway().origin, address)
    await person.send('DELETE', '/api/auth/sessions/others')
    expect((await noticesTo(address))[0]).toMatch(
      /^All other sessions were ended by one of your Bursar account/,
    )
    await person.send('PATCH', '/api/notifications/settings', { approvals: 'off' })
    expect((await noticesTo(address))[0]).toMatch(/^Mails about requests for approval were reduced/)

    const secret = await enrollMfa(person)
    const code = computeTotp(secret, new Date(now().getTime() + 30_000))
    expect((await person.send('POST', '/api/security/mfa', { action: 'disable', code })).status).toBe(200)
    expect((await noticesTo(address))[0]).toMatch(/^The second factor was removed/)
  })

  it('ends the second-factor proof of every session when the factor is removed', async () => {
    const address = 'edith@example.com'
    const [owner, other] = [
      await signInByEmail(gateway().origin, address),
      await signInByEmail(gateway().origin, address),
    ]
    const secret = await enrollMfa(owner)
    const { body } = await owner.send('POST', '/api/security/mfa', { action: 'status' })
    expect(body.enrolled).toBe(true)
    const code = computeTotp(secret, new Date(now().getTime() + 30_000))
    expect((await other.send('POST', '/api/security/mfa', { action: 'verify', code })).status).toBe(200)
    pass(40)
    const last = computeTotp(secret, new Date(now().getTime() + 30_000))
    await owner.send('POST', '/api/security/mfa', { action: 'disable', code: last })
    const { body: registration } = await owner.send('POST', '/api/security/mfa', { action: 'enroll' })
    const activated = computeTotp(readSecret(registration.otpauthUri), now())
    expect(
      (await owner.send('POST', '/api/security/mfa', { action: 'activate', code: activated })).status,
    ).toBe(200)
    const refused = await other.send('POST', '/api/developer/keys', { name: 'n', scopes: ['wallets:read'] })
    expect([refused.status, refused.body.code]).toEqual([401, 'step_up_required'])
  })

  it('is announced in a dozen messages an hour at each address, and then in one for all others', async () => {
    const [mailbox, phone] = ['hedy@example.com', '+4915123456700']
    const person = await signInByEmail(gateway().origin, mailbox)
    const { body: started } = await requestJson(gateway().origin, 'POST', '/api/auth/otp/start', {
      body: { channel: 'sms', destination: phone },
    })
    const code = /^\d{6}/.exec((await noticesTo(phone))[0] ?? '')?.[0]
    await person.send('POST', '/api/auth/otp/verify', { challengeId: started.challengeId, code, link: true })
    const revoke = async () => {
      const { body } = await person.send('POST', '/api/developer/keys', {
        name: 'n',
        scopes: ['wallets:read'],
      })
      expect((await person.send('DELETE', `/api/developer/keys/${body.id}`)).status).toBe(200)
    }
    // Changes at the same time may be told in one message: one after the other, each is told by its own.
    for (let count = 0; count < 12; count += 1) await revoke()
    for (let round = 0; round < 3; round += 1) await Promise.all(Array.from({ length: 6 }, revoke))
    const readNotices = async (address: string) =>
      (await noticesTo(address)).filter((text) => !/^\d{6}/.test(text))
    for (const address of [mailbox, phone]) {
      const told = await readNotices(address)
      expect(told).toHaveLength(12)
      expect(told.filter((text) => text.startsWith('A sign-in address was added'))).toHaveLength(1)
    }
    // On PostgreSQL, the gateway may read the server's clock again in between. An hour without a write lets jobs rest.
    const nextHour = async () => {
      pass(3_601)
      await requestJson(gateway().origin, 'POST', '/api/auth/guest')
      return [(await readNotices(mailbox)).length, (await readNotices(phone)).length]
    }
    await expect.poll(nextHour, { timeout: 60_000, interval: 3_000 }).toEqual([13, 13])
    for (const address of [mailbox, phone]) {
      const told = (await readNotices(address)).flatMap((text) =>
        text.startsWith('An API key was revoked')
          ? [Number(/, (\d+) times, last on /.exec(text)?.[1] ?? 1)]
          : [],
      )
      expect(told.reduce((sum, times) => sum + times, 0)).toBe(30)
    }
  })
})
