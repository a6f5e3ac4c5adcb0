import { beforeAll, beforeEach, expect, it } from 'vitest'
import { Failure } from '../../../src/failure.ts'
import { authenticateApiKey } from '../../../src/identity/api-keys.ts'
import { authenticateSession } from '../../../src/identity/sessions.ts'
import type { Services, Settings } from '../../../src/kernel/context.ts'
import type { RailControls } from '../../../src/providers/rail-controls.ts'
import lock from '../../../tools/admin/accounts/lock.ts'
import unlock from '../../../tools/admin/accounts/unlock.ts'
import railsList from '../../../tools/admin/rails/list.ts'
import railsSet from '../../../tools/admin/rails/set.ts'
import session from '../../../tools/auth/session.ts'
import createKey from '../../../tools/developer/keys/create.ts'
import sandboxAdmin from '../../../tools/sandbox/admin.ts'
import securityLock from '../../../tools/security/lock.ts'
import { onBothEngines } from '../../engines.ts'
import { newSignedIn, type SignedIn, signInAgain } from '../../identity/signed-in.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'

onBothEngines('an administrator', (database) => {
  let services: Services
  let admin: SignedIn
  let person: SignedIn
  const refusal = (code: string) => expect.objectContaining({ code })

  beforeAll(async () => {
    services = await servicesOn(database())
  })
  beforeEach(async () => {
    admin = await newSignedIn(services)
    await admin.call(sandboxAdmin, {})
    person = await newSignedIn(services)
  })

  it('locks an account with its sessions and keys, for the very next request', async () => {
    const { body } = await person.call(createKey, { name: 'x', scopes: [] })
    await expect(admin.call(lock, { id: person.accountId })).resolves.toMatchObject({
      body: { id: person.accountId, status: 'locked' },
    })
    await expect(person.call(session, {})).rejects.toEqual(refusal('account_locked'))
    const asKey = () => authenticateApiKey(database(), String(body.key), noon)
    await expect(asKey()).rejects.toEqual(refusal('account_locked'))
    await expect(admin.call(unlock, { id: person.accountId })).resolves.toMatchObject({
      body: { status: 'active' },
    })
    await expect(asKey()).resolves.toBeDefined()
    await expect(person.call(session, {})).rejects.toEqual(refusal('unauthenticated'))
    await expect((await signInAgain(services, person.accountId)).call(session, {})).resolves.toBeDefined()
  })

  it('is told where there is no such account', async () => {
    for (const tool of [lock, unlock])
      await expect(admin.call(tool, { id: 'acct_00000000000000000000000000' })).rejects.toEqual(
        refusal('not_found'),
      )
  })

  it('switches rails, and sees those that cannot be read as unknown', async () => {
    await admin.call(railsSet, { rail: 'x402-fx', enabled: false, reason: 'Maintenance.' })
    await expect(admin.call(railsList, {})).resolves.toMatchObject({
      body: {
        rails: expect.arrayContaining([
          { rail: 'x402-fx', status: 'disabled', reason: 'Maintenance.' },
          { rail: 'wallet-transfer', status: 'enabled', reason: null },
        ]),
      },
    })
    await admin.call(railsSet, { rail: 'x402-fx', enabled: true })
    const dark: RailControls = {
      read: () => Promise.reject(new Failure('controls_unavailable', 'Nobody answers.')),
      write: () => Promise.reject(new Failure('controls_unavailable', 'Nobody answers.')),
    }
    const inTheDark = await signInAgain({ ...services, railControls: dark }, admin.accountId)
    await expect(inTheDark.call(railsList, {})).resolves.toMatchObject({
      body: { rails: expect.arrayContaining([expect.objectContaining({ status: 'unknown' })]) },
    })
    await expect(inTheDark.call(railsSet, { rail: 'x402-fx', enabled: true })).rejects.toEqual(
      refusal('controls_unavailable'),
    )
  })

  it('is nobody who is not', async () => {
    for (const tool of [lock, unlock, railsList, railsSet])
      await expect(person.call(tool, tool.example)).rejects.toEqual(refusal('insufficient_scope'))
  })

  it('stops being one with the very next request', async () => {
    await database()
      .kysely.updateTable('account')
      .set({ role: 'user' })
      .where('id', '=', admin.accountId)
      .execute()
    await expect(admin.call(railsList, {})).rejects.toEqual(refusal('insufficient_scope'))
  })

  it('is never a guest, whatever the account’s row says', async () => {
    const guest = await newSignedIn(services, { guest: true })
    await expect(guest.call(sandboxAdmin, {})).rejects.toEqual(refusal('conflict'))
    await database()
      .kysely.updateTable('account')
      .set({ role: 'admin' })
      .where('id', '=', guest.accountId)
      .execute()
    await expect(guest.call(railsList, {})).rejects.toEqual(refusal('insufficient_scope'))
    const settings = { ...services.settings, founderAccount: guest.accountId }
    expect(await roleIn(settings, guest)).toBe('user')
  })

  it('is in production the configuration’s founder alone, whatever the rows say', async () => {
    const production = { ...services.settings, mode: 'production' as const }
    expect(await roleIn(production, admin)).toBe('user')
    expect(await roleIn({ ...production, founderAccount: person.accountId }, admin)).toBe('user')
    expect(await roleIn({ ...production, founderAccount: person.accountId }, person)).toBe('admin')
  })

  it('is not needed to lock one’s own account', async () => {
    await expect(person.call(securityLock, {})).resolves.toMatchObject({ body: { locked: true } })
    await expect(person.call(session, {})).rejects.toEqual(refusal('account_locked'))
    const row = await database()
      .kysely.selectFrom('account')
      .select(['lock_reason', 'locked_at'])
      .where('id', '=', person.accountId)
      .executeTakeFirst()
    expect(row).toEqual({ lock_reason: 'person', locked_at: noon })
  })

  async function roleIn(settings: Settings, { token }: SignedIn) {
    const caller = await authenticateSession(
      { database: database(), settings },
      { token, tokenHolder: 'client' },
      noon,
    )
    return caller.principal.account.role
  }
})
