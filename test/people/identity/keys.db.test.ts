import { generateKeyPairSync } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../src/core/base/ids.ts'
import type { AccessKey, Principal } from '../../../src/core/base/principal.ts'
import { run } from '../../../src/kernel/run.ts'
import {
  hashPolicy,
  isEd25519PublicKey,
  registerAgentKey,
} from '../../../src/people/identity/keys/agent-keys.ts'
import { authenticateApiKey, hashApiKey, newApiKey } from '../../../src/people/identity/keys/api-keys.ts'
import { insertKey } from '../../../src/people/identity/store.ts'
import createAgentKey from '../../../tools/agents/keys/create.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, buildKeyPrincipal, newPerson, noon, servicesOn } from '../../kernel/scene.ts'

const publicKey = () => generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }).x ?? ''
const policy = {
  currency: 'USD',
  perTransaction: { max: '5' },
  dailyBudget: { max: '12' },
  categories: { allow: ['transfer'] },
} as const

describe('an Ed25519 public key', () => {
  it('is 32 bytes in base64url', () => {
    expect(isEd25519PublicKey('11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo')).toBe(true)
    for (let count = 0; count < 20; count += 1) expect(isEd25519PublicKey(publicKey())).toBe(true)
  })

  const point = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'
  it.each([
    ['nothing', ''],
    ['31 bytes', Buffer.alloc(31, 7).toString('base64url')],
    ['33 bytes', Buffer.alloc(33, 7).toString('base64url')],
    ['base64 with padding', `${point}=`],
    ['base64 that is not url-safe', point.replace('_', '/')],
    ['a space around it', ` ${point}`],
    ['bits beyond the 32 bytes, so that one key would have many names', point.replace(/o$/, 'p')],
    [
      'the point of order one, for which anybody can sign',
      Buffer.from([1, ...Array(31).fill(0)]).toString('base64url'),
    ],
    ['the point of order two', Buffer.from([0xec, ...Array(30).fill(0xff), 0x7f]).toString('base64url')],
    ['a point of order four', Buffer.alloc(32).toString('base64url')],
    [
      'the point of order one with its sign turned',
      Buffer.from([1, ...Array(30).fill(0), 0x80]).toString('base64url'),
    ],
    [
      'the point of order one in another encoding',
      Buffer.from([0xee, ...Array(30).fill(0xff), 0x7f]).toString('base64url'),
    ],
    [
      'a point of order eight',
      Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'hex').toString(
        'base64url',
      ),
    ],
  ])('is not %s', (_name, x) => {
    expect(isEd25519PublicKey(x)).toBe(false)
  })
})

describe('the hash of a policy', () => {
  it('is equal for the same policy in any order, and differs for another', () => {
    const { currency, ...rest } = policy
    expect(hashPolicy({ ...rest, currency, categories: { allow: ['transfer'] } })).toBe(
      hashPolicy({ currency, ...rest, categories: { allow: ['transfer'] } }),
    )
    expect(hashPolicy({ ...policy, categories: { allow: [] } })).not.toBe(
      hashPolicy({ ...policy, categories: { allow: ['transfer'] } }),
    )
    expect(hashPolicy(null)).toBeNull()
  })
})

