/** Access tokens: accepted at `/mcp`, and rejected look-alikes. */
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, SignJWT } from 'jose'
import { beforeEach, expect, it } from 'vitest'
import { newId } from '../../../../src/core/base/ids.ts'
import { rotatingKeys } from '../../../../src/core/base/rotating-key.ts'
import {
  authenticateAccessToken,
  exportTokenJwks,
  KEY_CLAIM,
} from '../../../../src/people/identity/oauth/oauth-tokens.ts'
import { insertKey } from '../../../../src/people/identity/store.ts'
import { onBothEngines } from '../../../engines.ts'
import { buildKeyPrincipal, newPerson, noon, origin } from '../../../kernel/scene.ts'

const dataKey = Buffer.from('a data key of thirty-two letters')
const derived = rotatingKeys.ACCESS_TOKEN_KEY.derive(dataKey)
const accessTokenKey = { current: derived, previous: null }
const minutesLater = (minutes: number) => new Date(noon.getTime() + minutes * 60_000)

onBothEngines('an access token', (database) => {
  let ownKey: KeyObject
  let accountId: string
  let keyId: string
  beforeEach(async () => {
    ownKey = derived
    const { account } = await newPerson(database())
    accountId = account.id
    keyId = newId('key', noon)
    await insertKey(database(), accountId, {
      ...buildKeyPrincipal(account, {
        id: keyId,
        kind: 'grant',
        name: 'Client',
        scopes: ['wallets:read', 'cards:read'],
      }).key,
      secretHash: null,
    })
  })

  /** A token signed as the authorization server does, with overridden members. */
  const signToken = ({
    claims = {},
    header = {},
    key = ownKey,
  }: {
    claims?: Record<string, unknown>
    header?: Record<string, unknown>
    key?: KeyObject | Uint8Array
  }) =>
    new SignJWT({
      iss: `${origin}/oauth`,
      aud: `${origin}/mcp`,
      sub: accountId,
      client_id: 'client',
      scope: 'wallets:read',
      exp: minutesLater(10).getTime() / 1000,
      [KEY_CLAIM]: keyId,
      ...claims,
    })
      .setProtectedHeader({ alg: 'EdDSA', typ: 'at+jwt', ...header })
      .sign(key)
  const authenticate = (token: string, at = noon) =>
    authenticateAccessToken({ database: database(), settings: { origin, accessTokenKey } }, token, at)
  const expectRefusal = (token: string, at = noon) =>
    expect(authenticate(token, at)).rejects.toMatchObject({ code: 'unauthenticated' })

  it('acts for its grant, with the intersection of their scopes, until it expires', async () => {
    const token = await signToken({})
    for (const at of [noon, minutesLater(9)])
      expect(await authenticate(token, at)).toMatchObject({
        kind: 'key',
        account: { id: accountId },
        key: { id: keyId, scopes: ['wallets:read'] },
      })
    await expectRefusal(token, minutesLater(10))
  })

  it('is accepted by both keys of a rotation, which are published, and afterwards by the new one alone', async () => {
    const next = generateKeyPairSync('ed25519').privateKey
    const settingsOf = (current: KeyObject, previous: KeyObject | null) => {
      return { origin, accessTokenKey: { current, previous } }
    }
    const steps = [
      { settings: settingsOf(derived, next), accepted: [derived, next] },
      { settings: settingsOf(next, derived), accepted: [next, derived] },
      { settings: settingsOf(next, null), accepted: [next] },
    ]
    const thumbprint = (key: KeyObject) =>
      calculateJwkThumbprint(createPublicKey(key).export({ format: 'jwk' }))
    for (const { settings, accepted } of steps) {
      const published = await exportTokenJwks(settings.accessTokenKey)
      expect(published.map(({ kid }) => kid)).toEqual(await Promise.all(accepted.map(thumbprint)))
      for (const key of [derived, next]) {
        const authenticating = authenticateAccessToken(
          { database: database(), settings },
          await signToken({ key }),
          noon,
        )
        if (accepted.includes(key)) expect(await authenticating).toMatchObject({ kind: 'key' })
        else await expect(authenticating).rejects.toMatchObject({ code: 'unauthenticated' })
      }
      const { privateKey } = generateKeyPairSync('ed25519')
      const stranger = authenticateAccessToken(
        { database: database(), settings },
        await signToken({ key: privateKey }),
        noon,
      )
      await expect(stranger).rejects.toMatchObject({ code: 'unauthenticated' })
    }
  })

  it('is rejected with another signer, whatever keys it embeds or names', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const jwk = publicKey.export({ format: 'jwk' })
    for (const header of [{}, { jwk }, { jku: 'https://evil.example/jwks' }, { kid: 'evil' }])
      await expectRefusal(await signToken({ key: privateKey, header }))
  })

  it('is rejected with alg none, and with our public key as an HMAC secret', async () => {
    const [, body = '', signature = ''] = (await signToken({})).split('.')
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt' })).toString('base64url')
    for (const token of [`${none}.${body}.`, `${none}.${body}.${signature}`]) await expectRefusal(token)
    const { x } = createPublicKey(derived).export({ format: 'jwk' })
    const secret = Buffer.from(String(x), 'base64url')
    await expectRefusal(await signToken({ key: secret, header: { alg: 'HS256' } }))
  })

  it.each([
    ['another resource', { aud: `${origin}/api` }],
    ['no resource', { aud: undefined }],
    ['another issuer', { iss: 'https://evil.example/oauth' }],
    ['no expiry', { exp: undefined }],
    ['a beginning to come', { nbf: noon.getTime() / 1000 + 60 }],
    ['no client', { client_id: undefined }],
  ])('is rejected with %s', async (_name, claims) => {
    await expectRefusal(await signToken({ claims }))
  })

  it.each(['JWT', 'id_token+jwt', 'bursar-session+jwt', undefined])(
    'is rejected with the type %s',
    async (typ) => {
      await expectRefusal(await signToken({ header: { typ } }))
    },
  )

  it('is rejected if it names another account than its grant’s', async () => {
    const other = await newPerson(database())
    await expect(authenticate(await signToken({ claims: { sub: other.account.id } }))).rejects.toMatchObject({
      code: 'unknown_key',
    })
  })
})
