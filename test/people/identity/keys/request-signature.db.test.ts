import { generateKeyPairSync } from 'node:crypto'
import { createVerifier, httpbis } from 'http-message-signatures'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/core/base/ids.ts'
import type { Principal } from '../../../../src/core/base/principal.ts'
import { registerAgentKey } from '../../../../src/people/identity/keys/agent-keys.ts'
import { contentDigest } from '../../../../src/people/identity/keys/content-digest.ts'
import {
  authenticateSignature,
  type RawRequest,
} from '../../../../src/people/identity/keys/request-signature.ts'
import { signRequest } from '../../../../src/people/identity/keys/sign-request.ts'
import { computeThumbprint } from '../../../../src/people/identity/keys/thumbprint.ts'
import { sweepNonces } from '../../../../src/people/identity/store.ts'
import { onBothEngines } from '../../../engines.ts'
import { type Agent, type AgentRequest, newAgent } from '../../../journeys/agent.ts'
import { newPerson, noon, origin } from '../../../kernel/scene.ts'

const targets = [
  '/api/wallets',
  '/api/wallets?a=b&c=%20d',
  '/api/wallets?',
  '/',
  '/?x=%2F&x=2&y=a+b',
  '/%7Eada/a%2fb',
  '/a?b?c',
]
const body = Buffer.from('{"amount":"1"}')
const inSeconds = (seconds: number) => new Date(noon.getTime() + seconds * 1000)

const buildRaw = (
  headers: Readonly<Record<string, string>>,
  {
    method = 'GET',
    target = '/api/wallets',
    body: sent = new Uint8Array(),
  }: Partial<Omit<RawRequest, 'fields'>> = {},
): RawRequest => ({
  method,
  target,
  body: sent,
  fields: Object.entries(headers).map(([name, value]) => ({ name, value })),
})

describe('a request signed by our client', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const keyId = computeThumbprint(privateKey.export({ format: 'jwk' }).x ?? '')

  /** Verdict of an independent verifier. */
  const verifies = (method: string, target: string, headers: Record<string, string>) =>
    httpbis.verifyMessage(
      {
        keyLookup: async ({ keyid }) =>
          keyid === keyId
            ? { id: keyId, algs: ['ed25519'], verify: createVerifier(publicKey, 'ed25519') }
            : null,
        requiredParams: ['created', 'expires', 'nonce', 'keyid', 'tag'],
        requiredFields: ['@method', '@authority', '@path', '@query'],
      },
      { method, url: `${origin}${target}`, headers },
    )

  it.each(targets)('is verified by an independent library: GET %s', async (target) => {
    const at = new Date()
    const headers = await signRequest(
      { keyId, privateKey },
      { origin, method: 'GET', target, body: null, at },
    )
    expect(await verifies('GET', target, headers)).toBe(true)
    expect(await verifies('POST', target, headers)).toBe(false)
    expect(await verifies('GET', `${target}x`, headers)).toBe(false)
  })

  it.each(targets)('is verified with its body and idempotency key: POST %s', async (target) => {
    const at = new Date()
    const headers = await signRequest(
      { keyId, privateKey },
      { origin, method: 'POST', target, body, idempotencyKey: 'invoice-17', at },
    )
    expect(headers['content-digest']).toBe(contentDigest(body))
    expect(headers['signature-input']).toMatch(/"content-digest" "idempotency-key"\)/)
    expect(await verifies('POST', target, headers)).toBe(true)
    expect(await verifies('POST', target, { ...headers, 'idempotency-key': 'invoice-18' })).toBe(false)
    expect(
      await verifies('POST', target, { ...headers, 'content-digest': contentDigest(Buffer.from('x')) }),
    ).toBe(false)
  })
})

describe('the key of RFC 8037', () => {
  it('has the thumbprint that the RFC publishes', () => {
    expect(computeThumbprint('11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo')).toBe(
      'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
    )
  })
})

