import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { lockAccount } from '../../src/identity/locks.ts'
import { authenticationResponse } from '../../src/identity/passkey-response.ts'
import { assertPasskey, countPasskeys, loginOptions } from '../../src/identity/passkeys.ts'
import { authenticateSession } from '../../src/identity/sessions.ts'
import { newId } from '../../src/ids.ts'
import type { Services } from '../../src/kernel/context.ts'
import { run } from '../../src/kernel/run.ts'
import type { Principal } from '../../src/principal.ts'
import webauthn from '../../tools/auth/webauthn.ts'
import listPasskeys from '../../tools/security/passkeys/list.ts'
import removePasskey from '../../tools/security/passkeys/remove.ts'
import getWallet from '../../tools/wallets/get.ts'
import { onBothEngines } from '../engines.ts'
import { callOf, newPerson, noon, origin, servicesOn } from '../kernel/scene.ts'
import { type Authenticator, type Credential, newAuthenticator } from './authenticator.ts'

const stranger: Principal = { kind: 'public' }
const challenge = z.strictObject({
  challengeId: z.string(),
  publicKey: z.looseObject({ challenge: z.string() }),
})
const session = z.strictObject({
  account: z.looseObject({ id: z.string(), displayName: z.string(), guest: z.boolean() }),
  sessionToken: z.string(),
  expiresAt: z.string(),
})
const list = z.strictObject({
  passkeys: z.array(z.looseObject({ id: z.string(), lastUsedAt: z.string().nullable() })),
  nextCursor: z.string().nullable(),
})
const inMinutes = (minutes: number) => new Date(noon.getTime() + minutes * 60_000)
const notAccepted = { code: 'unauthenticated', message: 'The passkey was not accepted.' }
const notRegistered = { code: 'unauthenticated', message: 'The passkey was not registered.' }

