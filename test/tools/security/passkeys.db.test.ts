import { beforeEach, describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/core/base/principal.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { countPasskeys } from '../../../src/people/identity/passkeys/passkeys.ts'
import removePasskey from '../../../tools/security/passkeys/remove.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, newPerson, noon, origin, servicesOn } from '../../kernel/scene.ts'
import { newAuthenticator } from '../../people/identity/authenticator.ts'
import { type PasskeyScene, passkeyScene, signInRejected } from '../../people/identity/passkey-scene.ts'

onBothEngines('a person’s passkeys', (database) => {
  let services: Services
  let register: PasskeyScene['register']
  let login: PasskeyScene['login']
  let readPasskeys: PasskeyScene['readPasskeys']
  beforeEach(async () => {
    services = await servicesOn(database())
    ;({ register, login, readPasskeys } = passkeyScene(services))
  })

  describe('the list', () => {
    it('shows a person’s own passkeys in pages', async () => {
      const ada = await newPerson(database())
      const eve = await newPerson(database())
      for (let count = 0; count < 3; count += 1) await register(ada, newAuthenticator(origin))
      await register(eve, newAuthenticator(origin))
      const whole = await readPasskeys(ada)
      expect(whole.passkeys).toHaveLength(3)
      expect(whole.nextCursor).toBeNull()
      expect(whole.passkeys[0]).toMatchObject({
        id: expect.stringMatching(/^pk_/),
        createdAt: noon.toISOString(),
        lastUsedAt: null,
        deviceType: expect.stringMatching(/Device$/),
        backedUp: expect.any(Boolean),
      })
      const first = await readPasskeys(ada, { limit: '2' })
      const rest = await readPasskeys(ada, { limit: '2', cursor: first.nextCursor })
      expect([...first.passkeys, ...rest.passkeys]).toEqual(whole.passkeys)
      expect(rest.nextCursor).toBeNull()
    })

    it.each([{ cursor: 'x' }, { cursor: '' }, { cursor: '%00' }, { limit: '0' }, { limit: '101' }])(
      'rejects %j',
      async (page) => {
        const ada = await newPerson(database())
        await expect(readPasskeys(ada, page)).rejects.toMatchObject({ code: 'invalid_request' })
      },
    )
  })

  describe('removing', () => {
    const remove = (as: Principal, id: string, through = services) =>
      run(removePasskey, buildCall(through, as), { id })

    it('removes a passkey, but never the last credential', async () => {
      const ada = await newPerson(database())
      await register(ada)
      const [first] = (await readPasskeys(ada)).passkeys.map(({ id }) => id)
      await register(ada, newAuthenticator(origin))
      const [second] = (await readPasskeys(ada)).passkeys.map(({ id }) => id).filter((id) => id !== first)
      expect((await remove(ada, first ?? '')).body).toEqual({ removed: true })
      await expect(login()).rejects.toMatchObject(signInRejected)
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

    it('finds no passkey of another account', async () => {
      const [ada, eve] = [await newPerson(database()), await newPerson(database())]
      await register(eve)
      const [theirs] = (await readPasskeys(eve)).passkeys
      for (const id of [theirs?.id ?? '', 'pk_nothing'])
        await expect(remove(ada, id)).rejects.toMatchObject({ code: 'not_found' })
    })

    it('keeps one of two passkeys that are removed concurrently', async () => {
      const ada = await newPerson(database())
      await register(ada)
      await register(ada, newAuthenticator(origin))
      const { passkeys } = await readPasskeys(ada)
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
