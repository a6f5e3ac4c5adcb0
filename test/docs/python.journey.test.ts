/** The programs of the guides, in Python, do what the guides say. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { sharedGateway } from '../journeys/gateway.ts'

const run = promisify(execFile)
const directory = mkdtempSync(join(tmpdir(), 'bursar-python-'))
afterAll(() => rmSync(directory, { recursive: true }))

const readBlocks = (page: string) =>
  [...readFileSync(`docs/${page}`, 'utf8').matchAll(/```python\n([\s\S]*?)```/g)].map(([, text = '']) => text)
const programs = readdirSync('docs')
  .filter((page) => page.endsWith('.md'))
  .flatMap((page) => readBlocks(page).map((text) => ({ page, text })))
  .filter(({ text }) => text.startsWith('from bursar import'))

/** What each guide's program prints. */
const prints: Readonly<Record<string, RegExp>> = {
  'agents.md': /'wallets_transfer'.*\n\[\{.*'token': 'USDC'/,
  'approvals.md': /^403 approval_required http\S+\/approvals\/appr_\w+\napproved 0x[0-9a-f]{64}\n$/,
  'cards.md': /^12\.50 APPROVED\n30 VELOCITY_EXCEEDED\n$/,
  'guide.md': /^\w+ 0\.\d+ \d+(\.\d+)?\n$/,
  'policies.md': /^2 .*daily/,
  'purchases.md': /^delivered 0\.\d+ 200\n$/,
  'selling.md': /^402 \S+ 0x[0-9a-fA-F]{40} \d+\n$/,
}

describe.skipIf(spawnSync('python3', ['--version']).status !== 0)('the Python of a guide', () => {
  const origin = sharedGateway()

  it('stands in every guide that is about calls', () => {
    expect(programs.map(({ page }) => page).sort()).toEqual(Object.keys(prints).sort())
  })

  it.each(programs)('does what $page says', async ({ page, text }) => {
    const [client = ''] = readBlocks('client.md')
    writeFileSync(join(directory, 'bursar.py'), client)
    const file = join(directory, page.replace('.md', '.py'))
    writeFileSync(file, text)
    const { stdout } = await run('python3', [file], { env: { ...process.env, BURSAR: origin } })
    expect(stdout).toMatch(prints[page] ?? /^$/)
  })
})
