/** Test suites, by the processes that a file starts: none, an embedded database, or gateways, chains and browsers. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const STARTS_PROCESS = /startGateway|spawnAnvil|startAnvil|commands\/bursar|node:child_process/
const STARTS_DATABASE = /openPglite|engines\.ts|createRuntime|PGlite\.create/

/** Journeys of the quick suite: the first minutes of each kind of user. */
const firstMinutes =
  /journeys\/(approvals|banking|cards|compliance|gasless|investing|money-path|passkeys|signed-transfers|swaps|x402)\.test|mcp\/(parity|x402)\.test|http\/http\.test/

/** Files of the long suite that start no process, but take many seconds. */
const slow =
  /x402\/trouble|mcp\/watch|faults\/providers|contracts\/identity-review|investing\/(books\.property|false-reports)|spending\/(model\.property|races)|audit\/seal-decisions/

/**
 * The paths of a suite's test files, sorted. @param suite `unit` starts nothing; `quick` is unit, databases and first
 * journeys; `long` is the rest; otherwise all.
 */
export function filesOf(suite: string | undefined): string[] {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .sort()
  if (suite !== 'unit' && suite !== 'quick' && suite !== 'long') return files
  return files.filter((file) => {
    const text = textWithHelpers(file)
    const isUnit = !STARTS_PROCESS.test(text) && !STARTS_DATABASE.test(text) && !slow.test(file)
    const isQuick = (!STARTS_PROCESS.test(text) && !slow.test(file)) || firstMinutes.test(file)
    return suite === 'unit' ? isUnit : suite === 'quick' ? isQuick : !isQuick
  })
}

/** A file's text and that of all test helpers that it imports. */
function textWithHelpers(file: string, seen = new Set<string>()): string {
  if (seen.has(file) || !file.startsWith('test')) return ''
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  const imports = [...text.matchAll(/from '(\.[^']+\.ts)'/g)].map(([, path = '']) =>
    join(dirname(file), path),
  )
  return [text, ...imports.map((path) => textWithHelpers(path, seen))].join('\n')
}
