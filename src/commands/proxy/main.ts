/**
 * The proxy as a program of its own: it runs for as long as its user works, beside all they do, and the whole command line
 * would take twice its memory. `src/launch.ts` runs it for `bursar proxy`.
 */
import { parseArgs } from 'node:util'
import { options } from '../table.ts'
import { keepMemorySmall } from './passed-bytes.ts'
import { proxy } from './proxy.ts'

process.umask(0o077)
keepMemorySmall()

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ args: process.argv.slice(3), options, allowPositionals: true })
  return proxy(positionals, values, process.env)
}

// Whoever read what is told here has gone. What is done goes on: a key is revoked, a purchase is ended.
process.stderr.on('error', () => {})

main().then(
  (code) => process.stdout.write('', () => process.exit(code)),
  (error: unknown) => {
    process.stderr.write(`bursar: ${error instanceof Error ? error.message : String(error)}\n`, () =>
      process.exit(1),
    )
  },
)
