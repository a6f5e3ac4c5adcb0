/** A program asks to be signed in: "bursar login" shows a page, and a person decides there. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { bursar, type RunningCommand, startBursar } from '../commands/bursar.ts'
import { overBothEngines } from './both-engines.ts'
import { enrollMfa, newGuest, type Person, personFrom, requestJson, signInByEmail } from './people.ts'

const opened = z.object({ code: z.string(), userCode: z.string(), secret: z.string() })
const stored = z.object({
  sessions: z.record(z.string(), z.object({ token: z.string(), accountId: z.string() })),
})
const events = z.object({ events: z.array(z.looseObject({ type: z.string(), data: z.unknown() })) })
const sessions = z.object({
  sessions: z.array(z.object({ id: z.string(), method: z.string(), name: z.string().nullable() })),
})

overBothEngines(
  'a program that asks to be signed in',
  { RATE_DEVICES: '40/600', RATE_AUTHORIZATIONS: '1000/60' },
  ({ gateway, pass, now }) => {
    const home = mkdtempSync(join(tmpdir(), 'bursar-login-'))
    let owner: Person
    beforeAll(async () => {
      owner = await newGuest(gateway().origin)
    })
    afterAll(() => rmSync(home, { recursive: true, force: true }))

    const buildEnv = (config: string) => ({
      XDG_CONFIG_HOME: join(home, config),
      BURSAR_URL: gateway().origin,
    })
    const locateFile = (config: string) => join(home, config, 'bursar', 'sessions.json')
    const login = (config: string) => startBursar(['login'], buildEnv(config))
    const codeShown = async ({ err }: RunningCommand) => {
      await expect.poll(err, { timeout: 20_000 }).toMatch(/Waiting/)
      return z.string().parse(/\/devices\/(\S+)/.exec(err())?.[1])
    }
    const buildPath = (code: string) => `/api/auth/devices/${code}`
    const start = async (name = 'Command line') =>
      requestJson(gateway().origin, 'POST', '/api/auth/devices', { body: { name } })
    const begin = async () => opened.parse((await start()).body)
    const allow = (code: string, by = owner) => by.send('POST', `${buildPath(code)}/allow`, {})
    const outcome = (code: string, secret: string) =>
      requestJson(gateway().origin, 'POST', `${buildPath(code)}/outcome`, { body: { secret } })
    const readSessions = async (by: Person) =>
      sessions.parse((await by.send('GET', '/api/auth/sessions')).body).sessions

    it('needs the second factor of a person who has one, who is told by mail', async () => {
      await enrollMfa(await signInByEmail(gateway().origin, 'device@example.com'))
      const careful = await signInByEmail(gateway().origin, 'device@example.com')
      const { code, secret } = await begin()
      expect(await allow(code, careful)).toMatchObject({ status: 401, body: { code: 'step_up_required' } })
      expect((await outcome(code, secret)).body.status).toBe('pending')
      const plain = await signInByEmail(gateway().origin, 'plain@example.com')
      expect((await allow(code, plain)).status).toBe(200)
      const { body } = await requestJson(gateway().origin, 'GET', '/sandbox/outbox')
      expect(JSON.stringify(body)).toContain('A program on another device was signed in')
    })

    it('stores a session for its user only, which "bursar logout" ends', async () => {
      const running = login('first')
      const code = await codeShown(running)
      const { body: shown } = await owner.send('GET', buildPath(code))
      expect(shown).toMatchObject({ status: 'pending', name: 'Command line', address: '127.0.0.1' })
      expect(running.err()).toContain(shown.userCode)
      expect(existsSync(locateFile('first'))).toBe(false)
      expect((await allow(code)).status).toBe(200)
      const { code: exitCode, out, err } = await running.ended
      expect([exitCode, out]).toEqual([0, ''])
      expect(statSync(locateFile('first')).mode & 0o777).toBe(0o600)
      expect(statSync(join(home, 'first', 'bursar')).mode & 0o777).toBe(0o700)
      const { sessions: kept } = stored.parse(JSON.parse(readFileSync(locateFile('first'), 'utf8')))
      const { token, accountId } = z
        .object({ token: z.string(), accountId: z.string() })
        .parse(kept[gateway().origin])
      expect(accountId).toBe(owner.accountId)
      expect(err + gateway().output()).not.toContain(token)
      expect(gateway().output()).not.toContain(code)
      expect(await readSessions(owner)).toContainEqual(
        expect.objectContaining({ method: 'device', name: 'Command line' }),
      )
      const { body: journal } = await owner.send('GET', '/api/security/journal')
      expect(JSON.stringify(journal)).toContain('device.allowed')
      const heard = events.parse((await owner.send('GET', '/api/events?type=security.signed_in')).body).events
      expect(heard.map(({ data }) => data)).toContainEqual({ method: 'device' })

      // A program that does not run cannot renew its token, so the token lasts as long as the session.
      pass(60 * 60)
      const asSession = { headers: { authorization: `Bearer ${token}` } }
      expect((await requestJson(gateway().origin, 'GET', '/api/wallets', asSession)).status).toBe(200)
      owner = await newGuest(gateway().origin)
      expect((await bursar(['logout'], buildEnv('first'))).code).toBe(0)
      expect((await requestJson(gateway().origin, 'GET', '/api/wallets', asSession)).status).toBe(401)
      expect(stored.parse(JSON.parse(readFileSync(locateFile('first'), 'utf8')))).toEqual({ sessions: {} })
    })

    it('stores nothing when it is rejected, and sends nothing when the file is not private', async () => {
      const running = login('rejected')
      const code = await codeShown(running)
      expect((await owner.send('POST', `${buildPath(code)}/reject`, {})).status).toBe(200)
      expect(await running.ended).toMatchObject({ code: 1, err: expect.stringMatching(/was rejected/) })
      expect(existsSync(locateFile('rejected'))).toBe(false)
      expect(await allow(code)).toMatchObject({ status: 409, body: { reason: 'rejected' } })
      const elsewhere = join(home, 'elsewhere')
      writeFileSync(elsewhere, '{"sessions":{}}', { mode: 0o644 })
      mkdirSync(join(home, 'linked', 'bursar'), { recursive: true })
      symlinkSync(elsewhere, locateFile('linked'))
      expect(await login('linked').ended).toMatchObject({
        code: 1,
        err: expect.stringMatching(/can be read by others, or is no file/),
      })
    })

    it('hands the session over once to several requests at the same time', async () => {
      const { code, secret } = await begin()
      expect((await outcome(code, secret)).body).toEqual({ status: 'pending', session: null })
      expect((await allow(code)).status).toBe(200)
      const answers = await Promise.all(Array.from({ length: 8 }, () => outcome(code, secret)))
      expect(answers.map(({ body }) => body.status)).toEqual(answers.map(() => 'collected'))
      expect(answers.filter(({ body }) => body.session !== null)).toHaveLength(1)
      expect((await outcome(code, secret)).body).toEqual({ status: 'collected', session: null })
      expect(await allow(code)).toMatchObject({ status: 409, body: { reason: 'collected' } })
    })

    it('is allowed once, by the first of two persons', async () => {
      const { code, secret } = await begin()
      const other = await newGuest(gateway().origin)
      const decisions = await Promise.all([owner, other, owner, other].map((by) => allow(code, by)))
      expect(decisions.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409])
      const winner = decisions.findIndex(({ status }) => status === 200) % 2 === 0 ? owner : other
      const { session } = (await outcome(code, secret)).body
      expect(personFrom(gateway().origin, session).accountId).toBe(winner.accountId)
      const opened = await Promise.all([owner, other].map(readSessions))
      expect(opened.flat().filter(({ method }) => method === 'device').length).toBeGreaterThan(0)
      const losers = winner === owner ? await readSessions(other) : []
      expect(losers.filter(({ method }) => method === 'device')).toEqual([])
    })

    it('tells the outcome for its own secret only, and the request to signed-in persons only', async () => {
      const [mine, others] = [await begin(), await begin()]
      await allow(mine.code)
      for (const [code, secret] of [
        [mine.code, others.secret],
        [others.code, mine.secret],
        [mine.code, mine.code],
        [mine.code, ''],
        ['invented', mine.secret],
      ] as const)
        expect(await outcome(code, secret)).toMatchObject({ status: 404, body: { code: 'not_found' } })
      expect((await outcome(mine.code, mine.secret)).body.session).not.toBeNull()
      expect((await requestJson(gateway().origin, 'GET', buildPath(others.code))).status).toBe(401)
      const anonymous = await requestJson(gateway().origin, 'POST', `${buildPath(others.code)}/allow`, {
        body: {},
      })
      expect(anonymous.status).toBe(401)
      const site = gateway().origin.replace('127.0.0.1', 'localhost')
      const page = await fetch(`${site}/devices/${others.code}`, { redirect: 'manual' })
      expect([page.status, page.headers.get('location')]).toEqual([
        302,
        `/sign-in?next=${encodeURIComponent(`/devices/${others.code}`)}`,
      ])
    })

    it('is not allowed by another site, by GET, or by a program’s own session', async () => {
      const { code, secret } = await begin()
      const cookie = `bursar_session=${owner.token}`
      for (const headers of [
        { cookie, origin: 'https://evil.example', 'content-type': 'application/json' },
        { cookie, 'content-type': 'application/json' },
      ]) {
        const response = await fetch(`${gateway().origin}${buildPath(code)}/allow`, {
          method: 'POST',
          headers,
          body: '{}',
        })
        expect(response.status).toBe(403)
      }
      expect((await owner.send('GET', `${buildPath(code)}/allow`)).status).toBe(405)
      await fetch(`${gateway().origin}/devices/${code}`, { headers: { cookie } })
      expect((await outcome(code, secret)).body.status).toBe('pending')
      expect((await allow(code)).status).toBe(200)
      const program = personFrom(gateway().origin, (await outcome(code, secret)).body.session)
      const next = await begin()
      expect(await allow(next.code, program)).toMatchObject({ status: 409, body: { code: 'conflict' } })
      expect((await outcome(next.code, next.secret)).body.status).toBe('pending')
    })

    it('gets nothing once its person has ended all other sessions', async () => {
      const { code, secret } = await begin()
      const person = await newGuest(gateway().origin)
      await allow(code, person)
      expect((await person.send('DELETE', '/api/auth/sessions/others')).status).toBe(200)
      expect((await outcome(code, secret)).body).toEqual({ status: 'expired', session: null })
    })

    it('has a name of one visible line', async () => {
      const { code } = opened.parse((await start('Your\u202e bank\n\u001b[2J says yes')).body)
      expect((await owner.send('GET', buildPath(code))).body.name).toBe('Your bank [2J says yes')
      expect((await start('\u202e\u200b')).status).toBe(400)
    })

    it('expires after ten minutes, or when its session is not collected in two', async () => {
      const [late, slow] = [await begin(), await begin()]
      await allow(slow.code)
      pass(2 * 60)
      expect((await outcome(slow.code, slow.secret)).body).toEqual({ status: 'expired', session: null })
      pass(8 * 60)
      const fresh = await newGuest(gateway().origin)
      expect(await allow(late.code, fresh)).toMatchObject({ status: 409, body: { reason: 'expired' } })
      expect((await outcome(late.code, late.secret)).body).toEqual({ status: 'expired', session: null })
      expect(now().getTime()).toBeGreaterThan(Date.now())
    })

    it('is limited by address', async () => {
      const statuses: number[] = []
      for (let count = 0; count < 41; count += 1) statuses.push((await start()).status)
      expect(statuses.at(-1)).toBe(429)
    })
  },
)
