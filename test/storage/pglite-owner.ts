/**
 * A process that owns an embedded database: opens it, writes rows, prints the committed ones on standard output, and
 * runs until it is killed or standard input ends.
 */
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { openPglite } from '../../src/storage/pglite.ts'

const directory = process.argv[2] ?? ''

try {
  const database = await openPglite({ directory, now: systemClock, log: silentLog })
  await database.migrate()
  process.stdout.write('open\n')
  let isClosing = false
  process.stdin.on('end', () => {
    isClosing = true
  })
  process.stdin.resume()
  for (let row = 0; !isClosing; row += 1) {
    const values = { name: `${process.pid}:${row}`, value: 'x'.repeat(200) }
    await database.kysely.insertInto('sandbox_secret').values(values).execute()
    process.stdout.write(`${values.name}\n`)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await database.close()
} catch (error) {
  process.stdout.write(`refused ${error instanceof Error ? error.message : String(error)}\n`)
}
