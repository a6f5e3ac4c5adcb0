import { readFileSync } from 'node:fs'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Services } from '../../../src/kernel/context.ts'
import createKey from '../../../tools/developer/keys/create.ts'
import { tools } from '../../../tools/index.ts'
import mfa from '../../../tools/security/mfa.ts'
import { onBothEngines } from '../../engines.ts'
import { filesBelow } from '../../files.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import {
  computeTotp,
  newSignedIn,
  readSecret,
  type SignedIn,
  signInAgain,
} from '../../people/identity/signed-in.ts'

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1000)
const newKey = { name: 'Reports', scopes: ['wallets:read'] }

onBothEngines('a second factor', (database) => {
  let services: Services
  let person: SignedIn
  let secret: string
  let recoveryCodes: string[]
  const refusal = (code: string) => expect.objectContaining({ code })

  beforeAll(async () => {
    services = await servicesOn(database())
  })
  beforeEach(async () => {
    person = await newSignedIn(services)
    const { body } = await person.call(mfa, { action: 'enroll' })
    secret = readSecret(body.otpauthUri)
    const active = await person.call(mfa, { action: 'activate', code: computeTotp(secret, noon) })
    recoveryCodes = Array.isArray(active.body.recoveryCodes) ? active.body.recoveryCodes.map(String) : []
  })
  const verify = (seconds: number, code = computeTotp(secret, after(seconds)), how = {}) =>
    person.call(mfa, { action: 'verify', code }, { at: after(seconds), ...how })

  it('is enrolled with a standard otpauth URI, once', async () => {
    const other = await newSignedIn(services)
    await expect(other.call(mfa, { action: 'status' })).resolves.toMatchObject({
      body: { status: 'none', enrolled: false, recoveryCodesLeft: 0, steppedUpUntil: null },
    })
    const { body } = await other.call(mfa, { action: 'enroll' })
    expect(body).toMatchObject({ status: 'pending', enrolled: false })
    expect(String(body.otpauthUri)).toMatch(
      /^otpauth:\/\/totp\/Bursar:Ada\?secret=[A-Z2-7]{32}&issuer=Bursar/,
    )
    const svg = Buffer.from(String(body.qr).replace('data:image/svg+xml;base64,', ''), 'base64').toString()
    expect(svg).toMatch(/^<svg /)
    const again = await other.call(mfa, { action: 'enroll' })
    expect(readSecret(again.body.otpauthUri)).not.toBe(readSecret(body.otpauthUri))
    const stale = { action: 'activate', code: computeTotp(readSecret(body.otpauthUri), noon) }
    await expect(other.call(mfa, stale)).rejects.toEqual(refusal('step_up_required'))
    const { body: status } = await other.call(mfa, { action: 'status' })
    expect(status).not.toHaveProperty('otpauthUri')
  })

  it('returns ten recovery codes, and steps up the activating session', async () => {
    expect(new Set(recoveryCodes).size).toBe(10)
    expect(recoveryCodes[0]).toMatch(/^([0-9a-z]{4}-){5}[0-9a-z]{4}$/)
    const { body } = await person.call(mfa, { action: 'status' })
    expect(body).toMatchObject({
      status: 'active',
      enrolled: true,
      recoveryCodesLeft: 10,
      steppedUpUntil: after(300).toISOString(),
    })
  })

  it('accepts each code once, also under concurrent requests', async () => {
    await expect(verify(0)).rejects.toEqual(refusal('step_up_required'))
    await expect(verify(60)).resolves.toMatchObject({ body: { steppedUpUntil: after(360).toISOString() } })
    await expect(verify(61)).rejects.toEqual(refusal('step_up_required'))
    await expect(verify(60, computeTotp(secret, after(30)))).rejects.toEqual(refusal('step_up_required'))
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => verify(120)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  it('tolerates a clock one step off, not two', async () => {
    await expect(verify(600, computeTotp(secret, after(570)))).resolves.toBeDefined()
    await expect(verify(600, computeTotp(secret, after(630)))).resolves.toBeDefined()
    await expect(verify(600, computeTotp(secret, after(660)))).rejects.toEqual(refusal('step_up_required'))
    await expect(verify(800, computeTotp(secret, after(740)))).rejects.toEqual(refusal('step_up_required'))
  })

  it('is required for privileged operations: for five minutes, on the session that verified it', async () => {
    const create = (session: SignedIn, seconds: number) =>
      session.call(createKey, newKey, { at: after(seconds) })
    const elsewhere = await signInAgain(services, person.accountId)
    await expect(create(person, 0)).resolves.toBeDefined()
    await expect(create(elsewhere, 0)).rejects.toEqual(refusal('step_up_required'))
    await expect(create(person, 299)).resolves.toBeDefined()
    await expect(create(person, 300)).rejects.toEqual(refusal('step_up_required'))
    await verify(330)
    await expect(create(person, 331)).resolves.toBeDefined()
  })

  it('is not required of a sandbox account without enrollment, and is in production', async () => {
    const newcomer = await newSignedIn(services)
    await expect(newcomer.call(createKey, newKey)).resolves.toBeDefined()
    const settings = { ...services.settings, mode: 'production' as const }
    const live = await newSignedIn({ ...services, settings })
    await expect(live.call(createKey, newKey)).rejects.toEqual(refusal('mfa_enrollment_required'))
  })

  it('is replaced by each recovery code once, in any spelling', async () => {
    const [first = '', second = ''] = recoveryCodes
    const use = (recoveryCode: string) => person.call(mfa, { action: 'verify', recoveryCode })
    await expect(use(first.toUpperCase().replaceAll('-', ' '))).resolves.toMatchObject({
      body: { recoveryCodesLeft: 9 },
    })
    await expect(use(first)).rejects.toEqual(refusal('step_up_required'))
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => use(second)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const outsider = await newSignedIn(services)
    await expect(outsider.call(mfa, { action: 'verify', recoveryCode: recoveryCodes[2] })).rejects.toEqual(
      refusal('conflict'),
    )
  })

  it('is disabled by a code, with its recovery codes', async () => {
    await expect(person.call(mfa, { action: 'disable', code: '000000' }, { at: after(60) })).rejects.toEqual(
      refusal('step_up_required'),
    )
    const code = computeTotp(secret, after(60))
    const { body } = await person.call(mfa, { action: 'disable', code }, { at: after(60) })
    expect(body).toMatchObject({
      status: 'none',
      enrolled: false,
      recoveryCodesLeft: 0,
      steppedUpUntil: null,
    })
    await expect(verify(90)).rejects.toEqual(refusal('conflict'))
  })

  it('is disabled by a recovery code when the authenticator is lost', async () => {
    const disable = { action: 'disable', recoveryCode: recoveryCodes[0] }
    expect((await person.call(mfa, disable)).body).toMatchObject({ status: 'none' })
    await expect(person.call(mfa, { action: 'enroll' })).resolves.toBeDefined()
  })

  it('checks at most ten wrong codes of a burst: a correct code behind them is rejected', async () => {
    const right = computeTotp(secret, after(60))
    const codes = [...Array.from({ length: 24 }, (_, at) => String(100_000 + at)), right]
    const disable = (code: string) => person.call(mfa, { action: 'disable', code }, { at: after(60) })
    const outcomes = await Promise.allSettled(
      codes.filter((code, at) => code !== right || at === 24).map(disable),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toEqual([])
    const failures = await database()
      .kysely.selectFrom('failed_factor')
      .select('at')
      .where('account_id', '=', person.accountId)
      .execute()
    expect(failures).toHaveLength(10)
    const [row] = await database()
      .kysely.selectFrom('mfa')
      .select('status')
      .where('account_id', '=', person.accountId)
      .execute()
    expect(row?.status).toBe('active')
  })

  it('is activated with exactly the verified secret', async () => {
    for (let round = 0; round < 6; round += 1) {
      const other = await newSignedIn(services)
      const shown = readSecret((await other.call(mfa, { action: 'enroll' })).body.otpauthUri)
      const [active, enrolled] = await Promise.allSettled([
        other.call(mfa, { action: 'activate', code: computeTotp(shown, noon) }),
        other.call(mfa, { action: 'enroll' }),
      ])
      if (active.status === 'rejected') continue
      expect(enrolled.status).toBe('rejected')
      const verified = other.call(
        mfa,
        { action: 'verify', code: computeTotp(shown, after(60)) },
        { at: after(60) },
      )
      await expect(verified).resolves.toBeDefined()
    }
  })

  it('cannot be enrolled a second time while it is active', async () => {
    await expect(person.call(mfa, { action: 'enroll' })).rejects.toEqual(refusal('conflict'))
  })

  it('locks the account at the tenth wrong code in an hour, and failed calls count', async () => {
    for (let wrong = 1; wrong < 10; wrong += 1)
      await expect(verify(60 + wrong, '000000')).rejects.toEqual(refusal('step_up_required'))
    await expect(verify(80, '000000')).rejects.toEqual(refusal('account_locked'))
    await expect(person.call(mfa, { action: 'status' }, { at: after(90) })).rejects.toEqual(
      refusal('account_locked'),
    )
  })

  it('does not lock for wrong codes that are hours apart, and locks for concurrent ones', async () => {
    const start = person
    for (let hour = 0; hour < 11; hour += 1) {
      person = await signInAgain(services, start.accountId, after(hour * 3600))
      await expect(verify(hour * 3600 + 100, '000000')).rejects.toEqual(refusal('step_up_required'))
    }
    const outcomes = await Promise.allSettled(
      Array.from({ length: 12 }, () => verify(10 * 3600 + 200, '000000')),
    )
    const codes = outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason.code)
    expect(codes).toContain('account_locked')
  })

  it('repeats its answer for a repeated idempotency key, without the secrets', async () => {
    const other = await newSignedIn(services)
    const enroll = () => other.call(mfa, { action: 'enroll' }, { idempotencyKey: 'enroll-1' })
    const first = await enroll()
    expect(first).toMatchObject({ replayed: false, body: { otpauthUri: expect.stringMatching(/^otpauth/) } })
    const second = await enroll()
    expect(second).toMatchObject({ replayed: true, body: { status: 'pending', otpauthUri: null, qr: null } })
    const kept = await database().kysely.selectFrom('idempotency').select('answer').execute()
    expect(JSON.stringify(kept)).not.toContain(readSecret(first.body.otpauthUri))
    const wrong = { at: after(60), idempotencyKey: 'wrong-1' }
    await expect(person.call(mfa, { action: 'verify', code: '000000' }, wrong)).rejects.toEqual(
      refusal('step_up_required'),
    )
    const right = { action: 'verify', code: computeTotp(secret, after(60)) }
    await expect(
      person.call(mfa, right, { at: after(60), idempotencyKey: 'right-1' }),
    ).resolves.toMatchObject({
      replayed: false,
    })
    await expect(
      person.call(mfa, right, { at: after(61), idempotencyKey: 'right-1' }),
    ).resolves.toMatchObject({
      replayed: true,
    })
  })

  it('is stored sealed, its recovery codes as hashes', async () => {
    const rows = await database().kysely.selectFrom('mfa').selectAll().execute()
    const codes = await database().kysely.selectFrom('mfa_recovery_code').selectAll().execute()
    const stored = rows.map(({ sealed_secret }) => Buffer.from(sealed_secret).toString('latin1')).join()
    expect(stored).not.toContain(secret)
    for (const code of recoveryCodes) expect(JSON.stringify(codes)).not.toContain(code.replaceAll('-', ''))
  })

  it.each([
    [{ action: 'enroll', code: '123456' }],
    [{ action: 'verify' }],
    [{ action: 'verify', code: '123456', recoveryCode: 'aaaa-bbbb-cccc-dddd' }],
    [{ action: 'verify', code: '12345' }],
    [{ action: 'activate', recoveryCode: 'aaaa-bbbb-cccc-dddd' }],
    [{ action: 'activate' }],
    [{ action: 'reset' }],
  ])('rejects %j as invalid', async (input) => {
    await expect(person.call(mfa, input)).rejects.toEqual(refusal('invalid_request'))
  })
})

describe('the tables of second factors', () => {
  const sources = ['src', 'tools', 'mcp', 'policies'].flatMap(filesBelow).map((file) => ({
    file,
    text: readFileSync(file, 'utf8'),
  }))

  it('are written in one file', () => {
    const writes =
      /(?:insertInto|updateTable|deleteFrom|replaceInto|mergeInto)\(\s*'mfa|(?:insert\s+into|update|delete\s+from|truncate|merge\s+into)\s+"?mfa/i
    const writers = sources.filter(({ text }) => writes.test(text)).map(({ file }) => file)
    expect(writers).toEqual(['src/people/identity/mfa.ts'])
  })

  it('are reached by one operation', () => {
    const importers = sources
      .filter(({ text }) => /from '[./a-z-]*\/mfa\.ts'/.test(text))
      .map(({ file }) => file)
    expect(importers.sort()).toEqual(['tools/index.ts', 'tools/security/mfa.ts'])
    expect(tools.filter(({ route }) => route.includes('mfa')).map(({ name }) => name)).toEqual([
      'security.mfa',
    ])
  })
})
