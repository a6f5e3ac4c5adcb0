/** A gateway in production mode: no sandbox, no guests, real mail, and the founder as its only administrator. */
import { generateKeyPairSync } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { closedPort, startSmtp } from '../smtp.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { enrollMfa, type Person, personFrom, requestJson } from './people.ts'

/** A public key, as PEM on one line. */
function newPublicKey(): string {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return String(publicKey.export({ format: 'pem', type: 'spki' })).replaceAll('\n', '\\n')
}

const rpc = z.object({ chain: z.object({ rpcUrl: z.string() }) })

describe.skipIf(testServerUrl === undefined)('a gateway in production', () => {
  const parts: { close: () => Promise<unknown> }[] = []
  let env: Record<string, string>
  let gateway: Gateway
  let mail: Awaited<ReturnType<typeof startSmtp>>
  let databaseUrl: string

  const start = async (more: Record<string, string> = {}) => {
    await gateway?.stop()
    gateway = await startGateway({ ...env, ...more })
  }
  const signIn = async (destination: string): Promise<Person> => {
    const { body } = await requestJson(gateway.origin, 'POST', '/api/auth/otp/start', {
      body: { channel: 'email', destination },
    })
    const text = mail.mails.findLast(({ to }) => to.includes(destination))?.text ?? ''
    const code = /\b\d{6}\b/.exec(text)?.[0]
    const answer = await requestJson(gateway.origin, 'POST', '/api/auth/otp/verify', {
      body: { challengeId: body.challengeId, code },
    })
    return personFrom(gateway.origin, answer.body)
  }

  beforeAll(async () => {
    const node = await startGateway({ CHAIN: 'anvil' })
    parts.push({ close: () => node.stop() })
    const { chain } = rpc.parse((await requestJson(node.origin, 'GET', '/sandbox/credentials')).body)
    const database = await createTestDatabase(testServerUrl ?? '')
    parts.push({ close: database.drop })
    databaseUrl = database.url
    mail = await startSmtp()
    parts.push({ close: mail.close })
    const port = String(await closedPort())
    env = {
      MODE: 'production',
      PORT: port,
      PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
      DATABASE_URL: databaseUrl,
      CHAIN_RPC_URL: chain.rpcUrl,
      CHAIN_SPONSOR_KEY: `0x${'1'.repeat(64)}`,
      CHAIN_OWNER_KEY: `0x${'2'.repeat(64)}`,
      X402_PAY_TO: `0x${'2'.repeat(40)}`,
      SESSION_SECRET: 's'.repeat(32),
      DATA_KEY: 'd'.repeat(32),
      LITHIC_WEBHOOK_SECRET: `whsec_${'c'.repeat(32)}`,
      BRIDGE_WEBHOOK_PUBLIC_KEY: newPublicKey(),
      SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
      SMTP_FROM: 'Bursar <codes@bursar.example>',
      RATE_OTP_RESEND: '1000/60',
      RATE_OTP_DESTINATION: '1000/60',
      RATE_OTP_IP: '1000/60',
    }
    const migrated = await bursar(['migrate'], { ...env, CHAIN: '' })
    expect([migrated.code, migrated.err]).toEqual([0, ''])
    await start()
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    for (const part of parts.reverse()) await part.close()
  })

  it('has no sandbox, no guests and no identity provider of its own', async () => {
    for (const [method, path] of [
      ['POST', '/api/auth/guest'],
      ['POST', '/api/auth/google'],
      ['GET', '/sandbox/outbox'],
      ['GET', '/sandbox/credentials'],
      ['GET', '/sandbox/sellers'],
      ['GET', '/sandbox/sellers/weather'],
      ['POST', '/sandbox/admin'],
      ['GET', '/sandbox/openid/.well-known/openid-configuration'],
    ] as const) {
      const { status } = await requestJson(gateway.origin, method, path)
      expect([path, status]).toEqual([path, 404])
    }
    const { body } = await requestJson(gateway.origin, 'GET', '/api/openapi.json')
    expect(
      Object.keys(z.looseObject({}).parse(body.paths)).filter((path) => /sandbox|guest|google/.test(path)),
    ).toEqual([])
  })

  it('offers no channel without a provider', async () => {
    const { status, body } = await requestJson(gateway.origin, 'POST', '/api/auth/otp/start', {
      body: { channel: 'sms', destination: '+4915112345678' },
    })
    expect([status, body.code]).toEqual([400, 'invalid_request'])
  })

  it('has no administrator but the founder of its configuration', async () => {
    const founder = await signIn('founder@example.com')
    const rails = (person: Person) => person.send('GET', '/api/rails/wallet-transfer/controls')
    expect(await rails(founder)).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } })
    await start({ FOUNDER_ACCOUNT: founder.accountId })
    const admin = await signIn('founder@example.com')
    expect(admin.accountId).toBe(founder.accountId)
    expect((await admin.send('GET', '/api/auth/session')).body).toMatchObject({ account: { role: 'admin' } })

    // Privileged operations need an enrolled second factor.
    expect(await rails(admin)).toMatchObject({ status: 403, body: { code: 'mfa_enrollment_required' } })
    await enrollMfa(admin)
    expect(await rails(admin)).toMatchObject({ status: 200 })
    const again = await signIn('founder@example.com')
    expect(await rails(again)).toMatchObject({ status: 401, body: { code: 'step_up_required' } })

    // A changed database row has no effect.
    const other = await signIn('mallory@example.com')
    const client = new pg.Client({ connectionString: databaseUrl })
    await client.connect()
    await client.query(`update account set role = 'admin'`)
    await client.end()
    expect(await rails(other)).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } })
    expect((await other.send('GET', '/api/auth/session')).body).toMatchObject({ account: { role: 'user' } })
  })

  it('requires authentication within the last five minutes before it adds a credential', async () => {
    const owner = await signIn('grace@example.com')
    const client = new pg.Client({ connectionString: databaseUrl })
    await client.connect()
    const age = () =>
      client.query(
        `update session set created_at = created_at - interval '6 minutes' where account_id = $1`,
        [owner.accountId],
      )
    const address = `0x${'a1'.repeat(20)}`
    const begin = (actor: Person) => [
      actor.send('POST', '/api/auth/webauthn', { action: 'register' }),
      actor.send('POST', '/api/wallets/signers', { address }),
      actor.send('POST', '/api/auth/otp/verify', { challengeId: 'chal_x', code: '123456', link: true }),
      actor.send('POST', '/api/security/mfa', { action: 'enroll' }),
    ]
    const codesOf = async (responses: ReturnType<typeof begin>) =>
      (await Promise.all(responses)).map(
        ({ status, body }) => `${status} ${body.code ?? ''} ${body.hint ?? ''}`,
      )
    for (const fresh of await codesOf(begin(owner))) expect(fresh).not.toContain('step_up_required')

    await age()
    for (const stale of await codesOf(begin(owner))) expect(stale).toMatch(/^401 step_up_required/)
    expect(
      await owner.send('POST', '/api/security/mfa', { action: 'activate', code: '123456' }),
    ).toMatchObject({ status: 401, body: { code: 'step_up_required' } })
    await client.end()

    const again = await signIn('grace@example.com')
    await enrollMfa(again)
    const notices = mail.mails.filter(({ to }) => to.includes('grace@example.com')).map(({ text }) => text)
    expect(notices.filter((text) => /Enrollment of a second factor was started/.test(text))).toHaveLength(1)
    expect(notices.filter((text) => /A second factor was activated/.test(text))).toHaveLength(1)
  })

  it('enables a rail by its administrator only', async () => {
    const person = await signIn('ada@example.com')
    await enrollMfa(person)
    const { body: key } = await person.send('POST', '/api/developer/keys', {
      name: 'Payer',
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '5' },
        categories: { allow: ['transfer'] },
      },
    })
    const pay = () =>
      requestJson(gateway.origin, 'POST', '/api/wallets/transfer', {
        body: { destination: `0x${'3'.repeat(40)}`, amount: '1', signature: 'x' },
        headers: { authorization: `Bearer ${String(key.key)}` },
      })
    expect(String(key.key)).toMatch(/^bsk_live_/)
    expect(await pay()).toMatchObject({ status: 403, body: { code: 'rail_disabled' } })
    expect(await person.send('PUT', '/api/rails/wallet-transfer/controls', { enabled: true })).toMatchObject({
      status: 403,
    })
  })
})