onBothEngines('keys', (database) => {
  let person: Extract<Principal, { kind: 'session' }>
  beforeEach(async () => {
    person = await newPerson(database())
  })
  const lock = (status: 'locked' | 'active') =>
    database().kysely.updateTable('account').set({ status }).where('id', '=', person.account.id).execute()

  describe('an API key', () => {
    const createSecret = async (changes: Partial<AccessKey> = {}) => {
      const secret = newApiKey('sandbox')
      const { key } = buildKeyPrincipal(person.account, { kind: 'developer', ...changes })
      await insertKey(database(), person.account.id, { ...key, secretHash: hashApiKey(secret) })
      return secret
    }
    const authenticate = (secret: string, now = noon) => authenticateApiKey(database(), secret, now)

    it('authenticates as its owner, and only its hash is stored', async () => {
      const secret = await createSecret({ scopes: ['wallets:read'], name: 'CI' })
      await expect(authenticate(secret)).resolves.toMatchObject({
        kind: 'key',
        account: { id: person.account.id },
        key: { kind: 'developer', name: 'CI', scopes: ['wallets:read'] },
      })
      expect(secret).toMatch(/^bsk_sandbox_[\w-]{49}$/)
      expect(newApiKey('production')).toMatch(/^bsk_live_[\w-]{49}$/)
      const rows = await database().kysely.selectFrom('access_key').selectAll().execute()
      expect(
        JSON.stringify(rows, (_name, value) => (typeof value === 'bigint' ? String(value) : value)),
      ).not.toContain(secret)
    })

    it('is unknown if it was never issued', async () => {
      await expect(authenticate(newApiKey('sandbox'))).rejects.toMatchObject({
        ...{ code: 'unknown_key', status: 401 },
        message: 'The API key is unknown, revoked or expired.',
      })
    })

    it('works without a checksum, as issued before keys had one', async () => {
      const secret = `bsk_sandbox_${'a'.repeat(43)}`
      const { key } = buildKeyPrincipal(person.account, { kind: 'developer' })
      await insertKey(database(), person.account.id, { ...key, secretHash: hashApiKey(secret) })
      await expect(authenticate(secret)).resolves.toMatchObject({ kind: 'key', key: { id: key.id } })
    })

    it('is told as mistyped where it differs slightly from one that was', async () => {
      const secret = await createSecret()
      const swapped = secret.replace(/(.)(.)(.{20})$/, '$2$1$3')
      const others = [secret.slice(0, -1), secret.slice(0, -6), secret.toUpperCase(), swapped, `${secret}x`]
      expect(swapped).toHaveLength(secret.length)
      for (const given of [...others.filter((text) => text !== secret), 'bsk_sandbox_x', ''])
        await expect(authenticate(given)).rejects.toMatchObject({
          ...{ code: 'unknown_key', status: 401 },
          message: 'The API key is mistyped or cut: its checksum does not match.',
        })
    })

    it('is unknown once it is revoked, and from the moment of its expiry', async () => {
      await expect(createSecret({ status: 'revoked' }).then(authenticate)).rejects.toMatchObject({
        code: 'unknown_key',
      })
      const secret = await createSecret({ expiresAt: new Date(noon.getTime() + 1) })
      await expect(authenticate(secret)).resolves.toMatchObject({ kind: 'key' })
      await expect(authenticate(secret, new Date(noon.getTime() + 1))).rejects.toMatchObject({
        code: 'unknown_key',
      })
    })

    it('gets 423 while its owner is locked', async () => {
      const secret = await createSecret()
      await lock('locked')
      await expect(authenticate(secret)).rejects.toMatchObject({ code: 'account_locked', status: 423 })
      await lock('active')
      await expect(authenticate(secret)).resolves.toMatchObject({ kind: 'key' })
    })
  })

  describe('an agent’s key', () => {
    const agent = (x: string) => ({
      accountId: person.account.id,
      name: 'Bot',
      publicKey: x,
      scopes: [],
      policy: null,
      expiresAt: null,
      at: noon,
    })

    it('is registered once: a second registration is a conflict, which does not break the transaction', async () => {
      const x = publicKey()
      await registerAgentKey({ database: database(), newId }, agent(x))
      const other = publicKey()
      await database().transaction(async (connection) => {
        await expect(registerAgentKey({ database: connection, newId }, agent(x))).rejects.toMatchObject({
          code: 'conflict',
        })
        await registerAgentKey({ database: connection, newId }, agent(other))
      })
      const kept = await database()
        .kysely.selectFrom('access_key')
        .select('public_key')
        .where('account_id', '=', person.account.id)
        .execute()
      expect(kept.map((row) => row.public_key).sort()).toEqual([x, other].sort())
    })

    it('is a conflict for another owner too, and after it was revoked', async () => {
      const x = publicKey()
      await registerAgentKey({ database: database(), newId }, agent(x))
      await database()
        .kysely.updateTable('access_key')
        .set({ status: 'revoked' })
        .where('public_key', '=', x)
        .execute()
      person = await newPerson(database())
      await expect(registerAgentKey({ database: database(), newId }, agent(x))).rejects.toMatchObject({
        code: 'conflict',
      })
    })

    it('is registered by its owner, with the same answer for the same idempotency key', async () => {
      const x = publicKey()
      const call = buildCall(await servicesOn(database()), person, { idempotencyKey: 'register' })
      const input = { name: 'Bot', publicKey: x, scopes: ['wallets:transfer'], policy }
      const first = await run(createAgentKey, call, input)
      expect(first.body).toMatchObject({
        algorithm: 'ed25519',
        status: 'active',
        policy: { perTransaction: { max: '5' } },
      })
      expect(await run(createAgentKey, call, input)).toEqual({
        body: first.body,
        replayed: true,
        decisionId: null,
      })
      await expect(run(createAgentKey, { ...call, idempotencyKey: null }, input)).rejects.toMatchObject({
        code: 'conflict',
      })
    })

    it.each([
      ['an invalid public key', { publicKey: 'x' }, 'publicKey'],
      [
        'a JWK of another curve',
        { publicKey: { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) } },
        'publicKey.crv',
      ],
      [
        'a private JWK',
        { publicKey: { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43), d: 'A'.repeat(43) } },
        'publicKey',
      ],
      ['a scope that moves money, without a policy', { policy: undefined }, 'policy'],
      ['an unknown scope', { scopes: ['admin'] }, 'scopes.0'],
      [
        'a policy with a misspelt limit',
        { policy: { ...policy, perTransactoin: { max: '1' } } },
        'policy.perTransactoin',
      ],
    ])('is rejected with %s', async (_name, changes, path) => {
      const call = buildCall(await servicesOn(database()), person)
      const input = { name: 'Bot', publicKey: publicKey(), scopes: ['wallets:transfer'], policy, ...changes }
      await expect(run(createAgentKey, call, input)).rejects.toMatchObject({
        code: 'invalid_request',
        members: { issues: expect.arrayContaining([expect.objectContaining({ path })]) },
      })
    })
  })
})
