import { createSecretKey, generateKeyPairSync } from 'node:crypto'
import { type JWTPayload, SignJWT } from 'jose'
import { beforeEach, expect, it } from 'vitest'
import { newId } from '../../../../src/core/base/ids.ts'
import type { Principal } from '../../../../src/core/base/principal.ts'
import { authenticateSession, openSession } from '../../../../src/people/identity/sessions/sessions.ts'
import { onBothEngines } from '../../../engines.ts'
import { newPerson, noon, origin } from '../../../kernel/scene.ts'

const settings = {
  sessionKey: Buffer.from('a secret of thirty-two characters'),
  previousSessionKeys: [] as readonly Buffer[],
  origin,
  mode: 'sandbox' as const,
  founderAccount: null,
  dataKey: Buffer.from('a data key of thirty-two characters'),
}
const inMinutes = (minutes: number) => new Date(noon.getTime() + minutes * 60_000)

onBothEngines('a session', (database) => {
  let person: Extract<Principal, { kind: 'session' }>
  let token: string
  let sid: string

  beforeEach(async () => {
    person = await newPerson(database())
    const parts = { database: database(), newId, settings }
    token = (await openSession(parts, { accountId: person.account.id, method: 'guest', at: noon }))
      .sessionToken
    sid = parseClaims(token).sid
  })
  const authenticate = (given: string, now = noon, through = settings) =>
    authenticateSession(
      { database: database(), settings: through },
      { token: given, tokenHolder: 'client' },
      now,
    )
  const parseClaims = (given: string): JWTPayload & { sid: string } =>
    JSON.parse(Buffer.from(given.split('.')[1] ?? '', 'base64url').toString())
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const expectRefusal = (given: string, now = noon) =>
    expect(authenticate(given, now)).rejects.toMatchObject({ code: 'unauthenticated' })

  /** A token signed with our secret, with overridden members. */
  const forge = ({
    claims = {},
    header = {},
    key = settings.sessionKey,
  }: {
    claims?: Record<string, unknown>
    header?: Record<string, string>
    key?: Uint8Array
  }) =>
    new SignJWT({ ...parseClaims(token), ...claims })
      .setProtectedHeader({ alg: 'HS256', typ: 'bursar-session+jwt', ...header })
      .sign(createSecretKey(key))

  it('identifies the person, with their current role and state', async () => {
    await expect(authenticate(token)).resolves.toMatchObject({
      principal: {
        kind: 'session',
        account: { id: person.account.id, role: 'user' },
        session: { id: sid, tokenExpiresAt: inMinutes(15) },
      },
      renewed: null,
    })
    await database()
      .kysely.updateTable('account')
      .set({ role: 'admin' })
      .where('id', '=', person.account.id)
      .execute()
    await expect(authenticate(token)).resolves.toMatchObject({ principal: { account: { role: 'admin' } } })
  })

  it('is accepted with irrelevant differences', async () => {
    await expect(forge({}).then((given) => authenticate(given))).resolves.toMatchObject({
      principal: { session: { id: sid } },
    })
  })

  it('is rejected with another signer', async () => {
    await expectRefusal(await forge({ key: Buffer.from('another secret of the same length') }))
    await expectRefusal(await forge({ key: Buffer.from('x') }))
    const { privateKey } = generateKeyPairSync('ed25519')
    const signed = await new SignJWT(parseClaims(token))
      .setProtectedHeader({ alg: 'EdDSA', typ: 'bursar-session+jwt' })
      .sign(privateKey)
    await expectRefusal(signed)
  })

  it('is rejected with alg none, another algorithm or another typ', async () => {
    const [, payload = '', signature = ''] = token.split('.')
    for (const alg of ['none', 'None', 'NONE'])
      for (const end of ['', signature])
        await expectRefusal(`${encode({ alg, typ: 'bursar-session+jwt' })}.${payload}.${end}`)
    await expectRefusal(await forge({ header: { alg: 'HS512' }, key: Buffer.alloc(64, settings.sessionKey) }))
    await expectRefusal(await forge({ header: { typ: 'JWT' } }))
    await expectRefusal(await forge({ header: { typ: '' } }))
  })

  it.each([
    ['another issuer', { iss: 'https://evil.example' }],
    ['no issuer', { iss: undefined }],
    ['another audience', { aud: 'https://evil.example' }],
    ['no audience', { aud: undefined }],
    ['no expiry', { exp: undefined }],
    ['a non-numeric expiry', { exp: 'never' }],
    ['no subject', { sub: undefined }],
    ['no session', { sid: undefined }],
    ['a non-text session', { sid: 5 }],
    ['an unknown session', { sid: 'sess_00000000000000000000000000' }],
    ['another account', { sub: 'acct_00000000000000000000000000' }],
    ['a beginning to come', { nbf: noon.getTime() / 1000 + 60 }],
  ])('is rejected with %s', async (_name, claims) => {
    await expectRefusal(await forge({ claims }))
  })

  it('is rejected if it was changed, truncated or is not a token', async () => {
    const [header = '', , signature = ''] = token.split('.')
    const other = await newPerson(database())
    await expectRefusal(`${header}.${encode({ ...parseClaims(token), sub: other.account.id })}.${signature}`)
    for (const given of [
      '',
      '.',
      '..',
      'x',
      token.slice(0, -1),
      `${token}.`,
      token.replaceAll('.', ''),
      'é.é.é',
    ])
      await expectRefusal(given)
  })

  it('is invalid at another gateway, also where this one has just accepted it', async () => {
    await authenticate(token)
    for (const others of [{ origin: 'https://other.example' }, { sessionKey: Buffer.alloc(32, 9) }])
      await expect(authenticate(token, noon, { ...settings, ...others })).rejects.toMatchObject({
        code: 'unauthenticated',
      })
  })

  it('stays valid while its key is being replaced, and no longer', async () => {
    const sessionKey = Buffer.from('another secret of many characters')
    const rotated = { ...settings, sessionKey, previousSessionKeys: [settings.sessionKey] }
    const over = { ...settings, sessionKey }
    // First: a process remembers what it has verified.
    await expect(authenticate(token, noon, over)).rejects.toMatchObject({ code: 'unauthenticated' })
    const accepted = await authenticate(token, inMinutes(8), rotated)
    expect(accepted).toMatchObject({ principal: { session: { id: sid } } })
    // What it is renewed to no longer needs the previous key.
    const renewed = accepted.renewed?.sessionToken ?? ''
    expect(await authenticate(renewed, inMinutes(8), over)).toMatchObject({
      principal: { session: { id: sid } },
    })
    const strangers = await forge({ key: Buffer.alloc(32, 7) })
    await expect(authenticate(strangers, noon, rotated)).rejects.toMatchObject({ code: 'unauthenticated' })
  })

  it('expires with its token after 15 minutes, to the second', async () => {
    await expect(authenticate(token, new Date(inMinutes(15).getTime() - 1000))).resolves.toMatchObject({
      principal: { session: { id: sid } },
    })
    await expectRefusal(token, inMinutes(15))
  })

  it('is renewed in the second half of its token’s life, and the new token is valid for another 15 minutes', async () => {
    expect((await authenticate(token, inMinutes(7.5))).renewed).toBeNull()
    const { renewed } = await authenticate(token, inMinutes(7.6))
    expect(renewed?.expiresAt).toEqual(inMinutes(22.6))
    const later = await authenticate(renewed?.sessionToken ?? '', inMinutes(22))
    expect(later.principal.session.id).toBe(sid)
  })

  it('is never renewed past its 12 hours', async () => {
    let current = token
    for (let minutes = 10; minutes < 12 * 60; minutes += 10)
      current = (await authenticate(current, inMinutes(minutes))).renewed?.sessionToken ?? current
    const last = await authenticate(current, inMinutes(12 * 60 - 1))
    expect(last.renewed?.expiresAt).toEqual(inMinutes(12 * 60))
    await expectRefusal(last.renewed?.sessionToken ?? '', inMinutes(12 * 60))
    const [kept] = await database()
      .kysely.selectFrom('session')
      .select('expires_at')
      .where('id', '=', sid)
      .execute()
    expect(kept?.expires_at).toEqual(inMinutes(12 * 60))
  })

  it('ends at once when its row is revoked, expired or deleted', async () => {
    const change = (set: { revoked_at: Date | null; expires_at: Date }) =>
      database().kysely.updateTable('session').set(set).where('id', '=', sid).execute()
    await change({ revoked_at: noon, expires_at: inMinutes(60) })
    await expectRefusal(token)
    await change({ revoked_at: null, expires_at: noon })
    await expectRefusal(token)
    await change({ revoked_at: null, expires_at: inMinutes(60) })
    await expect(authenticate(token)).resolves.toMatchObject({ principal: { session: { id: sid } } })
    await database().kysely.deleteFrom('session').where('id', '=', sid).execute()
    await expectRefusal(token)
  })

  it('gets 423 while the account is locked', async () => {
    const lock = (status: 'locked' | 'active') =>
      database().kysely.updateTable('account').set({ status }).where('id', '=', person.account.id).execute()
    await lock('locked')
    await expect(authenticate(token)).rejects.toMatchObject({ code: 'account_locked', status: 423 })
    await lock('active')
    await expect(authenticate(token)).resolves.toMatchObject({ principal: { session: { id: sid } } })
  })
})
