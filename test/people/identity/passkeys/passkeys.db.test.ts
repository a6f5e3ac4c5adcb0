import { beforeEach, expect, it } from 'vitest'
import { newId } from '../../../../src/core/base/ids.ts'
import type { Services } from '../../../../src/kernel/context.ts'
import { lockAccount } from '../../../../src/people/identity/locks.ts'
import { authenticationResponse } from '../../../../src/people/identity/passkeys/passkey-response.ts'
import { assertPasskey, loginOptions } from '../../../../src/people/identity/passkeys/passkeys.ts'
import { onBothEngines } from '../../../engines.ts'
import { noon, origin, servicesOn } from '../../../kernel/scene.ts'
import { type Credential, newAuthenticator } from '../authenticator.ts'
import {
  anonymousPrincipal,
  answer,
  catchRefusal,
  inMinutes,
  type PasskeyScene,
  passkeyScene,
  registrationRejected,
  signInRejected,
} from '../passkey-scene.ts'

onBothEngines('signing in with a passkey', (database) => {
  let services: Services
  let device: PasskeyScene['device']
  let call: PasskeyScene['call']
  let begin: PasskeyScene['begin']
  let register: PasskeyScene['register']
  let login: PasskeyScene['login']
  let asPerson: PasskeyScene['asPerson']
  let readPasskeys: PasskeyScene['readPasskeys']
  beforeEach(async () => {
    services = await servicesOn(database())
    ;({ device, call, begin, register, login, asPerson, readPasskeys } = passkeyScene(services))
  })

  it('needs no name: the passkey identifies its account', async () => {
    const { account } = await register()
    const { publicKey } = await begin('login')
    expect(publicKey).toMatchObject({ rpId: 'bursar.example', userVerification: 'required' })
    expect(publicKey.allowCredentials ?? []).toEqual([])
    const later = await login(inMinutes(3))
    expect(later.account).toEqual(account)
    const { passkeys } = await readPasskeys(await asPerson((await login()).sessionToken))
    expect(passkeys).toMatchObject([{ lastUsedAt: noon.toISOString() }])
  })

  it('accepts only the challenge’s own id', async () => {
    await register()
    const [mine, other] = [await begin('login'), await begin('login')]
    const credential = device.get(mine.publicKey)
    await expect(call({ action: 'login', challengeId: other.challengeId, credential })).rejects.toMatchObject(
      signInRejected,
    )
    expect((await login()).account.displayName).toBe('Grace')
  })

  it('returns one failure for every kind of error', async () => {
    await register()
    const refusals: unknown[] = []
    const attempt = async (credential: Credential, now = noon, through = services) => {
      const refused = await catchRefusal(
        call({ action: 'login', credential }, anonymousPrincipal, now, through),
      )
      // Every failure spends the challenge.
      await expect(
        call({ action: 'login', credential }, anonymousPrincipal, noon, services),
      ).rejects.toMatchObject(signInRejected)
      refusals.push(refused)
    }
    const fresh = async () => (await begin('login')).publicKey

    const used = device.get(await fresh())
    await call({ action: 'login', credential: used })
    await attempt(used)
    await attempt(device.get(await fresh()), inMinutes(5))
    await attempt(device.get(await fresh(), 'https://evil.bursar.example'))
    const unknown = newAuthenticator(origin)
    unknown.create((await begin('register')).publicKey)
    await attempt(unknown.get(await fresh()))
    const { signature = '' } = device.get(await fresh()).response
    await attempt(answer(device.get(await fresh()), { signature }))
    await attempt(
      device.get({ ...(await fresh()), challenge: (await begin('register')).publicKey.challenge }),
    )
    await attempt(device.get({ ...(await fresh()), challenge: 'A'.repeat(43) }))
    await attempt(
      answer(device.get(await fresh()), { userHandle: Buffer.from('acct_somebody').toString('base64url') }),
    )
    const { settings } = services
    await attempt(device.get(await fresh()), noon, {
      ...services,
      settings: { ...settings, rpId: 'other.example' },
    })
    expect(refusals).toHaveLength(9)
    expect(new Set(refusals.map((refusal) => JSON.stringify(refusal))).size).toBe(1)
    expect(refusals[0]).toMatchObject({ status: 401, code: 'unauthenticated', hint: expect.any(String) })
  })

  it('rejects a passkey of our domain that another relying party created', async () => {
    const app = 'https://app.bursar.example'
    const { settings } = services
    const through = { ...services, settings: { ...settings, webOrigins: [app] } }
    const { publicKey } = await begin('register', anonymousPrincipal, noon, through)
    const nested = newAuthenticator(app)
    const credential = nested.create({ ...publicKey, rp: { id: 'app.bursar.example', name: 'App' } })
    await expect(
      call({ action: 'register', credential }, anonymousPrincipal, noon, through),
    ).rejects.toMatchObject(registrationRejected)
  })

  it('rejects a counter that goes back, which indicates a copy of the passkey', async () => {
    await register()
    const [first, second] = [await begin('login'), await begin('login')]
    const older = device.get(first.publicKey)
    const newer = device.get(second.publicKey)
    await call({ action: 'login', credential: newer })
    await expect(call({ action: 'login', credential: older })).rejects.toMatchObject(signInRejected)
  })

  it('accepts one of two concurrent uses of the same counter', async () => {
    const { account } = await register()
    const clonedDevice = device.clone()
    const [mine, theirs] = [await begin('login'), await begin('login')]
    const credentials = [device.get(mine.publicKey), clonedDevice.get(theirs.publicKey)]
    const attempts = await Promise.allSettled(
      credentials.map((credential) => call({ action: 'login', credential })),
    )
    expect(attempts.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const { counter } = await database()
      .kysely.selectFrom('passkey')
      .select('counter')
      .where('account_id', '=', account.id)
      .executeTakeFirstOrThrow()
    expect(counter).toBe(1n)
  })

  it('reveals a lock only after the passkey verified, and spends the challenge', async () => {
    const { account } = await register()
    await lockAccount(database(), { accountId: account.id, reason: 'person', at: noon })
    const { publicKey } = await begin('login')
    const credential = device.get(publicKey)
    const forged = answer(device.get((await begin('login')).publicKey), {
      signature: credential.response.signature ?? '',
    })
    await expect(call({ action: 'login', credential: forged })).rejects.toMatchObject(signInRejected)
    const counted = device.get((await begin('login')).publicKey)
    await expect(call({ action: 'login', credential: counted })).rejects.toMatchObject({
      code: 'account_locked',
    })
    await expect(call({ action: 'login', credential: counted })).rejects.toMatchObject(signInRejected)
  })

  it('can be used for recovery, which only identifies its account', async () => {
    const { account } = await register()
    const { publicKey } = await loginOptions({ ...services, newId }, noon)
    const credential = authenticationResponse.parse(device.get(publicKey))
    await expect(assertPasskey(services, { credential, now: noon })).resolves.toEqual({
      accountId: account.id,
    })
    await expect(assertPasskey(services, { credential, now: noon })).rejects.toMatchObject(signInRejected)
  })

  it('rejects malformed credentials', async () => {
    const { publicKey } = await begin('register')
    const made = device.create(publicKey)
    const clientData = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const [credential, path] of [
      ['text', 'credential'],
      [{}, 'credential.id'],
      [{ ...made, type: 'password' }, 'credential.type'],
      [answer(made, { attestationObject: '!' }), 'credential.response.attestationObject'],
      [answer(made, { attestationObject: 'A'.repeat(20_000) }), 'credential.response.attestationObject'],
      [answer(made, { clientDataJSON: 'AAAA' }), 'credential.response.clientDataJSON'],
      [
        answer(made, { clientDataJSON: clientData({ challenge: 'a\u0000b' }) }),
        'credential.response.clientDataJSON',
      ],
    ] as const) {
      const refused = await catchRefusal(call({ action: 'register', credential }))
      expect(refused).toMatchObject({
        code: 'invalid_request',
        issues: expect.arrayContaining([expect.objectContaining({ path })]),
      })
    }
    await expect(call({ action: 'login', credential: made })).rejects.toMatchObject({
      code: 'invalid_request',
    })
    await expect(call({ action: 'register', credential: made })).resolves.toBeDefined()
  })
})
