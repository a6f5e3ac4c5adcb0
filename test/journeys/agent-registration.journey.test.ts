/** An agent asks to be registered: the command line shows a page, and the owner decides there. */
import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { bursar, type RunningCommand, startBursar } from '../commands/bursar.ts'
import { overBothEngines } from './both-engines.ts'
import { enrollMfa, newGuest, type Person, requestJson, signInByEmail } from './people.ts'

const policy = {
  perTransaction: { max: '5' },
  dailyBudget: { max: '12' },
  categories: { allow: ['transfer'] },
}
const grant = { scopes: ['wallets:read', 'wallets:transfer'], policy }
const opened = z.object({
  code: z.string(),
  userCode: z.string(),
  connectUrl: z.string(),
  secret: z.string(),
})
const request = z.looseObject({
  name: z.string(),
  publicKey: z.string(),
  userCode: z.string(),
  keyId: z.string(),
})

overBothEngines(
  'an agent that asks to be registered',
  { RATE_REGISTRATIONS: '30/3600', RATE_AUTHORIZATIONS: '50/60' },
  ({ gateway, pass, now }) => {
    const directory = mkdtempSync(join(tmpdir(), 'bursar-register-'))
    const file = (name: string) => join(directory, `${name}.json`)
    let owner: Person
    beforeAll(async () => {
      owner = await newGuest(gateway().origin)
    })
    afterAll(() => rmSync(directory, { recursive: true, force: true }))

    const register = (name: string) =>
      startBursar(['agent', 'register', '--name', name, '--out', file(name)], {
        BURSAR_URL: gateway().origin,
      })
    /** The code in the address of the page, once the command has shown it. */
    const codeShown = async ({ err }: RunningCommand) => {
      await expect.poll(err, { timeout: 20_000 }).toMatch(/Waiting for the owner/)
      return z.string().parse(/\/agents\/connect\/(\S+)/.exec(err())?.[1])
    }
    const buildPath = (code: string) => `/api/agents/registrations/${code}`
    const read = async (code: string, by = owner) =>
      request.parse((await by.send('GET', buildPath(code))).body)
    const approve = async (code: string, by = owner) => {
      const { name, publicKey } = await read(code, by)
      return by.send('POST', '/api/agents/keys', { ...grant, name, publicKey, registration: code })
    }

    /** A new key's request, as the command line sends it. */
    const newRequest = ({ origin = gateway().origin, signedAt = now(), name = 'Bot' } = {}) => {
      const { privateKey } = generateKeyPairSync('ed25519')
      const publicKey = z.string().parse(privateKey.export({ format: 'jwk' }).x)
      const at = signedAt.toISOString()
      const text = `bursar agent registration\n${origin}\n${at}`
      const proof = sign(null, Buffer.from(text), privateKey).toString('base64url')
      return { name, publicKey, signedAt: at, proof }
    }
    const start = (body: unknown) =>
      requestJson(gateway().origin, 'POST', '/api/agents/registrations', { body })
    const outcome = (code: string, secret: string) =>
      requestJson(gateway().origin, 'POST', `${buildPath(code)}/outcome`, { body: { secret } })

    it('gets a key that pays once its owner approves, and nothing in its output is secret', async () => {
      const running = register('payer')
      const code = await codeShown(running)
      const shown = await read(code)
      expect(shown).toMatchObject({ status: 'pending', name: 'payer' })
      expect(running.err()).toContain(shown.userCode)
      expect(running.err()).toContain(shown.keyId)
      expect(existsSync(file('payer'))).toBe(false)
      const approved = await approve(code)
      expect(approved).toMatchObject({ status: 200, body: { keyId: shown.keyId, scopes: grant.scopes } })

      const { code: exitCode, out, err } = await running.ended
      expect([exitCode, JSON.parse(out)]).toEqual([
        0,
        {
          name: 'payer',
          keyId: shown.keyId,
          agentId: approved.body.agentId,
          accountId: owner.accountId,
          scopes: grant.scopes,
        },
      ])
      expect(statSync(file('payer')).mode & 0o777).toBe(0o600)
      const { privateKey } = z
        .looseObject({ privateKey: z.looseObject({ d: z.string() }) })
        .parse(JSON.parse(readFileSync(file('payer'), 'utf8')))
      expect(out + err + gateway().output()).not.toContain(privateKey.d)
      expect(gateway().output()).not.toContain(code)
      const payment = '{"destination":"0x000000000000000000000000000000000000dEaD","amount":"1"}'
      const call = [
        'agent',
        'call',
        '--key',
        file('payer'),
        'POST',
        '/api/wallets/transfer',
        '--data',
        payment,
      ]
      const paid = await bursar(call, { BURSAR_URL: gateway().origin })
      expect([paid.code, JSON.parse(paid.out)]).toMatchObject([0, { amount: '1' }])
      const { body } = await owner.send('GET', '/api/security/journal')
      expect(JSON.stringify(body)).toContain('key.created')
    })

    it('writes nothing when its owner rejects it', async () => {
      const running = register('rejected')
      const code = await codeShown(running)
      expect(await owner.send('POST', `${buildPath(code)}/reject`, {})).toMatchObject({ status: 200 })
      const { code: exitCode, out, err } = await running.ended
      expect([exitCode, out, existsSync(file('rejected'))]).toEqual([1, '', false])
      expect(err).toMatch(/The owner rejected the agent\. Nothing was written\.\n$/)
      expect(await approve(code)).toMatchObject({ status: 409, body: { reason: 'rejected' } })
    })

    it('never overwrites a file, and asks nobody before it has found out', async () => {
      writeFileSync(file('kept'), 'precious')
      const { code, err } = await register('kept').ended
      expect([code, err]).toEqual([
        1,
        `bursar: ${file('kept')} already exists; keys are never overwritten.\n`,
      ])
      expect(readFileSync(file('kept'), 'utf8')).toBe('precious')
    })

    it('says which key to revoke if the file can no longer be written', async () => {
      const running = register('taken')
      const code = await codeShown(running)
      writeFileSync(file('taken'), 'precious')
      const { body } = await approve(code)
      const { code: exitCode, out, err } = await running.ended
      expect([exitCode, out, readFileSync(file('taken'), 'utf8')]).toEqual([1, '', 'precious'])
      expect(err).toContain(`revoke ${body.agentId}: ${file('taken')} already exists`)
    })

    it('says that another server is no gateway, in one line', async () => {
      const server = createServer((_request, response) => response.end('<html>')).listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = z.object({ port: z.int() }).parse(server.address())
      const url = `http://127.0.0.1:${port}`
      const { code, err } = await bursar([
        'agent',
        'register',
        '--url',
        url,
        '--name',
        'x',
        '--out',
        file('x'),
      ])
      server.close()
      expect([code, err]).toEqual([1, `bursar: The gateway at ${url} answered 200.\n`])
    })

    it('names a gateway that cannot be reached', async () => {
      const args = ['agent', 'register', '--url', 'http://127.0.0.1:9', '--name', 'x', '--out', file('x')]
      const { code, err } = await bursar(args)
      expect([code, err]).toEqual([
        1,
        expect.stringMatching(/^bursar: The gateway at .* is unreachable: .+\n$/),
      ])
    })

    it('is registered by the first of two owners only, and once', async () => {
      const { code, secret } = opened.parse((await start(newRequest())).body)
      const other = await newGuest(gateway().origin)
      const decisions = await Promise.all([owner, other, owner, other].map((person) => approve(code, person)))
      expect(decisions.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409])
      const winner = decisions.findIndex(({ status }) => status === 200) % 2 === 0 ? owner : other
      expect((await outcome(code, secret)).body).toMatchObject({
        status: 'approved',
        key: { accountId: winner.accountId },
      })
      expect(await owner.send('POST', `${buildPath(code)}/reject`, {})).toMatchObject({ status: 409 })
    })

    it('tells the outcome only for its own secret, and the request only to a signed-in person', async () => {
      const { code, secret } = opened.parse((await start(newRequest())).body)
      const others = opened.parse((await start(newRequest())).body)
      expect((await outcome(code, secret)).body).toEqual({ status: 'pending', key: null })
      for (const [wrongCode, wrongSecret] of [
        [code, others.secret],
        [others.code, secret],
        [code, code],
        ['invented', secret],
      ] as const)
        expect(await outcome(wrongCode, wrongSecret)).toMatchObject({
          status: 404,
          body: { code: 'not_found' },
        })
      expect((await requestJson(gateway().origin, 'GET', buildPath(code))).status).toBe(401)
      expect((await owner.send('GET', buildPath(`${code}x`))).status).toBe(404)
      const page = await fetch(`${gateway().origin}/agents/connect/${code}`, { redirect: 'manual' })
      expect(page.status).toBe(302)
    })

    it('must own the key, which a registration uses once', async () => {
      const proven = newRequest()
      expect((await start(proven)).status).toBe(200)
      expect(await start(proven)).toMatchObject({ status: 409, body: { code: 'conflict' } })
      for (const refused of [
        { ...newRequest(), publicKey: newRequest().publicKey },
        newRequest({ origin: 'https://other.example' }),
        newRequest({ signedAt: new Date(Date.now() - 60 * 60_000) }),
        newRequest({ signedAt: new Date(Date.now() + 60 * 60_000) }),
      ])
        expect(await start(refused)).toMatchObject({ status: 403, body: { code: 'signature_rejected' } })
      const { code } = opened.parse((await start(newRequest())).body)
      const foreign = { ...grant, name: 'Bot', publicKey: newRequest().publicKey, registration: code }
      expect(await owner.send('POST', '/api/agents/keys', foreign)).toMatchObject({ status: 409 })
      expect(await read(code)).toMatchObject({ status: 'pending' })
    })

    it('needs the second factor of an owner who has one', async () => {
      await enrollMfa(await signInByEmail(gateway().origin, 'careful@example.com'))
      const careful = await signInByEmail(gateway().origin, 'careful@example.com')
      const { code } = opened.parse((await start(newRequest())).body)
      expect(await approve(code, careful)).toMatchObject({ status: 401, body: { code: 'step_up_required' } })
      expect(await read(code, careful)).toMatchObject({ status: 'pending' })
    })

    it('has a name of one visible line', async () => {
      const { code } = opened.parse(
        (await start(newRequest({ name: 'Your\u202e bank\n<b>says</b> yes' }))).body,
      )
      expect(await read(code)).toMatchObject({ name: 'Your bank <b>says</b> yes' })
      expect((await start(newRequest({ name: '\u202e\u200b' }))).status).toBe(400)
    })

    it('expires after 15 minutes, and the command ends', async () => {
      const running = register('late')
      const code = await codeShown(running)
      pass(15 * 60)
      const fresh = await newGuest(gateway().origin)
      expect(await approve(code, fresh)).toMatchObject({ status: 409, body: { reason: 'expired' } })
      const { code: exitCode, err } = await running.ended
      expect([exitCode, existsSync(file('late'))]).toEqual([1, false])
      expect(err).toMatch(/Nobody approved the agent in time/)
    })

    it('is limited by address', async () => {
      const statuses: number[] = []
      for (let count = 0; count < 31; count += 1) statuses.push((await start(newRequest())).status)
      expect(statuses.at(-1)).toBe(429)
      const guesser = await newGuest(gateway().origin)
      const guess = (code: number) => guesser.send('GET', buildPath(`guessed-${code}`))
      const guesses = await Promise.all(Array.from({ length: 60 }, (_, code) => guess(code)))
      expect(new Set(guesses.map(({ status }) => status))).toEqual(new Set([404, 429]))
    })
  },
)
