/** `bursar archive`: writes the books of an old month, then takes its decisions out of the database. */
import { systemClock } from '../core/base/clock.ts'
import {
  type ArchiveRequest,
  archiveMonth,
  DEFAULT_KEEP,
  planArchive,
} from '../records/decisions/archive-month.ts'
import { readArchives } from '../records/decisions/archive-store.ts'
import { findIssuer, onAuditDatabase, withSigningKey } from './audit-database.ts'
import { quoteForShell } from './shell-word.ts'

const usage = 'Usage: bursar archive --month MONTH --out DIRECTORY [--keep MONTHS] [--dry-run]'

interface Options {
  readonly month?: string | undefined
  readonly out?: string | undefined
  readonly keep?: string | undefined
  readonly 'dry-run'?: boolean | undefined
}

/** @returns exit code 0. @throws Error with the reason; the month is still in the database then, or its files are written. */
export async function archive(
  rest: readonly string[],
  { month, out, keep: kept = `${DEFAULT_KEEP}`, 'dry-run': isDry = false }: Options,
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  if (month === undefined || out === undefined || rest.length > 0) throw new Error(usage)
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month)) throw new Error('--month must be a month such as 2025-10.')
  if (!/^[1-9]\d{0,2}$/.test(kept)) throw new Error('--keep must be a number of months, 1 or more.')
  return onAuditDatabase(
    env,
    (database, config) =>
      withSigningKey(database, config, async (own) => {
        if (own === null) throw new Error('DATA_KEY is not set, and the archive is signed with it.')
        const { receiptKey: key, dataKey } = own
        const request: ArchiveRequest = {
          ...{ database, key, dataKey, month, out, keep: Number(kept), now: systemClock() },
          ...{ issuer: await findIssuer(database, config), progress: createProgress() },
        }
        process.stdout.write(isDry ? await describe(request) : await run(request))
        return 0
      }),
    'With DATA_DIR only one process can open the books: stop the gateway first, or use DATABASE_URL.',
  )
}

async function describe(request: ArchiveRequest): Promise<string> {
  const known = (await readArchives(request.database, request.dataKey)).find(
    ({ month }) => month === request.month,
  )
  if (known !== undefined) return `${request.month} was archived before.\n`
  const { end, leaving } = await planArchive(request.database, request)
  const count = leaving.last - end.sequence
  return `${count} decisions would leave; ${leaving.staying.length} at the month's end would stay until the next month leaves. Nothing was changed.\n`
}

async function run(request: ArchiveRequest): Promise<string> {
  const { decisions, last, hash } = await archiveMonth(request)
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  const { month, out } = request
  return decisions === null
    ? `${month} had been archived before. The chain goes on after ${last} ${hash}\n`
    : `${decisions} decisions of ${month} are in ${out}, and no longer in the database. The chain goes on after ${last} ${hash}\nVerify a copy: gunzip *.gz in it, then python3 docs/verify/verify.py ${quoteForShell(out)} --jwks jwks.json\n`
}

/** One line that is written over on a terminal; otherwise a line now and then. */
function createProgress(): (text: string) => void {
  let last = Number.NEGATIVE_INFINITY
  return (text) => {
    if (process.stderr.isTTY) return void process.stderr.write(`\r\u001b[K${text}\r`)
    const now = systemClock().getTime()
    if (now - last < 10_000) return
    last = now
    process.stderr.write(`${text}\n`)
  }
}
