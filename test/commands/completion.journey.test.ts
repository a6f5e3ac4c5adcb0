/** The completion scripts in the shells themselves, as far as this machine has them; bash it has. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { commands } from '../../src/commands/table.ts'
import { eventTypes } from '../../src/records/events/catalogue.ts'
import { bursar } from './bursar.ts'

const shells = ['bash', 'zsh', 'fish'] as const
const hasShell = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status === 0

/** Completes the last word in bash, which gives the words and the position to the function. */
function completeInBash(script: string, line: readonly string[]): string[] {
  const run = `${script}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bursar; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', run, 'bash', 'bursar', ...line], {
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  return stdout.split('\n').filter((word) => word !== '')
}

function completeInFish(script: string, line: readonly string[]): string[] {
  const run = `${script}\ncomplete -C '${['bursar', ...line].join(' ')}'`
  const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', run], { encoding: 'utf8' })
  expect(stderr).toBe('')
  return stdout.split('\n').flatMap((row) => (row === '' ? [] : [row.split('\t')[0] ?? '']))
}

const cases: readonly (readonly [line: readonly string[], expected: readonly string[]])[] = [
  [['log'], ['login', 'logout']],
  [
    ['agent', ''],
    ['new', 'register', 'delegate', 'sign', 'call'],
  ],
  [['completion', 'z'], ['zsh']],
  [['trigger', 'transfer.c'], ['transfer.confirmed']],
  [['listen', '--forward-to', 'http', '--j'], ['--json']],
  [['listen', '--types', 'card.issued,order.f'], ['card.issued,order.filled']],
  [['proxy', 'e'], ['env']],
  [['proxy', '--k'], ['--key']],
]

const scripts = new Map<string, string>()
beforeAll(async () => {
  for (const shell of shells) {
    const { code, out } = await bursar(['completion', shell])
    expect(code).toBe(0)
    scripts.set(shell, out)
  }
})

describe('bursar completion', () => {
  it.each(cases)('completes %j in bash', (line, expected) => {
    expect(completeInBash(scripts.get('bash') ?? '', line).sort()).toEqual([...expected].sort())
  })

  it.each([[['restore']], [['audit', 'verify', '--archives', 'archives/2025-10']], [['backup', '--out']]])(
    'completes files after %j in bash, with blanks in their names',
    (line) => {
      const directory = mkdtempSync(join(tmpdir(), 'bursar-completion-'))
      try {
        writeFileSync(join(directory, 'my backup'), '')
        expect(completeInBash(scripts.get('bash') ?? '', [...line, `${directory}/`])).toEqual([
          `${directory}/my backup`,
        ])
      } finally {
        rmSync(directory, { recursive: true, force: true })
      }
    },
  )

  it.skipIf(!hasShell('fish')).each(cases)('completes %j in fish', (line, expected) => {
    expect(completeInFish(scripts.get('fish') ?? '', line).sort()).toEqual([...expected].sort())
  })

  it.skipIf(!hasShell('zsh'))('is a script that zsh can read', () => {
    const { status, stderr } = spawnSync('zsh', ['-n'], { input: scripts.get('zsh'), encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
  })

  it('knows every command and every type of an event', () => {
    for (const script of scripts.values()) {
      for (const { name } of commands) for (const word of name.split(' ')) expect(script).toContain(word)
      for (const type of eventTypes.keys()) expect(script).toContain(type)
    }
  })

  it('names the shells', async () => {
    expect(await bursar(['completion', 'csh'])).toMatchObject({
      code: 1,
      err: 'bursar: Usage: bursar completion bash|zsh|fish\n',
    })
  })
})

describe('bursar help', () => {
  it('explains each command by itself', async () => {
    const { out } = await bursar(['help'])
    for (const { name, about } of commands) {
      expect(out).toContain(name)
      expect(out).toContain(about)
    }
    expect((await bursar(['listen', '--help'])).out).toMatch(
      /^Usage: bursar listen .*--forward-to URL.*\n(.*\n)*Examples:\n {2}bursar listen\n/,
    )
    expect((await bursar(['help', 'agent', 'call'])).out).toMatch(/^Usage: bursar agent call --key FILE/)
  })
})