onBothEngines('a signed request', (database) => {
  let agent: Agent
  let person: Extract<Principal, { kind: 'session' }>

  beforeAll(async () => {
    person = await newPerson(database())
  })
  const register = async (publicKey: string, expiresAt: Date | null = null) =>
    registerAgentKey(
      { database: database(), newId },
      { accountId: person.account.id, name: 'Bot', publicKey, scopes: [], policy: null, expiresAt, at: noon },
    )
  beforeEach(async () => {
    agent = await newAgent()
    await register(agent.jwk.x)
  })
  const authenticate = (raw: RawRequest, now = noon) =>
    authenticateSignature(
      {
        database: database(),
        origin,
        newId,
        keepContacts: async (_, policy) => policy,
        recordDelegated: async () => {},
      },
      raw,
      now,
    )
  const sign = (request: Partial<AgentRequest> = {}, parameters: AgentRequest['parameters'] = {}) =>
    agent.sign({
      method: 'GET',
      url: `${origin}/api/wallets`,
      ...request,
      parameters: { created: noon, expires: inSeconds(60), ...parameters },
    })
  const post = { method: 'POST', target: '/api/wallets', body }
  const signPost = (request: Partial<AgentRequest> = {}, parameters: AgentRequest['parameters'] = {}) =>
    sign({ method: 'POST', body: body.toString(), ...request }, parameters)

  it.each(targets)(
    'a request signed by an independent library is accepted: GET and POST %s',
    async (target) => {
      const url = `${origin}${target}`
      expect(await authenticate(buildRaw(await sign({ url }), { target }))).toMatchObject({
        kind: 'key',
        account: { id: person.account.id },
        key: { thumbprint: agent.keyId, kind: 'agent' },
      })
      expect(
        await authenticate(buildRaw(await signPost({ url, idempotencyKey: 'a b' }), { ...post, target })),
      ).toMatchObject({ kind: 'key' })
    },
  )

  it.each(targets)('a request signed by our client is accepted: %s', async (target) => {
    const { privateKey } = generateKeyPairSync('ed25519')
    const keyId = computeThumbprint(privateKey.export({ format: 'jwk' }).x ?? '')
    await register(privateKey.export({ format: 'jwk' }).x ?? '')
    const headers = await signRequest(
      { keyId, privateKey },
      { origin, method: 'PUT', target, body, at: noon },
    )
    expect(await authenticate(buildRaw(headers, { method: 'PUT', target, body }))).toMatchObject({
      key: { thumbprint: keyId },
    })
  })

  it('is accepted without alg, and with additional covered components', async () => {
    const headers = { ...(await signPost()), 'user-agent': 'curl/8' }
    expect(await authenticate(buildRaw(headers, post))).toMatchObject({ kind: 'key' })
  })

  it('is not valid for another target, however similar', async () => {
    for (const [signed, sent] of [
      ['/api/wallets?a=b', '/api/wallets?a=c'],
      ['/api/wallets?a=b', '/api/wallets'],
      ['/api/wallets', '/api/wallets?a'],
      ['/api/wallets?a=%20', '/api/wallets?a=+'],
      ['/api/wallets', '/api/%77allets'],
      ['/api/wallets', '/api/wallets/'],
      ['/api/wallets', '/api/x/../wallets'],
      ['/api/wallets', '//bursar.example/api/wallets'],
      ['/api/wallets', 'https://bursar.example/api/wallets'],
      ['/api/wallets', '*'],
      ['/api/wallets', '/api/wallets#x'],
    ] as const)
      await expect(
        sign({ url: `${origin}${signed}` }).then((headers) =>
          authenticate(buildRaw(headers, { target: sent })),
        ),
        `${signed} → ${sent}`,
      ).rejects.toMatchObject({ code: 'signature_invalid' })
  })

  it('is valid for the configured origin only', async () => {
    for (const elsewhere of [
      'https://evil.example',
      'https://bursar.example:8443',
      'https://bursar.example.evil.example',
    ])
      await expect(
        authenticate(buildRaw(await sign({ url: `${elsewhere}/api/wallets` }))),
      ).rejects.toMatchObject({
        code: 'signature_invalid',
      })
    const spoofed = { ...(await sign({ url: 'https://evil.example/api/wallets' })), host: 'evil.example' }
    await expect(authenticate(buildRaw(spoofed))).rejects.toMatchObject({ code: 'signature_invalid' })
  })

  it.each(['@method', '@authority', '@path', '@query', 'content-digest', 'idempotency-key'])(
    'is rejected without coverage of %s',
    async (name) => {
      const headers = await signPost({ idempotencyKey: 'once', uncovered: [name] })
      await expect(authenticate(buildRaw(headers, post))).rejects.toMatchObject({ code: 'signature_invalid' })
    },
  )

  it('is rejected with a body or an idempotency key added later', async () => {
    await expect(authenticate(buildRaw(await sign({ method: 'POST' }), post))).rejects.toMatchObject({
      code: 'signature_invalid',
    })
    const later = { ...(await signPost()), 'idempotency-key': 'another' }
    await expect(authenticate(buildRaw(later, post))).rejects.toMatchObject({ code: 'signature_invalid' })
    const digested = { ...(await sign()), 'content-digest': contentDigest(new Uint8Array()) }
    await expect(authenticate(buildRaw(digested))).rejects.toMatchObject({ code: 'signature_invalid' })
  })

  it('is rejected with a body that does not match its digest', async () => {
    await expect(
      authenticate(buildRaw(await signPost(), { ...post, body: Buffer.from('{"amount":"9"}') })),
    ).rejects.toMatchObject({
      code: 'digest_mismatch',
    })
    await expect(
      authenticate(buildRaw({ ...(await signPost()), 'content-digest': 'sha-256=:AAAA:' }, post)),
    ).rejects.toMatchObject({
      code: 'digest_mismatch',
    })
  })

  it.each([
    ['another tag', { tag: 'other' }],
    ['a nonce of 15 bytes', { nonce: 'x'.repeat(15) }],
    ['a nonce of 257 bytes', { nonce: 'x'.repeat(257) }],
    ['a life of 301 s', { expires: inSeconds(301) }],
    ['a lifetime of zero', { expires: noon }],
    ['an end before its beginning', { expires: inSeconds(-1) }],
    ['another algorithm', { alg: 'hmac-sha256' }],
    ['an unknown algorithm', { alg: 'none' }],
  ])('is rejected with %s', async (_name, parameters) => {
    await expect(authenticate(buildRaw(await signPost({}, parameters), post))).rejects.toMatchObject({
      code: 'signature_invalid',
    })
  })

  it('expires to the second, with 30 s of skew either way', async () => {
    const at = async (created: number, expires: number) =>
      authenticate(buildRaw(await sign({}, { created: inSeconds(created), expires: inSeconds(expires) })))
    await expect(at(30, 60)).resolves.toMatchObject({ kind: 'key' })
    await expect(at(31, 60)).rejects.toMatchObject({ code: 'signature_expired' })
    await expect(at(-100, -30)).resolves.toMatchObject({ kind: 'key' })
    await expect(at(-100, -31)).rejects.toMatchObject({ code: 'signature_expired' })
    await expect(at(-270, 30)).resolves.toMatchObject({ kind: 'key' })
  })

  it('is rejected after any change', async () => {
    const headers = await signPost()
    const changeHeader = (name: string, change: (value: string) => string) =>
      authenticate(buildRaw({ ...headers, [name]: change(headers[name] ?? '') }, post))
    const tampered: [name: string, change: (value: string) => string][] = [
      [
        'signature',
        (value) => value.replace(/=:(.)/, (_, first: string) => `=:${first === 'A' ? 'B' : 'A'}`),
      ],
      ['signature', () => 'sig=:AAAA:'],
      ['signature', () => ''],
      ['signature', () => 'nonsense'],
      ['signature', (value) => value.replace(/^\w+/, 'other')],
      [
        'signature-input',
        (value) => value.replace(/expires=(\d+)/, (_, end: string) => `expires=${Number(end) + 1}`),
      ],
      ['signature-input', (value) => value.replace('"@method" ', '')],
      ['signature-input', (value) => value.replace('"@method"', '"@method" "@method"')],
      ['signature-input', (value) => value.replace('"@path"', '"@path";req')],
      ['signature-input', (value) => value.replace(/;nonce="[^"]*"/, '')],
      ['signature-input', (value) => value.replace(/;created=\d+/, ';created="x"')],
      ['signature-input', (value) => value.replace(/;created=\d+/, ';created=1.5')],
      ['signature-input', () => ''],
      ['signature-input', () => 'sig=1'],
      ['signature-input', () => '\u00e9'],
    ]
    for (const [name, change] of tampered)
      await expect(changeHeader(name, change), `${name}: ${change('x')}`).rejects.toMatchObject({
        code: 'signature_invalid',
      })
    await expect(authenticate(buildRaw(headers, post))).resolves.toMatchObject({ kind: 'key' })
  })

  it('is rejected with half of its headers, or with two signatures', async () => {
    const { signature = '', 'signature-input': input = '', ...rest } = await signPost()
    await expect(authenticate(buildRaw({ ...rest, signature }, post))).rejects.toMatchObject({
      code: 'signature_invalid',
    })
    await expect(authenticate(buildRaw({ ...rest, 'signature-input': input }, post))).rejects.toMatchObject({
      code: 'signature_invalid',
    })
    const two = (text: string) => `${text}, ${text.replace(/^\w+/, 'second')}`
    await expect(
      authenticate(buildRaw({ ...rest, signature: two(signature), 'signature-input': two(input) }, post)),
    ).rejects.toMatchObject({ code: 'signature_invalid' })
  })

  it('is rejected for an unknown key, before and after it was revoked', async () => {
    const unknownAgent = await newAgent()
    const headers = await unknownAgent.sign({
      method: 'GET',
      url: `${origin}/api/wallets`,
      parameters: { created: noon, expires: inSeconds(60) },
    })
    await expect(authenticate(buildRaw(headers))).rejects.toMatchObject({ code: 'unknown_key' })
    await database()
      .kysely.updateTable('access_key')
      .set({ status: 'revoked' })
      .where('thumbprint', '=', agent.keyId)
      .execute()
    await expect(authenticate(buildRaw(await sign()))).rejects.toMatchObject({ code: 'unknown_key' })
  })

  it('is rejected for a key from the moment of its expiry', async () => {
    agent = await newAgent()
    await register(agent.jwk.x, inSeconds(1))
    await expect(authenticate(buildRaw(await sign()))).resolves.toMatchObject({ kind: 'key' })
    await expect(authenticate(buildRaw(await sign()), inSeconds(1))).rejects.toMatchObject({
      code: 'unknown_key',
    })
  })

  it('is rejected for a locked owner’s key', async () => {
    const lock = (status: 'locked' | 'active') =>
      database().kysely.updateTable('account').set({ status }).where('id', '=', person.account.id).execute()
    await lock('locked')
    await expect(authenticate(buildRaw(await sign()))).rejects.toMatchObject({ code: 'account_locked' })
    await lock('active')
    await expect(authenticate(buildRaw(await sign()))).resolves.toMatchObject({ kind: 'key' })
  })

  it('is accepted once under concurrent submissions', async () => {
    const headers = await signPost()
    const attempts = await Promise.allSettled(
      Array.from({ length: 10 }, () => authenticate(buildRaw(headers, post))),
    )
    expect(attempts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of attempts.filter(({ status }) => status === 'rejected'))
      expect(outcome).toMatchObject({ reason: { code: 'signature_replayed' } })
  })

  it('spends no nonce when it is rejected', async () => {
    const nonce = 'a nonce of sixteen'
    await expect(authenticate(buildRaw(await sign({}, { nonce, tag: 'other' })))).rejects.toMatchObject({
      code: 'signature_invalid',
    })
    await expect(authenticate(buildRaw(await sign({}, { nonce })))).resolves.toMatchObject({ kind: 'key' })
    await expect(authenticate(buildRaw(await sign({}, { nonce })))).rejects.toMatchObject({
      code: 'signature_replayed',
    })
  })

  it('has a nonce of its own key: another key may use the same one', async () => {
    const nonce = 'a nonce that two keys use'
    await authenticate(buildRaw(await sign({}, { nonce })))
    agent = await newAgent()
    await register(agent.jwk.x)
    await expect(authenticate(buildRaw(await sign({}, { nonce })))).resolves.toMatchObject({ kind: 'key' })
  })

  it('has its nonce stored for as long as it could be replayed', async () => {
    const headers = await sign({}, { expires: inSeconds(60) })
    await authenticate(buildRaw(headers))
    await sweepNonces(database(), inSeconds(90))
    await expect(authenticate(buildRaw(headers), inSeconds(90))).rejects.toMatchObject({
      code: 'signature_replayed',
    })
    expect(await sweepNonces(database(), inSeconds(661))).toBeGreaterThan(0n)
    await expect(authenticate(buildRaw(headers), inSeconds(92))).rejects.toMatchObject({
      code: 'signature_expired',
    })
  })
})
