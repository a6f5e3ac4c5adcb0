/** The security pages against the code: every name in them exists, and none is missing. */
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { rateClasses } from '../../policies/rate-classes.ts'
import { scopes } from '../../policies/scopes.ts'
import { tools } from '../../tools/index.ts'

const readPage = (name: string) => readFileSync(`docs/security/${name}.md`, 'utf8')
const decisions = readPage('decisions')

/** Cells of the table rows whose first cell matches. */
const listRows = (page: string, first: RegExp) =>
  page
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim()))
    .filter(([cell = '']) => first.test(cell))

describe('the table of ASVS requirements', () => {
  const rows = listRows(readPage('asvs'), /^\d+\.\d+\.\d+$/).map(
    ([id = '', level = '', requirement = '', verdict = '', evidence = '']) => ({
      id,
      level,
      requirement,
      verdict,
      evidence,
    }),
  )
  const testsIn = (evidence: string) =>
    [...evidence.matchAll(/`(test\/[^`]+)`: “([^”]+)”/g)].map(([, file = '', name = '']) => ({ file, name }))

  it('has every requirement of levels 1 and 2 once', () => {
    const ids = rows.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const ofChapter = (chapter: string) => ids.filter((id) => id.startsWith(`${chapter}.`)).length
    expect(['6', '7', '8', '9', '10'].map((chapter) => [chapter, ofChapter(chapter)])).toEqual([
      ['6', 35],
      ['7', 18],
      ['8', 7],
      ['9', 7],
      ['10', 29],
    ])
    for (const { level } of rows) expect(['1', '2']).toContain(level)
  })

  it('cites existing tests for what is met, and a reason for the rest', () => {
    for (const { id, verdict, evidence } of rows) {
      const named = testsIn(evidence)
      expect([id, verdict]).toEqual([id, expect.stringMatching(/^(met|not applicable|not met)$/)])
      if (verdict === 'met') expect([id, named.length]).not.toEqual([id, 0])
      else expect([id, evidence.length > 10]).toEqual([id, true])
      // A file named without a test would not be checked.
      expect([id, [...evidence.matchAll(/`test\//g)].length]).toEqual([id, named.length])
      for (const { file, name } of named) {
        const isThere = existsSync(file) && readFileSync(file, 'utf8').includes(`'${name}'`)
        expect([id, file, name, isThere]).toEqual([id, file, name, true])
      }
    }
  })

  it('counts its verdicts correctly', () => {
    const count = (verdict: string) => rows.filter((row) => row.verdict === verdict)
    const missing = count('not met')
      .map(({ id }) => id)
      .join(', ')
    expect(readPage('asvs')).toContain(
      `${rows.length} requirements: ${count('met').length} met, ${count('not applicable').length} not applicable, ${count('not met').length} not met (${missing}).`,
    )
  })
})

describe('the page of decisions', () => {
  it('names every authentication method, and no other', () => {
    const named = listRows(decisions, /./).flatMap((cells) =>
      cells.flatMap((cell) => /^`(POST \/api\/auth\/.+)`$/.exec(cell)?.[1] ?? []),
    )
    const open = tools.filter(({ opensSession }) => opensSession === true).map(({ route }) => route)
    expect(open.length).toBeGreaterThan(0)
    expect(named.sort()).toEqual(open.sort())
  })

  it('states every limit with its default', () => {
    const stated = listRows(decisions, /^`RATE_/).map(
      ([name = '', value]) => `${name.replaceAll('`', '')}=${value}`,
    )
    const defaults = Object.values(rateClasses).map(({ env, count, seconds }) => `${env}=${count}/${seconds}`)
    expect(stated.sort()).toEqual(defaults.sort())
  })

  it('names every scope', () => {
    const named = listRows(decisions, /^`\w+:\w+`/).flatMap(([cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, scope]) => scope),
    )
    expect(named.sort()).toEqual(Object.keys(scopes).sort())
  })
})
