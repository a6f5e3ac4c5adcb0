/** `bursar audit` with missing or invalid inputs. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSealRound } from '../../src/records/decisions/seal-decisions.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { insertDecisions, never, sealingDependencies, settings } from '../records/decisions/scene.ts'
import { bursar } from './bursar.ts'

const directory = mkdtempSync(join(tmpdir(), 'bursar-audit-command-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const file = (name: string) => join(directory, name)

describe('bursar audit', () => {
  it.each([
    [['audit'], /^bursar: Usage: bursar audit export/],
    [['audit', 'export'], /Usage/],
    [['audit', 'verify', 'more'], /Usage/],
    [
      ['audit', 'verify', '--out', 'x'],
      /"--out" is no option of audit verify\. Try "bursar audit verify --help"/,
    ],
    [['audit', 'verify', '--journal-head', 'abc'], /--journal-head must be a hash of 64 hex digits/],
    [['audit', 'verify', '--archives'], /--archives needs the directories/],
    [['audit', 'export', '--out', '.npmrc'], /\.npmrc exists\. An export never replaces a file\./],
    [['audit', 'verify'], /DATA_DIR=memory stores nothing/],
    [['audit', 'verify', '--from-export', file('absent')], /absent: cannot be read/],
    [['audit', 'verify', '--from-export', '.npmrc'], /\.npmrc: not an export of decisions/],
  ])('rejects %j in one line, with the reason', async (args, why) => {
    const { code, out, err } = await bursar(args)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(why)
    expect(err.trim().split('\n')).toHaveLength(1)
  })

  it('creates no database', async () => {
    const { code, err } = await bursar(['audit', 'verify'], { DATA_DIR: file('nowhere') })
    expect([code, err]).toEqual([1, expect.stringContaining('No database found in')])
    expect(() => statSync(file('nowhere'))).toThrow()
  })

  it('reports a gateway without decisions as intact, and has no keys before the first run', async () => {
    const env = { DATA_DIR: file('fresh') }
    await bursar(['migrate'], env)
    const { code, err } = await bursar(['audit', 'verify'], env)
    expect([code, err]).toEqual([1, expect.stringMatching(/public keys are unavailable.*--jwks FILE/)])
    const known = { ...env, DATA_KEY: 'a data key of thirty-two letters' }
    expect(await bursar(['audit', 'verify'], known)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^0 decisions, chain intact, 0 signatures verified\n/),
    })
  })
})

describe.skipIf(testServerUrl === undefined)('bursar audit on a server', () => {
  const env = { DATABASE_URL: '', DATA_KEY: settings.dataKey.toString() }
  let drop = async () => {}
  beforeAll(async () => {
    const made = await createTestDatabase(testServerUrl ?? '')
    drop = made.drop
    env.DATABASE_URL = made.url
    const database = await openPostgres({ url: made.url })
    await database.migrate()
    await insertDecisions(database, 1_234)
    await createSealRound(sealingDependencies(database))(never)
    await insertDecisions(database, 3)
    await database.close()
  })
  afterAll(() => drop())

  it('counts verified and unsealed decisions, while gateways may be running', async () => {
    const { code, out, err } = await bursar(['audit', 'verify'], env)
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(
      /^1,234 decisions, chain intact, 1,234 signatures verified, 3 not sealed yet\nHead: 1234 [0-9a-f]{64}\nJournal: 0 changes, chain intact, /,
    )
  })

  it('exports to a private file, page by page, under the issuer of the receipts', async () => {
    const path = file('server.jsonl')
    expect((await bursar(['audit', 'export', '--out', path], env)).code).toBe(0)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const lines = readFileSync(path, 'utf8').trim().split('\n')
    expect(lines).toHaveLength(1_235)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      format: 'bursar-decisions/1',
      iss: settings.origin,
      head: { sequence: 1_234 },
    })
    const verify = async (changed: readonly string[]) => {
      writeFileSync(file('changed.jsonl'), `${changed.join('\n')}\n`)
      return bursar(['audit', 'verify', '--from-export', file('changed.jsonl')])
    }
    expect((await verify(lines)).code).toBe(0)
    expect((await verify(lines.toSpliced(700, 1))).out).toMatch(/\(sequence 700\): row missing/)
    expect((await verify(lines.slice(0, -1))).out).toMatch(/\(sequence 1234\): row missing/)
    expect((await verify(lines.with(600, 'broken'))).out).toMatch(/\(sequence 600\): row unreadable/)
  })

  it('rejects another deployment’s receipts', async () => {
    const { code, out } = await bursar(['audit', 'verify'], { ...env, DATA_KEY: 'x'.repeat(32) })
    expect([code, out]).toEqual([1, expect.stringContaining('(sequence 1): signature invalid')])
  })
})
