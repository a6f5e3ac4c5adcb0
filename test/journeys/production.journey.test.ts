/** A gateway in production mode: no sandbox, no guests, real mail, and the founder as its only administrator. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { testServerUrl } from '../engines.ts'
import { enrollMfa, type Person, personFrom, requestJson } from './people.ts'
import { openProduction, type Production } from './production-gateway.ts'

describe.skipIf(testServerUrl === undefined)('a gateway in production', () => {
  let production: Production
  const origin = () => production.gateway().origin
  beforeAll(async () => {
    production = await openProduction()
  }, 120_000)
  afterAll(() => production?.close())

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
      const { status } = await requestJson(origin(), method, path)
      expect([path, status]).toEqual([path, 404])
    }
    const { body } = await requestJson(origin(), 'GET', '/api/openapi.json')
    expect(
      Object.keys(z.looseObject({}).parse(body.paths)).filter((path) => /sandbox|guest|google/.test(path)),
    ).toEqual([])
  })

  it('plays no events', async () => {
    const played = await bursar(['trigger', 'ping', '--url', origin()], { BURSAR_SESSION: 'x' })
    expect(played).toMatchObject({ code: 1, out: '', err: expect.stringContaining('is no sandbox') })
  })

  it('takes the session of a program for no recent sign-in', async () => {
    const person = await production.signIn('builder@example.com')
    const start = await requestJson(origin(), 'POST', '/api/auth/devices', { body: { name: 'Editor' } })
    const path = `/api/auth/devices/${start.body.code}`
    expect((await person.send('POST', `${path}/allow`, {})).status).toBe(200)
    const { body } = await requestJson(origin(), 'POST', `${path}/outcome`, {
      body: { secret: start.body.secret },
    })
    const program = personFrom(origin(), body.session)
    const enroll = (by: Person) => by.send('POST', '/api/security/mfa', { action: 'enroll' })
    expect(await enroll(program)).toMatchObject({ status: 401, body: { code: 'step_up_required' } })
    expect((await enroll(person)).status).toBe(200)
  })

  it('offers no channel without a provider', async () => {
    const { status, body } = await requestJson(origin(), 'POST', '/api/auth/otp/start', {
      body: { channel: 'sms', destination: '+4915112345678' },
    })
    expect([status, body.code]).toEqual([400, 'invalid_request'])
  })

  it('has no administrator but the founder of its configuration', async () => {
    const founder = await production.signIn('founder@example.com')
    const rails = (person: Person) => person.send('GET', '/api/rails/wallet-transfer/controls')
    expect(await rails(founder)).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } })
    await production.start({ FOUNDER_ACCOUNT: founder.accountId })
    const admin = await production.signIn('founder@example.com')
    expect(admin.accountId).toBe(founder.accountId)
    expect((await admin.send('GET', '/api/auth/session')).body).toMatchObject({ account: { role: 'admin' } })

    // Privileged operations need an enrolled second factor.
    expect(await rails(admin)).toMatchObject({ status: 403, body: { code: 'mfa_enrollment_required' } })
    await enrollMfa(admin)
    expect(await rails(admin)).toMatchObject({ status: 200 })
    const again = await production.signIn('founder@example.com')
    expect(await rails(again)).toMatchObject({ status: 401, body: { code: 'step_up_required' } })

    // A changed database row has no effect.
    const other = await production.signIn('mallory@example.com')
    const client = new pg.Client({ connectionString: production.databaseUrl })
    await client.connect()
    await client.query(`update account set role = 'admin'`)
    await client.end()
    expect(await rails(other)).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } })
    expect((await other.send('GET', '/api/auth/session')).body).toMatchObject({ account: { role: 'user' } })
  })

  it('has the one administrator that a command names, from the next request on', async () => {
    await production.start()
    expect(production.gateway().output()).toMatch(
      /Without:\n {2}no administrator: .*bursar admin grant --email/,
    )
    const person = await production.signIn('ada@example.com')
    const other = await production.signIn('grace-hopper@example.com')
    const admin = (...words: string[]) => bursar(['admin', ...words], production.environment)
    const readRole = async (one: Person) => (await one.send('GET', '/api/auth/session')).body

    expect((await admin('list')).out).toContain('There is no administrator.')
    expect((await admin('grant', '--email', 'nobody@example.com')).err).toContain('Sign in once')
    expect(await admin('grant', '--email', 'Ada@Example.com')).toMatchObject({
      code: 0,
      out: `${person.accountId} is an administrator from its next request on.\n`,
    })
    expect(await readRole(person)).toMatchObject({ account: { role: 'admin' } })
    expect((await admin('grant', other.accountId)).err).toContain('production has one')
    expect((await admin('list')).out).toBe(`${person.accountId}  bursar admin grant\n`)

    // The proof is for one account: moved in the database it proves nothing.
    const client = new pg.Client({ connectionString: production.databaseUrl })
    await client.connect()
    const { rows } = await client.query(
      'select founder_mac as mac from account where founder_mac is not null',
    )
    await client.query('update account set founder_mac = null')
    await client.query('update account set founder_mac = $1 where id = $2', [rows[0].mac, other.accountId])
    expect(await readRole(other)).toMatchObject({ account: { role: 'user' } })
    expect(await readRole(person)).toMatchObject({ account: { role: 'user' } })
    await client.query('update account set founder_mac = null')
    await client.query('update account set founder_mac = $1 where id = $2', [rows[0].mac, person.accountId])
    await client.end()

    // The configuration comes first.
    await production.start({ FOUNDER_ACCOUNT: other.accountId })
    expect(production.gateway().output()).not.toContain('no administrator')
    expect(await readRole(person)).toMatchObject({ account: { role: 'user' } })
    const configured = { ...production.environment, FOUNDER_ACCOUNT: other.accountId }
    expect((await bursar(['admin', 'revoke', '--email', 'ada@example.com'], configured)).err).toContain(
      'FOUNDER_ACCOUNT names the administrator',
    )
    await production.start()
    expect(await readRole(person)).toMatchObject({ account: { role: 'admin' } })
    expect((await admin('revoke', '--email', 'ada@example.com')).out).toContain('is no administrator from')
    expect(await readRole(person)).toMatchObject({ account: { role: 'user' } })
  })

  it('says at its start what it runs without, and which settings are none', async () => {
    await production.start({ REDIS_URI: 'redis://127.0.0.1', PUBLIC_ORIGIN: 'https://bursar.example' })
    // Printed on another stream than the address that tells of the start.
    await vi.waitFor(() =>
      expect(production.gateway().output()).toContain(
        'REDIS_URI is no setting and has no effect; REDIS_URL is one',
      ),
    )
    const output = production.gateway().output()
    expect(output).toMatch(/^ {2}no screening: transfers to addresses are refused \(SCREENING_URL\)$/m)
    expect(output).toMatch(/^ {2}no Redis: the database counts rate limits \(REDIS_URL\)$/m)
    expect(output).not.toContain('no mail')
    // A scraper on the same machine needs no name and no token.
    const scraped = await fetch(`${production.gateway().local}/metrics`)
    expect([scraped.status, await scraped.text()]).toEqual([200, expect.stringContaining('bursar_up')])
    await production.start()
  })

  it('requires authentication within the last five minutes before it adds a credential', async () => {
    const owner = await production.signIn('grace@example.com')
    const client = new pg.Client({ connectionString: production.databaseUrl })
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
    const readCodes = async (responses: ReturnType<typeof begin>) =>
      (await Promise.all(responses)).map(
        ({ status, body }) => `${status} ${body.code ?? ''} ${body.hint ?? ''}`,
      )
    for (const fresh of await readCodes(begin(owner))) expect(fresh).not.toContain('step_up_required')

    await age()
    for (const stale of await readCodes(begin(owner))) expect(stale).toMatch(/^401 step_up_required/)
    expect(
      await owner.send('POST', '/api/security/mfa', { action: 'activate', code: '123456' }),
    ).toMatchObject({ status: 401, body: { code: 'step_up_required' } })
    await client.end()

    const again = await production.signIn('grace@example.com')
    await enrollMfa(again)
    const notices = production.mail.mails
      .filter(({ to }) => to.includes('grace@example.com'))
      .map(({ text }) => text)
    expect(notices.filter((text) => /Enrollment of a second factor was started/.test(text))).toHaveLength(1)
    expect(notices.filter((text) => /A second factor was activated/.test(text))).toHaveLength(1)
  })

  it('enables a rail by its administrator only', async () => {
    const person = await production.signIn('ada@example.com')
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
      requestJson(origin(), 'POST', '/api/wallets/transfer', {
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
