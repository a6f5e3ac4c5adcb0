/** Files of a gateway and the environment of its child processes are private to its user. */
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bursar } from '../commands/bursar.ts'
import { startGateway } from './gateway.ts'
import { newGuest } from './people.ts'

const secret = 'a secret that no child process needs'

describe('the files of a gateway', () => {
  let parent: string
  let directory: string
  beforeAll(() => {
    parent = mkdtempSync(join(tmpdir(), 'bursar-files-'))
    directory = join(parent, 'made', 'by-the-gateway')
  })
  afterAll(() => rmSync(parent, { recursive: true }))

  const paths = () => [
    directory,
    ...readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((name) => join(directory, name)),
  ]
  const open = () => paths().filter((path) => (lstatSync(path).mode & 0o077) !== 0)
  const serve = async () => {
    const gateway = await startGateway({ CHAIN: 'simulated', DATA_DIR: directory })
    await newGuest(gateway.origin)
    const whileServing = open()
    await gateway.stop()
    return [...whileServing, ...open()]
  }

  it('are created with access for its user alone', { timeout: 60_000 }, async () => {
    expect(await serve()).toEqual([])
    expect(paths().length).toBeGreaterThan(500)
  })

  it('are reported by the doctor when others can read them, and made private at the next start', {
    timeout: 60_000,
  }, async () => {
    await serve()
    for (const path of paths()) chmodSync(path, lstatSync(path).isDirectory() ? 0o777 : 0o666)
    const diagnosis = await bursar(['doctor'], { DATA_DIR: directory })
    expect([diagnosis.code, diagnosis.out]).toEqual([
      1,
      expect.stringMatching(/✗ files: \d{3,} files of DATA_DIR are accessible/),
    ])
    expect(await serve()).toEqual([])
    expect((await bursar(['doctor'], { DATA_DIR: directory })).out).toMatch(/✓ files: /)
  })
})

describe('the chain of a sandbox', () => {
  it('is started without the secrets of the environment', async () => {
    const gateway = await startGateway({
      CHAIN: 'anvil',
      SMTP_URL: `smtp://u:${encodeURIComponent(secret)}@127.0.0.1:1`,
    })
    const children = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[3] === String(gateway.process.pid)
        } catch {
          return false
        }
      })
    const environments = children.map((pid) => readFileSync(`/proc/${pid}/environ`, 'utf8'))
    await gateway.stop()
    expect(environments.length).toBeGreaterThan(0)
    for (const environment of environments) expect(environment).not.toContain('SMTP_URL')
  })
})
