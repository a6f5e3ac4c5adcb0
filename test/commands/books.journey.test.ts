/** `bursar export`, `backup` and `restore` with odd directories, damaged files and a database without tables. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createEmptyDatabase, testServerUrl } from '../engines.ts'
import { canVerify, verifyBundle } from '../records/decisions/verify-bundle.ts'
import { bursar } from './bursar.ts'

const directory = mkdtempSync(join(tmpdir(), 'bursar books '))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const file = (name: string) => join(directory, name)
const env = { DATA_DIR: file('data'), DATA_KEY: 'a data key of thirty-two letters' }
beforeAll(async () => {
  expect((await bursar(['migrate'], env)).code).toBe(0)
})

describe('bursar export', () => {
  it('prints a command that a shell reads, for a directory with a blank', async () => {
    const { code, out } = await bursar(['export', '--month', '2025-10', '--out', file('books')], env)
    expect([code, out]).toEqual([0, expect.stringContaining(`verify.py '${file('books')}' --jwks`)])
  })

  it('leaves no directory behind when it is refused', async () => {
    const { code, err } = await bursar(['export', '--month', '2999-01', '--out', file('new/books')], env)
    expect([code, err]).toEqual([1, expect.stringContaining('Nothing has happened yet')])
    expect(existsSync(file('new'))).toBe(false)
    mkdirSync(file('own'))
    expect((await bursar(['export', '--month', '2999-01', '--out', file('own')], env)).code).toBe(1)
    expect(readdirSync(file('own'))).toEqual([])
  })

  it('names a file in the place of its directory', async () => {
    writeFileSync(file('taken'), '')
    const { code, err } = await bursar(['export', '--month', '2025-10', '--out', file('taken')], env)
    expect([code, err]).toEqual([1, `bursar: ${file('taken')} cannot be made a directory.\n`])
  })

  it.skipIf(!canVerify)('is verified with the name of what cannot be read, without a trace', async () => {
    rmSync(file('books/spends.jsonl'))
    writeFileSync(file('books/usage.jsonl'), Buffer.from([0xff, 0xfe]))
    const { code, err } = await verifyBundle(file('books'))
    expect(code).toBe(1)
    expect(err).toContain('spends.jsonl')
    expect(err).not.toContain('Traceback')
    writeFileSync(file('books/manifest.jws'), 'cut')
    expect(await verifyBundle(file('books'))).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^cannot read on: .*\n$/),
    })
  })
})

describe('bursar restore', () => {
  it('names a damaged backup, and leaves no database behind', async () => {
    const saved = file('saved.backup')
    expect((await bursar(['backup', '--out', saved], env)).code).toBe(0)
    writeFileSync(file('cut.backup'), readFileSync(saved).subarray(0, 100_000))
    writeFileSync(file('empty.backup'), '')
    const other = { ...env, DATA_DIR: file('restored') }
    for (const name of ['cut.backup', 'empty.backup']) {
      const { code, err } = await bursar(['restore', file(name)], other)
      expect([code, err]).toEqual([1, expect.stringContaining(`${file(name)} is damaged, or no backup`)])
    }
    expect((await bursar(['restore', directory], other)).err).toContain('does not exist, or is no file')
    expect((await bursar(['audit', 'verify'], other)).err).toContain('No database found in')
    expect((await bursar(['restore', saved], other)).code).toBe(0)
  })
})

describe.skipIf(testServerUrl === undefined)('a database without tables', () => {
  it('makes a command name ten missing migrations and count the others', async () => {
    const { url, drop } = await createEmptyDatabase(testServerUrl ?? '')
    try {
      const { code, err } = await bursar(['audit', 'verify'], { DATABASE_URL: url })
      expect([code, err]).toEqual([
        1,
        expect.stringMatching(/0001-baseline.* and \d+ more\)\. Run "bursar migrate"/),
      ])
      expect(err.length).toBeLessThan(500)
    } finally {
      await drop()
    }
  })
})
