import { beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import type { Services } from '../../../../src/kernel/context.ts'
import { run } from '../../../../src/kernel/run.ts'
import { countPasskeys } from '../../../../src/people/identity/passkeys/passkeys.ts'
import getWallet from '../../../../tools/wallets/get.ts'
import { onBothEngines } from '../../../engines.ts'
import { buildCall, newPerson, noon, origin, servicesOn } from '../../../kernel/scene.ts'
import { newAuthenticator } from '../authenticator.ts'
import {
  anonymousPrincipal,
  answer,
  challenge,
  inMinutes,
  type PasskeyScene,
  passkeyScene,
  registrationRejected,
  session,
} from '../passkey-scene.ts'

onBothEngines('registering a passkey', (database) => {
  let services: Services
  let device: PasskeyScene['device']
  let call: PasskeyScene['call']
  let begin: PasskeyScene['begin']
  let register: PasskeyScene['register']
  let login: PasskeyScene['login']
  let asPerson: PasskeyScene['asPerson']
  beforeEach(async () => {
    services = await servicesOn(database())
    ;({ device, call, begin, register, login, asPerson } = passkeyScene(services))
  })

  it('creates an account with a wallet and signs it in', async () => {
    const { account, sessionToken } = await register()
    expect(account).toMatchObject({ displayName: 'Grace', guest: false, role: 'user' })
    const person = await asPerson(sessionToken)
    const { body } = await run(getWallet, buildCall(services, person), {})
    expect(body).toMatchObject({ safeAddress: expect.stringMatching(/^0x/) })
    expect(await countPasskeys(database(), account.id)).toBe(1)
  })

  it('uses the name given in either step, and Person without one', async () => {
    const nameAfter = async (first: object, second: object) => {
      const { publicKey } = challenge.parse(await call({ action: 'register', ...first }))
      const credential = newAuthenticator(origin).create(publicKey)
      const made = session.parse(await call({ action: 'register', credential, ...second }))
      return made.account.displayName
    }
    expect(await nameAfter({}, {})).toBe('Person')
    expect(await nameAfter({ displayName: ' Grace ' }, {})).toBe('Grace')
    expect(await nameAfter({ displayName: 'Grace' }, { displayName: 'Ada' })).toBe('Ada')
    for (const displayName of ['', '   ', 'x'.repeat(81)])
      await expect(nameAfter({ displayName }, {})).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('requests the required passkey properties', async () => {
    const { publicKey } = await begin('register')
    expect(publicKey).toMatchObject({
      rp: { id: 'bursar.example' },
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      timeout: 300_000,
    })
    const algorithms = z.array(z.object({ alg: z.number() })).parse(publicKey.pubKeyCredParams)
    expect(algorithms.map(({ alg }) => alg)).toEqual([-7, -8, -257])
  })

  it('adds a passkey to the signed-in account, never the same one twice', async () => {
    const first = await register()
    const person = await asPerson(first.sessionToken)
    const other = newAuthenticator(origin)
    const second = await register(person, other)
    expect(second.account.id).toBe(first.account.id)
    expect((await asPerson(second.sessionToken)).session.id).toBe(person.session.id)
    expect((await login(noon, other)).account.id).toBe(first.account.id)
    expect((await login()).account.id).toBe(first.account.id)
    const { publicKey } = await begin('register', person)
    expect(z.array(z.unknown()).parse(publicKey.excludeCredentials)).toHaveLength(2)
    expect(() => device.create(publicKey)).toThrow()
  })

  it('rejects a credential that is registered already, without creating an account', async () => {
    const made = device.create((await begin('register')).publicKey)
    const { account } = session.parse(await call({ action: 'register', credential: made }))
    // No attestation binds a new credential to its challenge: anybody can send a known one along with a fresh
    // challenge.
    const { clientDataJSON } = newAuthenticator(origin).create((await begin('register')).publicKey).response
    const copy = answer(made, { clientDataJSON })
    const before = await countAccounts()
    await expect(call({ action: 'register', credential: copy })).rejects.toMatchObject({ code: 'conflict' })
    expect(await countAccounts()).toBe(before)
    await expect(call({ action: 'register', credential: copy })).rejects.toMatchObject(registrationRejected)
    expect(await countPasskeys(database(), account.id)).toBe(1)
  })
  const countAccounts = async () =>
    (await database().kysely.selectFrom('account').select('id').execute()).length

  it('binds both steps to the same session', async () => {
    const ada = await newPerson(database())
    const eve = await newPerson(database())
    for (const [opener, closer] of [
      [ada, eve],
      [ada, anonymousPrincipal],
      [anonymousPrincipal, eve],
    ] as const) {
      const { publicKey } = await begin('register', opener)
      const credential = newAuthenticator(origin).create(publicKey)
      await expect(call({ action: 'register', credential }, closer)).rejects.toMatchObject(
        registrationRejected,
      )
      await expect(call({ action: 'register', credential }, opener)).rejects.toMatchObject(
        registrationRejected,
      )
    }
    expect(await countPasskeys(database(), ada.account.id)).toBe(0)
    expect(await countPasskeys(database(), eve.account.id)).toBe(0)
  })

  it('needs a fresh second factor on an account that has one', async () => {
    const ada = await newPerson(database())
    const enrolled = { ...ada, account: { ...ada.account, mfaEnrolled: true } }
    await expect(begin('register', enrolled)).rejects.toMatchObject({ code: 'step_up_required' })
    const fresh = { ...enrolled, session: { ...ada.session, steppedUpAt: noon } }
    await expect(begin('register', fresh)).resolves.toMatchObject({ challengeId: expect.any(String) })
  })

  it('rejects an answer that is late, used, of another page or of another relying party', async () => {
    const late = await begin('register')
    const made = device.create(late.publicKey)
    await expect(
      call({ action: 'register', credential: made }, anonymousPrincipal, inMinutes(5)),
    ).rejects.toMatchObject(registrationRejected)
    await expect(call({ action: 'register', credential: made })).rejects.toMatchObject(registrationRejected)

    const elsewhere = device.create((await begin('register')).publicKey, 'https://evil.bursar.example')
    await expect(call({ action: 'register', credential: elsewhere })).rejects.toMatchObject(
      registrationRejected,
    )

    const { publicKey } = await begin('register')
    const other = newAuthenticator('https://other.example').create({
      ...publicKey,
      rp: { id: 'other.example', name: 'Other' },
    })
    await expect(call({ action: 'register', credential: other })).rejects.toMatchObject(registrationRejected)
  })

  it('reads no attestation with certificates', async () => {
    const { publicKey } = await begin('register')
    const made = device.create(publicKey)
    const text = z.object({ attestationObject: z.string() }).parse(made.response).attestationObject
    const bytes = Buffer.from(text, 'base64url')
    const apple = Buffer.concat([
      bytes.subarray(0, bytes.indexOf('none') - 1),
      Buffer.from([0x65]),
      Buffer.from('apple'),
      bytes.subarray(bytes.indexOf('none') + 4),
    ])
    const credential = answer(made, { attestationObject: apple.toString('base64url') })
    await expect(call({ action: 'register', credential })).rejects.toMatchObject(registrationRejected)
  })
})
