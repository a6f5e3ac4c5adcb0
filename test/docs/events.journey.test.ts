/** The page of events names every type, and its programs verify what the gateway signs, and nothing else. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import { eventTypes, eventView } from '../../src/records/events/catalogue.ts'

const page = readFileSync('docs/events.md', 'utf8')
const block = (language: string) => new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(page)?.[1] ?? ''
const directory = mkdtempSync(join(tmpdir(), 'bursar-events-'))
afterAll(() => rmSync(directory, { recursive: true }))

const readSecret = (letter: string) => `whsec_${Buffer.from(letter.repeat(32)).toString('base64')}`
const body = JSON.stringify({ id: 'evt_1', data: { name: 'Größe €' } })
const headers = signWebhook({ id: 'evt_1', body, at: new Date() }, readSecret('a'), readSecret('b'))

/** Runs a program once for each case. @returns its exit codes. */
function exits(command: string, file: string, program: string): (number | null)[] {
  const path = join(directory, file)
  writeFileSync(path, program)
  const stale = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 301) }
  const cases = [
    { body, headers, secret: readSecret('a') },
    { body, headers, secret: readSecret('b') },
    { body, headers, secret: readSecret('c') },
    { body: body.replace('evt_1', 'evt_2'), headers, secret: readSecret('a') },
    { body, headers: stale, secret: readSecret('a') },
  ]
  return cases.map((given) => spawnSync(command, [path], { input: JSON.stringify(given) }).status)
}

describe('the page of events', () => {
  it('names every type', () => {
    const rows = page.split('\n').filter((line) => /^\| `[a-z]+\.?\w*`/.test(line))
    const named = rows.flatMap((line) =>
      [...(line.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, type]) => type),
    )
    expect(named.sort()).toEqual([...eventTypes.keys()].sort())
  })

  it('verifies in Node', () => {
    const use = `import { readFileSync } from 'node:fs'
      const { body, headers, secret } = JSON.parse(readFileSync(0, 'utf8'))
      verifyWebhook(body, headers, secret)`
    expect(exits(process.execPath, 'verify.mjs', `${block('js')}\n${use}`)).toEqual([0, 0, 1, 1, 1])
  })

  it.skipIf(spawnSync('python3', ['--version']).status !== 0)('verifies in Python', () => {
    const use =
      'import sys\ngiven = json.load(sys.stdin)\nverify_webhook(given["body"].encode(), given["headers"], given["secret"])'
    expect(exits('python3', 'verify.py', `${block('python')}\n${use}`)).toEqual([0, 0, 1, 1, 1])
  })
})

describe('the catalogue of events', () => {
  it('has an example of each type, as its schema says', () => {
    const common = {
      id: 'evt_1',
      sequence: 1,
      createdAt: 'now',
      accountId: 'acct_1',
      agentId: null,
      task: null,
    }
    for (const [type, { object, example }] of eventTypes)
      expect(() =>
        eventView.parse({ ...common, type, object: { kind: object, id: 'x' }, data: example }),
      ).not.toThrow()
  })
})
