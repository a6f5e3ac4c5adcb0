/** Every command except the gateway itself, as a child process. */

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../../src/core/base/clock.ts'
import { newId } from '../../src/core/base/ids.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { createAccount } from '../../src/people/identity/accounts.ts'
import { findAccount } from '../../src/people/identity/store.ts'
import { sandboxSecret } from '../../src/sandbox/sandbox.ts'
import { openPglite } from '../../src/storage/pglite.ts'
import { bursar } from './bursar.ts'

const directory = mkdtempSync(join(tmpdir(), 'bursar-commands-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const file = (name: string) => join(directory, name)
const keyFile = z.object({
  keyId: z.string(),
  privateKey: z.object({ d: z.string(), x: z.string() }),
  publicKey: z.object({ x: z.string() }),
})

describe('bursar', () => {
  it.each([[['help']], [['--help']]])('prints its help for %j', async (args) => {
    const { code, out, err } = await bursar(args)
    expect([code, err]).toEqual([0, ''])
    for (const command of [
      'serve',
      'mcp',
      'agent new',
      'agent register',
      'agent delegate',
      'agent sign',
      'agent call',
      'admin grant',
      'admin revoke',
      'admin list',
      'audit verify',
      'audit export',
      'migrate',
      'doctor',
    ])
      expect(out).toContain(command)
  })

  it('rejects an unknown command', async () => {
    const { code, out, err } = await bursar(['pay'])
    expect([code, out]).toEqual([2, ''])
    expect(err).toBe('bursar: unknown command "pay". Try "bursar help".\n')
  })

  it.each([
    [['serve', '--prot', '1'], /--prot/],
    [['serve', '--port', '1'], /"--port" is no option of serve\. Try "bursar serve --help"/],
    [['--port', '1'], /"--port" is no option of serve/],
    [['migrate', '--dry-run'], /"--dry-run" is no option of migrate/],
    [['chain', 'deploy', '--dry-run'], /"--dry-run" is no option of chain deploy/],
    [['doctor', 'now'], /"now" is no option of doctor/],
    [['restore', 'one', 'two'], /One backup is restored at a time/],
    [['mcp'], /--url is missing/],
    [['mcp', '--url', 'http://127.0.0.1:9'], /--key is missing/],
    [['mcp', '--url', 'nonsense', '--key', 'x'], /"nonsense" is not a URL/],
    [['agent'], /Usage: bursar agent new/],
    [['admin', 'grant'], /Usage: bursar admin grant\|revoke ACCOUNT/],
    [['admin', 'grant', 'acct_1'], /stores nothing/],
    [['agent', 'new', '--name', 'x'], /Usage/],
    [['agent', 'register', '--name', 'x'], /Usage/],
    [['agent', 'delegate', '--key', 'x'], /Usage/],
    [['agent', 'delegate', '--key', 'x', '--name', 'x', '--out', 'x', '--data', '{}'], /expiresAt/],
    [['agent', 'call', 'GET', '/'], /Usage/],
  ])('rejects %j in one line, with the reason', async (args, why) => {
    const { code, out, err } = await bursar(args)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(why)
    expect(err.trim().split('\n')).toHaveLength(1)
  })
})

describe('bursar agent new', () => {
  it('writes a key file with owner-only access, and prints only the public part', async () => {
    const path = file('new.json')
    const { code, out, err } = await bursar(['agent', 'new', '--name', 'Invoice bot', '--out', path])
    expect(code).toBe(0)
    const kept = keyFile.parse(JSON.parse(readFileSync(path, 'utf8')))
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(JSON.parse(out)).toEqual({
      name: 'Invoice bot',
      keyId: kept.keyId,
      publicKey: { kty: 'OKP', crv: 'Ed25519', x: kept.privateKey.x },
    })
    expect(out + err).not.toContain(kept.privateKey.d)
  })

  it('never overwrites a file', async () => {
    const path = file('kept.json')
    writeFileSync(path, 'precious')
    const { code, out, err } = await bursar(['agent', 'new', '--name', 'x', '--out', path])
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain('never overwritten')
    expect(readFileSync(path, 'utf8')).toBe('precious')
  })

  it('names an unwritable location', async () => {
    const { code, err } = await bursar(['agent', 'new', '--name', 'x', '--out', file('nowhere/key.json')])
    expect(code).toBe(1)
    expect(err).toContain('nowhere/key.json')
  })
})

describe('bursar agent sign and call', () => {
  it.each([
    ['does not exist', 'absent.json', null, 'the file does not exist'],
    ['is empty', 'empty.json', '', 'not a key file'],
    ['is not JSON', 'text.json', 'hello', 'not a key file'],
    [
      'has only a public part',
      'public.json',
      '{"keyId":"x","publicKey":{"kty":"OKP","crv":"Ed25519","x":"x"}}',
      'not a key file',
    ],
    [
      'has another key type',
      'rsa.json',
      '{"keyId":"x","privateKey":{"kty":"RSA"},"publicKey":{"kty":"RSA"}}',
      'not a key file',
    ],
  ])('rejects a key file that %s, without its content', async (_name, name, content, why) => {
    if (content !== null) writeFileSync(file(name), content)
    const { code, out, err } = await bursar([
      'agent',
      'sign',
      '--key',
      file(name),
      'GET',
      'http://127.0.0.1:9/',
    ])
    expect([code, out]).toEqual([1, ''])
    expect(err).toBe(
      `bursar: ${file(name)}: ${why}. Create one with "bursar agent new --name NAME --out FILE".\n`,
    )
  })

  it('names an unreachable gateway, and an invalid URL', async () => {
    const path = file('caller.json')
    await bursar(['agent', 'new', '--name', 'x', '--out', path])
    const call = (url: string) => bursar(['agent', 'call', '--key', path, 'GET', url])
    expect(await call('http://127.0.0.1:9/api')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^bursar: The gateway at http:\/\/127\.0\.0\.1:9 is unreachable: .+\n$/),
    })
    for (const url of ['wallets', 'ftp://127.0.0.1/', '127.0.0.1:8787/api'])
      expect(await call(url)).toMatchObject({
        code: 1,
        err: expect.stringContaining(`"${url}" is not a URL`),
      })
  })
})

