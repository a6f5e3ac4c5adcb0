/** `bursar export`: writes the books of a period as files that a stranger can recompute. */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../core/base/clock.ts'
import { writeBundle } from '../records/decisions/write-bundle.ts'
import { period } from '../records/statements/period.ts'
import { findIssuer, onAuditDatabase, withSigningKey } from './audit-database.ts'
import { quoteForShell } from './shell-word.ts'

const usage = 'Usage: bursar export --month MONTH --out DIRECTORY'

/** @returns exit code 0. @throws Error with the reason; nothing is left of the bundle then. */
export async function exportBooks(
  rest: readonly string[],
  { month, out }: { readonly month?: string | undefined; readonly out?: string | undefined },
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  if (month === undefined || out === undefined || rest.length > 0) throw new Error(usage)
  const { success, data: span, error } = period.safeParse(month)
  if (!success) throw new Error(`The period ${error.issues[0]?.message ?? 'is wrong'}.`)
  return onAuditDatabase(
    env,
    (database, config) =>
      withSigningKey(database, config, async (own) => {
        if (own === null) throw new Error('DATA_KEY is not set: without it nobody can sign the bundle.')
        const { receiptKey: key, dataKey } = own
        const made = await makeDirectory(out)
        try {
          const report = await writeBundle(database, out, {
            ...{ issuer: await findIssuer(database, config), key, dataKey, period: span, now: systemClock() },
            progress: showProgress,
          })
          if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
          process.stdout.write(
            `${report.decisions} decisions and ${report.postings} postings until ${report.to.toISOString()} are in ${out}.\nVerify them: python3 docs/verify/verify.py ${quoteForShell(out)} --jwks jwks.json\n`,
          )
          return 0
        } catch (error) {
          for (const name of await readdir(out)) await rm(join(out, name))
          if (made !== undefined) await rm(made, { recursive: true })
          throw error
        }
      }),
    'With DATA_DIR only one process can open the books: stop the gateway first, or use DATABASE_URL.',
  )
}

/** @returns the topmost directory that was created, if any. @throws Error when something is in it. */
async function makeDirectory(path: string): Promise<string | undefined> {
  const made = await mkdir(path, { recursive: true, mode: 0o700 }).catch((cause: unknown) => {
    throw new Error(`${path} cannot be made a directory.`, { cause })
  })
  if ((await readdir(path)).length > 0) throw new Error(`${path} is not empty. Nothing is overwritten.`)
  return made
}

function showProgress(file: string, lines: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${lines.toLocaleString('en-US')} in ${file}\r`)
}
