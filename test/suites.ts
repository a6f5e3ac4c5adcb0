/** The suites of tests, by what a file starts: nothing, a database in its process, or gateways, chains and browsers. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const STARTS_PROCESS = /startGateway|spawnAnvil|startAnvil|commands\/bursar|node:child_process/
const STARTS_DATABASE = /openPglite|engines\.ts|createRuntime|PGlite\.create/

/** Journeys that show a newcomer that everything works together: the first minutes of each kind of user. */
const firstMinutes =
  /journeys\/(approvals|banking|cards|compliance|gasless|investing|money-path|passkeys|signed-transfers|swaps|x402)\.test|mcp\/(parity|x402)\.test|http\/http\.test/

/** Files of one suite. `unit` starts nothing; `quick` is unit, databases and the first minutes; `long` is the rest. */
export type Suite = 'unit' | 'quick' | 'long' | 'all'

/** @returns the paths of a suite's test files. */
export function filesOf(suite: Suite): string[] {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .sort()
  if (suite === 'all') return files
  return files.filter((file) => {
    const text = textWithHelpers(file)
    const isUnit = !STARTS_PROCESS.test(text) && !STARTS_DATABASE.test(text)
    const isQuick = isUnit || !STARTS_PROCESS.test(text) || firstMinutes.test(file)
    return suite === 'unit' ? isUnit : suite === 'quick' ? isQuick : !isQuick
  })
}

/** A file's text and that of all helpers of tests that it imports. */
function textWithHelpers(file: string, seen = new Set<string>()): string {
  if (seen.has(file) || !file.startsWith('test')) return ''
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  const imports = [...text.matchAll(/from '(\.[^']+\.ts)'/g)].map(([, path = '']) => join(dirname(file), path))
  return [text, ...imports.map((path) => textWithHelpers(path, seen))].join('\n')
}