describe('bursar admin grant', () => {
  it('makes a sandbox account an administrator, once, and writes it into the journal', async () => {
    const directory = file('admins')
    const env = { DATA_DIR: directory }
    const open = () => openPglite({ directory, now: systemClock, log: silentLog })
    const database = await open()
    await database.migrate()
    await sandboxSecret(database, 'data')
    const people = { database, newId }
    const { id } = await createAccount(people, { displayName: 'Ada', guest: false, at: systemClock() })
    const guest = await createAccount(people, { displayName: 'Guest', guest: true, at: systemClock() })
    await database.close()

    const granted = await bursar(['admin', 'grant', id], env)
    expect(granted).toEqual({
      code: 0,
      out: `${id} is an administrator from its next request on.\n`,
      err: '',
    })
    const again = await bursar(['admin', 'grant', id], env)
    expect([again.code, again.out]).toEqual([0, `${id} is an administrator already.\n`])
    expect((await bursar(['admin', 'grant', guest.id], env)).err).toContain('A guest is never')
    expect((await bursar(['admin', 'grant', 'acct_none'], env)).err).toContain(
      'There is no account acct_none',
    )

    const after = await open()
    const entries = await after.kysely.selectFrom('journal_entry').select(['action', 'actor_kind']).execute()
    expect(await findAccount(after, id)).toMatchObject({ role: 'admin' })
    expect(entries).toEqual([{ action: 'account.role_changed', actor_kind: 'system' }])
    await after.close()
  })
})

describe('bursar migrate', () => {
  it('creates a new directory’s database, and has nothing to do the second time', async () => {
    const env = { DATA_DIR: file('data') }
    const first = await bursar(['migrate'], env)
    expect([first.code, first.err]).toEqual([0, ''])
    const second = await bursar(['migrate'], env)
    expect(second).toEqual({ code: 0, out: 'The database is up to date.\n', err: '' })
  })

  it('reports configuration errors', async () => {
    const { code, out, err } = await bursar(['migrate'], { DATABASE_URL: 'nonsense' })
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain('DATABASE_URL')
  })
})
