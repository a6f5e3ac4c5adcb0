/** What an owner is told by mail of their own account, over HTTP. */
import { privateKeyToAccount } from 'viem/accounts'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { newAuthenticator } from '../identity/authenticator.ts'
import { overBothEngines } from './both-engines.ts'
import { askJson, enrollMfa, signInByEmail } from './people.ts'

const outbox = z.object({ messages: z.array(z.object({ destination: z.string(), text: z.string() })) })
const typed = z.object({
  domain: z.record(z.string(), z.unknown()),
  types: z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() }))),
  primaryType: z.string(),
  message: z.record(z.string(), z.unknown()),
})

overBothEngines('a change to an account', {}, ({ gateway }) => {
  const toldAt = async (destination: string) => {
    const { messages } = outbox.parse((await askJson(gateway().origin, 'GET', '/sandbox/outbox')).body)
    return messages.filter((message) => message.destination === destination).map(({ text }) => text)
  }

  it('is told to its owner at every address', async () => {
    const [first, second] = ['ada@example.com', 'ada@elsewhere.example']
    const person = await signInByEmail(gateway().origin, first)
    const toldBefore = await toldAt(first)
    expect(toldBefore.filter((text) => /was (added|activated|begun)/.test(text))).toEqual([])

    const device = newAuthenticator(`http://localhost:${new URL(gateway().origin).port}`)
    const { body: begun } = await person.ask('POST', '/api/auth/webauthn', { action: 'register' })
    const credential = device.create(begun.publicKey)
    await person.ask('POST', '/api/auth/webauthn', { action: 'register', credential })
    expect((await toldAt(first))[0]).toMatch(/^A passkey was added to your Bursar account/)

    const key = privateKeyToAccount(`0x${'7'.repeat(64)}`)
    const { body: signing } = await person.ask('POST', '/api/wallets/signers', { address: key.address })
    const signature = await key.signTypedData(typed.parse(signing.typedData))
    const added = await person.ask('POST', '/api/wallets/signers', { address: key.address, signature })
    expect(added.status).toBe(200)
    expect((await toldAt(first))[0]).toMatch(/^A key that signs for the wallet was added/)

    const { body: started } = await askJson(gateway().origin, 'POST', '/api/auth/otp/start', {
      body: { channel: 'email', destination: second },
    })
    const code = /^\d{6}/.exec((await toldAt(second))[0] ?? '')?.[0]
    const link = { challengeId: started.challengeId, code, link: true }
    expect((await person.ask('POST', '/api/auth/otp/verify', link)).status).toBe(200)
    for (const destination of [first, second])
      expect((await toldAt(destination))[0]).toMatch(/^An address .* was added/)

    await enrollMfa(person)
    for (const destination of [first, second])
      expect((await toldAt(destination)).slice(0, 2)).toEqual([
        expect.stringMatching(/^A second factor was activated/),
        expect.stringMatching(/^Setting up a second factor was begun/),
      ])
  })
})
