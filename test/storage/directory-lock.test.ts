import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { lockDirectory } from '../../src/storage/directory-lock.ts'
import { isRunning, ownIdentity } from '../../src/storage/process-identity.ts'

const root = mkdtempSync(join(tmpdir(), 'bursar-lock-'))
const at = new Date('2026-11-20T12:00:00.000Z')
let count = 0

/** A directory with an owner file. */
function createOwned(owner: { pid: number; started: string; free?: boolean }): string {
  const directory = join(root, String(count++))
  mkdirSync(directory)
  writeFileSync(
    join(directory, 'owner.7'),
    JSON.stringify({ since: at.toISOString(), free: false, ...owner }),
  )
  return directory
}

afterAll(() => rmSync(root, { recursive: true, force: true }))

describe('lockDirectory', () => {
  it('locks, rejects a second owner and unlocks', () => {
    const directory = join(root, 'new', 'deep')
    const unlock = lockDirectory(directory, at)
    expect(() => lockDirectory(directory, at)).toThrow(
      `process ${process.pid} since 2026-11-20T12:00:00.000Z`,
    )
    unlock()
    lockDirectory(directory, at)()
  })

  it('takes over from a dead process', () => {
    // Above the largest pid that Linux assigns.
    const unlock = lockDirectory(createOwned({ pid: 4_194_305, started: 'boot 1' }), at)
    expect(unlock).toBeTypeOf('function')
    unlock()
  })

  it.skipIf(process.platform !== 'linux')('detects a reused pid by its start time', () => {
    const own = ownIdentity()
    expect(isRunning(own)).toBe(true)
    lockDirectory(createOwned({ pid: own.pid, started: `${own.started}0` }), at)
    expect(() => lockDirectory(createOwned(own), at)).toThrow('in use')
  })

  it('treats a live process as the owner when its start time is unknown', () => {
    expect(() => lockDirectory(createOwned({ pid: process.pid, started: '' }), at)).toThrow('in use')
  })

  it('takes over an unreadable owner file', () => {
    const directory = join(root, String(count++))
    mkdirSync(directory)
    writeFileSync(join(directory, 'owner.3'), '')
    lockDirectory(directory, at)()
    expect(JSON.parse(readFileSync(join(directory, 'owner.4'), 'utf8'))).toMatchObject({
      pid: process.pid,
      free: true,
    })
  })

  it('leaves few files behind', () => {
    const directory = join(root, String(count++))
    for (let times = 0; times < 30; times += 1) lockDirectory(directory, at)()
    expect(readdirSync(directory).length).toBeLessThan(12)
  })
})
