import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { Services, Settings } from '../../../src/kernel/context.ts'
import { authenticateApiKey } from '../../../src/people/identity/keys/api-keys.ts'
import { authenticateSession } from '../../../src/people/identity/sessions/sessions.ts'
import lock from '../../../tools/admin/accounts/lock.ts'
import unlock from '../../../tools/admin/accounts/unlock.ts'
import session from '../../../tools/auth/session.ts'
import createKey from '../../../tools/developer/keys/create.ts'
import controlsGet from '../../../tools/rails/controls/get.ts'
import controlsSet from '../../../tools/rails/controls/set.ts'
import sandboxAdmin from '../../../tools/sandbox/admin.ts'
import securityLock from '../../../tools/security/lock.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { newSignedIn, type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'

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

  it('locks an account with its sessions and keys, from the next request', async () => {
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

  it('gets not_found for an unknown account', async () => {
    for (const tool of [lock, unlock])
      await expect(admin.call(tool, { id: 'acct_00000000000000000000000000' })).rejects.toEqual(
        refusal('not_found'),
      )
  })

  it('must have the admin role', async () => {
    for (const tool of [lock, unlock, controlsGet, controlsSet])
      await expect(person.call(tool, tool.example)).rejects.toEqual(refusal('insufficient_scope'))
  })

  it('loses access from the next request after a demotion', async () => {
    await database()
      .kysely.updateTable('account')
      .set({ role: 'user' })
      .where('id', '=', admin.accountId)
      .execute()
    await expect(admin.call(controlsGet, {})).rejects.toEqual(refusal('insufficient_scope'))
  })

  it('is never a guest, whatever the account’s row contains', async () => {
    const guest = await newSignedIn(services, { guest: true })
    await expect(guest.call(sandboxAdmin, {})).rejects.toEqual(refusal('conflict'))
    await database()
      .kysely.updateTable('account')
      .set({ role: 'admin' })
      .where('id', '=', guest.accountId)
      .execute()
    await expect(guest.call(controlsGet, {})).rejects.toEqual(refusal('insufficient_scope'))
    const settings = { ...services.settings, founderAccount: guest.accountId }
    expect(await roleIn(settings, guest)).toBe('user')
  })

  it('is in production only the founder from the configuration, whatever the rows contain', async () => {
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