onBothEngines('passkeys', (database) => {
  let services: Services
  let device: Authenticator
  beforeEach(async () => {
    services = await servicesOn(database())
    device = newAuthenticator(origin)
  })

  const call = async (
    input: Record<string, unknown>,
    as: Principal = stranger,
    now = noon,
    through = services,
  ) => (await run(webauthn, callOf(through, as, { now }), input)).body
  const begin = async (action: 'register' | 'login', as?: Principal, now?: Date, through?: Services) =>
    challenge.parse(await call({ action, displayName: 'Grace' }, as, now, through))
  const register = async (as?: Principal, on = device) => {
    const { challengeId, publicKey } = await begin('register', as)
    return session.parse(
      await call({ action: 'register', challengeId, credential: on.create(publicKey) }, as),
    )
  }
  const login = async (now = noon, on = device) => {
    const { challengeId, publicKey } = await begin('login', stranger, now)
    return session.parse(
      await call({ action: 'login', challengeId, credential: on.get(publicKey) }, stranger, now),
    )
  }
  const asPerson = async (token: string): Promise<Extract<Principal, { kind: 'session' }>> =>
    (await authenticateSession(services, { token, tokenHolder: 'client' }, noon)).principal
  const passkeysOf = async (as: Principal, page: Record<string, unknown> = {}) =>
    list.parse((await run(listPasskeys, callOf(services, as), page)).body)
  const answer = (credential: Credential, response: Record<string, string>): Credential => ({
    ...credential,
    response: { ...credential.response, ...response },
  })
  const refusalOf = async (attempt: Promise<unknown>) => {
    const refusal = await attempt.then(
      () => 'accepted',
      (error: { toProblem(): unknown }) => error.toProblem(),
    )
    return refusal
  }

  describe('registering', () => {
    it('makes an account with a wallet and signs it in', async () => {
      const { account, sessionToken } = await register()
      expect(account).toMatchObject({ displayName: 'Grace', guest: false, role: 'user' })
      const person = await asPerson(sessionToken)
      const { body } = await run(getWallet, callOf(services, person), {})
      expect(body).toMatchObject({ safeAddress: expect.stringMatching(/^0x/) })
      expect(await countPasskeys(database(), account.id)).toBe(1)
    })

    it('asks for what a passkey must be', async () => {
      const { publicKey } = await begin('register')
      expect(publicKey).toMatchObject({
        rp: { id: 'bursar.example' },
        attestation: 'none',
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
        timeout: 300_000,
      })
      const algorithms = z.array(z.object({ alg: z.number() })).parse(publicKey.pubKeyCredParams)
      expect(algorithms.map(({ alg }) => alg)).toEqual([-8, -7, -257])
    })

    it('adds a passkey to the account that is signed in, never the same one twice', async () => {
      const first = await register()
      const person = await asPerson(first.sessionToken)
      const other = newAuthenticator(origin)
      const second = await register(person, other)
      expect(second.account.id).toBe(first.account.id)
      expect((await login(noon, other)).account.id).toBe(first.account.id)
      expect((await login()).account.id).toBe(first.account.id)
      const { publicKey } = await begin('register', person)
      expect(z.array(z.unknown()).parse(publicKey.excludeCredentials)).toHaveLength(2)
      expect(() => device.create(publicKey)).toThrow()
    })

    it('refuses a credential that is registered already, and makes no account for it', async () => {
      const made = device.create((await begin('register')).publicKey)
      const { account } = session.parse(await call({ action: 'register', credential: made }))
      // No attestation binds a new credential to its challenge: anybody can send a known one along with a fresh challenge.
      const { clientDataJSON } = newAuthenticator(origin).create((await begin('register')).publicKey).response
      const copy = answer(made, { clientDataJSON })
      const before = await countAccounts()
      await expect(call({ action: 'register', credential: copy })).rejects.toMatchObject({ code: 'conflict' })
      expect(await countAccounts()).toBe(before)
      await expect(call({ action: 'register', credential: copy })).rejects.toMatchObject(notRegistered)
      expect(await countPasskeys(database(), account.id)).toBe(1)
    })
    const countAccounts = async () =>
      (await database().kysely.selectFrom('account').select('id').execute()).length

    it('binds both halves to the same session', async () => {
      const ada = await newPerson(database())
      const eve = await newPerson(database())
      for (const [opener, closer] of [
        [ada, eve],
        [ada, stranger],
        [stranger, eve],
      ] as const) {
        const { publicKey } = await begin('register', opener)
        const credential = newAuthenticator(origin).create(publicKey)
        await expect(call({ action: 'register', credential }, closer)).rejects.toMatchObject(notRegistered)
        await expect(call({ action: 'register', credential }, opener)).rejects.toMatchObject(notRegistered)
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

    it('refuses an answer that is late, used, of another page or of another relying party', async () => {
      const late = await begin('register')
      const made = device.create(late.publicKey)
      await expect(
        call({ action: 'register', credential: made }, stranger, inMinutes(5)),
      ).rejects.toMatchObject(notRegistered)
      await expect(call({ action: 'register', credential: made })).rejects.toMatchObject(notRegistered)

      const elsewhere = device.create((await begin('register')).publicKey, 'https://evil.bursar.example')
      await expect(call({ action: 'register', credential: elsewhere })).rejects.toMatchObject(notRegistered)

      const { publicKey } = await begin('register')
      const other = newAuthenticator('https://other.example').create({
        ...publicKey,
        rp: { id: 'other.example', name: 'Other' },
      })
      await expect(call({ action: 'register', credential: other })).rejects.toMatchObject(notRegistered)
    })

    it('reads no attestation that comes with certificates', async () => {
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
      await expect(call({ action: 'register', credential })).rejects.toMatchObject(notRegistered)
    })
  })

  describe('signing in', () => {
    it('needs no name: the passkey says whose it is', async () => {
      const { account } = await register()
      const { publicKey } = await begin('login')
      expect(publicKey).toMatchObject({ rpId: 'bursar.example', userVerification: 'required' })
      expect(publicKey.allowCredentials ?? []).toEqual([])
      const later = await login(inMinutes(3))
      expect(later.account).toEqual(account)
      const { passkeys } = await passkeysOf(await asPerson((await login()).sessionToken))
      expect(passkeys).toHaveLength(1)
    })

    it('takes the challenge’s id, and no other’s', async () => {
      await register()
      const [mine, other] = [await begin('login'), await begin('login')]
      const credential = device.get(mine.publicKey)
      await expect(
        call({ action: 'login', challengeId: other.challengeId, credential }),
      ).rejects.toMatchObject(notAccepted)
      expect((await login()).account.displayName).toBe('Grace')
    })

    it('answers every failure alike', async () => {
      await register()
      const refusals: unknown[] = []
      const attempt = async (credential: Credential, now = noon, through = services) => {
        const refused = await refusalOf(call({ action: 'login', credential }, stranger, now, through))
        // Whatever was wrong, the challenge is spent.
        await expect(call({ action: 'login', credential }, stranger, noon, services)).rejects.toMatchObject(
          notAccepted,
        )
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

    it('refuses a passkey of our domain that another relying party made', async () => {
      const app = 'https://app.bursar.example'
      const { settings } = services
      const through = { ...services, settings: { ...settings, webOrigins: [app] } }
      const { publicKey } = await begin('register', stranger, noon, through)
      const nested = newAuthenticator(app)
      const credential = nested.create({ ...publicKey, rp: { id: 'app.bursar.example', name: 'App' } })
      await expect(call({ action: 'register', credential }, stranger, noon, through)).rejects.toMatchObject(
        notRegistered,
      )
    })

    it('refuses a counter that goes back: there is a copy of the passkey', async () => {
      await register()
      const [first, second] = [await begin('login'), await begin('login')]
      const older = device.get(first.publicKey)
      const newer = device.get(second.publicKey)
      await call({ action: 'login', credential: newer })
      await expect(call({ action: 'login', credential: older })).rejects.toMatchObject(notAccepted)
    })

    it('lets one of two uses of the same counter in, however close they are', async () => {
      const { account } = await register()
      const thief = device.clone()
      const [mine, theirs] = [await begin('login'), await begin('login')]
      const credentials = [device.get(mine.publicKey), thief.get(theirs.publicKey)]
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

    it('tells of a lock only after the passkey held, and spends the challenge', async () => {
      const { account } = await register()
      await lockAccount(database(), { accountId: account.id, reason: 'person', at: noon })
      const { publicKey } = await begin('login')
      const credential = device.get(publicKey)
      const forged = answer(device.get((await begin('login')).publicKey), {
        signature: credential.response.signature ?? '',
      })
      await expect(call({ action: 'login', credential: forged })).rejects.toMatchObject(notAccepted)
      const counted = device.get((await begin('login')).publicKey)
      await expect(call({ action: 'login', credential: counted })).rejects.toMatchObject({
        code: 'account_locked',
      })
      await expect(call({ action: 'login', credential: counted })).rejects.toMatchObject(notAccepted)
    })

    it('is open to recovery, which asks only whose passkey it is', async () => {
      const { account } = await register()
      const { publicKey } = await loginOptions({ ...services, newId }, noon)
      const credential = authenticationResponse.parse(device.get(publicKey))
      await expect(assertPasskey(services, { credential, now: noon })).resolves.toEqual({
        accountId: account.id,
      })
      await expect(assertPasskey(services, { credential, now: noon })).rejects.toMatchObject(notAccepted)
    })

    it('refuses what has not the shape of a credential', async () => {
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
        const refused = await refusalOf(call({ action: 'register', credential }))
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

  describe('the list', () => {
    it('shows a person’s own passkeys in pages', async () => {
      const ada = await newPerson(database())
      const eve = await newPerson(database())
      for (let count = 0; count < 3; count += 1) await register(ada, newAuthenticator(origin))
      await register(eve, newAuthenticator(origin))
      const whole = await passkeysOf(ada)
      expect(whole.passkeys).toHaveLength(3)
      expect(whole.nextCursor).toBeNull()
      expect(whole.passkeys[0]).toMatchObject({
        id: expect.stringMatching(/^pk_/),
        createdAt: noon.toISOString(),
        lastUsedAt: null,
        deviceType: expect.stringMatching(/Device$/),
        backedUp: expect.any(Boolean),
      })
      const first = await passkeysOf(ada, { limit: '2' })
      const rest = await passkeysOf(ada, { limit: '2', cursor: first.nextCursor })
      expect([...first.passkeys, ...rest.passkeys]).toEqual(whole.passkeys)
      expect(rest.nextCursor).toBeNull()
    })

    it.each([{ cursor: 'x' }, { cursor: '' }, { cursor: '%00' }, { limit: '0' }, { limit: '101' }])(
      'refuses %j',
      async (page) => {
        const ada = await newPerson(database())
        await expect(passkeysOf(ada, page)).rejects.toMatchObject({ code: 'invalid_request' })
      },
    )
  })

  describe('removing', () => {
    const remove = (as: Principal, id: string, through = services) =>
      run(removePasskey, callOf(through, as), { id })

    it('takes a passkey away, but never the last way in', async () => {
      const ada = await newPerson(database())
      await register(ada)
      const [first] = (await passkeysOf(ada)).passkeys.map(({ id }) => id)
      await register(ada, newAuthenticator(origin))
      const [second] = (await passkeysOf(ada)).passkeys.map(({ id }) => id).filter((id) => id !== first)
      expect((await remove(ada, first ?? '')).body).toEqual({ removed: true })
      await expect(login()).rejects.toMatchObject(notAccepted)
      await expect(remove(ada, second ?? '')).rejects.toMatchObject({ code: 'conflict' })
      await database()
        .kysely.insertInto('federated_identity')
        .values({
          issuer: 'https://id.example',
          subject: ada.account.id,
          account_id: ada.account.id,
          created_at: noon,
        })
        .execute()
      await remove(ada, second ?? '')
      expect(await countPasskeys(database(), ada.account.id)).toBe(0)
    })

    it('knows nobody else’s', async () => {
      const [ada, eve] = [await newPerson(database()), await newPerson(database())]
      await register(eve)
      const [theirs] = (await passkeysOf(eve)).passkeys
      for (const id of [theirs?.id ?? '', 'pk_nothing'])
        await expect(remove(ada, id)).rejects.toMatchObject({ code: 'not_found' })
    })

    it('leaves one of two passkeys that are removed at once', async () => {
      const ada = await newPerson(database())
      await register(ada)
      await register(ada, newAuthenticator(origin))
      const { passkeys } = await passkeysOf(ada)
      const removals = await Promise.allSettled(passkeys.map(({ id }) => remove(ada, id)))
      expect(removals.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      expect(await countPasskeys(database(), ada.account.id)).toBe(1)
    })

    it('is privileged', async () => {
      const ada = await newPerson(database())
      const enrolled = { ...ada, account: { ...ada.account, mfaEnrolled: true } }
      await expect(remove(enrolled, 'pk_any')).rejects.toMatchObject({ code: 'step_up_required' })
    })
  })
})
