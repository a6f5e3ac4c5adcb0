/** Recovery of an account with a passkey: the code alone is not enough, and other passkeys are rejected. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import type { Principal } from '../../../src/core/base/principal.ts'
import { run } from '../../../src/kernel/run.ts'
import type { Tool } from '../../../src/kernel/tool.ts'
import { lockAccount } from '../../../src/people/identity/locks.ts'
import { findAccount } from '../../../src/people/identity/store.ts'
import recoveryComplete from '../../../tools/auth/recovery/complete.ts'
import recoveryStart from '../../../tools/auth/recovery/start.ts'
import webauthn from '../../../tools/auth/webauthn.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, newPerson, noon, origin } from '../../kernel/scene.ts'
import { newAuthenticator } from './authenticator.ts'
import { codeScene, inSeconds, newMailbox } from './code-scene.ts'

const challenge = z.looseObject({ challengeId: z.string(), publicKey: z.unknown() })
const refused = { code: 'unauthenticated' }

onBothEngines('recovery with a passkey', (database) => {
  /** A locked account with a mailbox and a passkey, and its device. */
  const lockedOut = async () => {
    const scene = await codeScene(database())
    const mailbox = newMailbox()
    const account = await scene.person(mailbox)
    const device = newAuthenticator(origin)
    const stranger = await newPerson(database())
    const as: Principal = { ...stranger, account, person: { ...stranger.person, id: account.id } }
    const call = async (input: object) => (await run(webauthn, buildCall(scene.services, as), input)).body
    const { challengeId, publicKey } = challenge.parse(await call({ action: 'register' }))
    await call({ action: 'register', challengeId, credential: device.create(publicKey) })
    await lockAccount(database(), { accountId: account.id, reason: 'person', at: noon })
    return { scene, mailbox, account, device }
  }

  it('accepts the code with an assertion over the options that came with it', async () => {
    const { scene, mailbox, account, device } = await lockedOut()
    const { answer, ...given } = await scene.recover(mailbox)
    await expect(scene.complete(given)).rejects.toMatchObject({ code: 'step_up_required' })
    const recovered = await scene.complete(given, { credential: device.get(answer.publicKey) })
    expect(recovered.account.id).toBe(account.id)
  })

  it('rejects another account’s passkey, a replayed assertion and one without the code', async () => {
    const [victim, thief] = [await lockedOut(), await lockedOut()]
    const { answer, ...given } = await victim.scene.recover(victim.mailbox)
    const stolen = thief.device.get(answer.publicKey)
    await expect(victim.scene.complete(given, { credential: stolen })).rejects.toMatchObject(refused)
    const own = victim.device.get(answer.publicKey)
    await expect(victim.scene.complete(given, { credential: own })).rejects.toMatchObject(refused)
    const again = await victim.scene.recover(victim.mailbox, inSeconds(1))
    const credential = victim.device.get(again.answer.publicKey)
    const wrong = { ...again, code: again.code === '000000' ? '000001' : '000000' }
    await expect(victim.scene.complete(wrong, { credential })).rejects.toMatchObject(refused)
    await expect(victim.scene.complete(again, { credential })).resolves.toMatchObject({
      account: { id: victim.account.id },
    })
  })

  it('accepts a passkey alone only for an account without an address', async () => {
    const { services } = await codeScene(database())
    const callPublic = (tool: Tool, input: object) =>
      run(tool, buildCall(services, { kind: 'public' }), input)
    const registration = challenge.parse((await callPublic(webauthn, { action: 'register' })).body)
    const device = newAuthenticator(origin)
    const made = await callPublic(webauthn, {
      action: 'register',
      credential: device.create(registration.publicKey),
    })
    const { account } = z.object({ account: z.looseObject({ id: z.string() }) }).parse(made.body)
    await lockAccount(database(), { accountId: account.id, reason: 'person', at: noon })

    const recover = async (of: typeof device) => {
      const assertionRequest = challenge.parse((await callPublic(recoveryStart, { channel: 'passkey' })).body)
      const credential = of.get(assertionRequest.publicKey)
      return callPublic(recoveryComplete, { challengeId: assertionRequest.challengeId, credential })
    }
    const recovered = await recover(device)
    expect(recovered.body).toMatchObject({ account: { id: account.id }, sessionToken: expect.any(String) })
    const { status } = (await findAccount(database(), account.id)) ?? { status: 'gone' }
    expect(status).toBe('active')

    const withAddress = await lockedOut()
    await expect(recover(withAddress.device)).rejects.toMatchObject({ code: 'step_up_required' })
    const assertionRequest = challenge.parse((await callPublic(recoveryStart, { channel: 'passkey' })).body)
    const other = challenge.parse((await callPublic(recoveryStart, { channel: 'passkey' })).body)
    await expect(
      callPublic(recoveryComplete, {
        challengeId: other.challengeId,
        credential: device.get(assertionRequest.publicKey),
      }),
    ).rejects.toMatchObject(refused)
    for (const [tool, input] of [
      [recoveryStart, { channel: 'passkey', destination: 'ada@example.com' }],
      [recoveryStart, { channel: 'email' }],
      [recoveryComplete, { challengeId: other.challengeId }],
    ] as const)
      await expect(callPublic(tool, input)).rejects.toMatchObject({ code: 'invalid_request' })
  })
})
