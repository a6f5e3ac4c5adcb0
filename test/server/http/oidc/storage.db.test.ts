/**
 * Storage of an OpenID provider: records are found until they expire, consumed once, and deleted with their grant;
 * equal on both engines.
 */
import { beforeEach, expect, it } from 'vitest'
import { createOpenIdStorage } from '../../../../src/server/http/oidc/storage.ts'
import { onBothEngines } from '../../../engines.ts'
import { noon } from '../../../kernel/scene.ts'

onBothEngines('the storage of an OpenID provider', (database) => {
  let now = noon
  const later = (seconds: number) => new Date(noon.getTime() + seconds * 1000)
  const storage = (model: string) => createOpenIdStorage({ database: database(), clock: () => now })(model)
  beforeEach(async () => {
    now = noon
    await database().kysely.deleteFrom('openid_record').execute()
  })

  it('finds a record unchanged, under its own model', async () => {
    const payload = {
      accountId: 'a',
      iat: 1_763_640_000,
      exp: 4_102_444_800,
      scope: 'openid',
      claims: { id_token: { name: null } },
    }
    await storage('Session').upsert('one', payload, 60)
    expect(await storage('Session').find('one')).toEqual(payload)
    expect(await storage('Session').find('two')).toBeUndefined()
    expect(await storage('Grant').find('one')).toBeUndefined()
  })

  it('drops expired records, and keeps those without an expiry', async () => {
    await storage('Session').upsert('short', { uid: 'u' }, 60)
    await storage('Client').upsert('long', { clientId: 'c' })
    now = later(59)
    expect(await storage('Session').find('short')).toBeDefined()
    now = later(60)
    expect(await storage('Session').find('short')).toBeUndefined()
    expect(await storage('Session').findByUid('u')).toBeUndefined()
    now = later(10 ** 9)
    expect(await storage('Client').find('long')).toEqual({ clientId: 'c' })
  })

  it('replaces a record and its expiry', async () => {
    await storage('Session').upsert('one', { uid: 'u', accountId: 'a' }, 60)
    await storage('Session').upsert('one', { uid: 'v', accountId: 'b' }, 120)
    now = later(90)
    expect(await storage('Session').find('one')).toEqual({ uid: 'v', accountId: 'b' })
    expect(await storage('Session').findByUid('u')).toBeUndefined()
    expect(await storage('Session').findByUid('v')).toMatchObject({ accountId: 'b' })
  })

  it('consumes a record once under concurrent attempts', async () => {
    const codes = storage('AuthorizationCode')
    await codes.upsert('code', { grantId: 'g' }, 60)
    const tries = await Promise.allSettled([1, 2, 3, 4].map(() => codes.consume('code')))
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(tries.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { error: 'invalid_grant' },
    })
    expect(await codes.find('code')).toEqual({ grantId: 'g', consumed: noon.getTime() / 1000 })
  })

  it('keeps a consumed record consumed when it is stored again', async () => {
    const codes = storage('AuthorizationCode')
    await codes.upsert('code', { grantId: 'g' }, 60)
    await codes.consume('code')
    await codes.upsert('code', { grantId: 'g' }, 60)
    expect(await codes.find('code')).toMatchObject({ consumed: noon.getTime() / 1000 })
  })

  it('deletes one record, or all of a model that belong to a grant', async () => {
    const [codes, tokens] = [storage('AuthorizationCode'), storage('AccessToken')]
    await codes.upsert('one', { grantId: 'g' }, 60)
    await tokens.upsert('one', { grantId: 'g' }, 60)
    await tokens.upsert('two', { grantId: 'g' }, 60)
    await tokens.upsert('other', { grantId: 'h' }, 60)
    await tokens.destroy('one')
    expect([await tokens.find('one'), await codes.find('one')]).toEqual([undefined, { grantId: 'g' }])
    await tokens.revokeByGrantId('g')
    expect(await tokens.find('two')).toBeUndefined()
    expect(await tokens.find('other')).toBeDefined()
    expect(await codes.find('one')).toBeDefined()
  })
})
