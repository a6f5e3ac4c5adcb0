/** `bursar statement`: a month's statement as the gateway writes it, on the standard output or in a file. */
import { writeFileSync } from 'node:fs'
import { z } from 'zod'
import { visibleText } from '../core/base/untrusted-text.ts'
import { chooseCredential, chooseGateway, type Env } from './connect.ts'
import { statementFormats } from './table.ts'

const mediaTypes: Readonly<Record<(typeof statementFormats)[number], string>> = {
  json: 'application/json',
  csv: 'text/csv',
  pdf: 'application/pdf',
  ofx: 'application/x-ofx',
  camt: 'application/xml',
  hledger: 'text/x-hledger',
}

const refusal = z.object({ detail: z.string(), hint: z.string().optional(), code: z.string() })

interface StatementValues {
  readonly url?: string | undefined
  readonly format?: string | undefined
  readonly out?: string | undefined
}

/** @returns exit code 0 once it is written. @throws Error with the reason. */
export async function statement(
  [period, ...rest]: readonly string[],
  { url, format: named = 'json', out }: StatementValues,
  env: Env,
): Promise<number> {
  if (period === undefined || rest.length > 0)
    throw new Error(`Usage: bursar statement PERIOD [--format ${statementFormats.join('|')}] [--out FILE]`)
  const format = statementFormats.find((name) => name === named)
  if (format === undefined)
    throw new Error(`"${visibleText(named)}" is no format. There are ${statementFormats.join(', ')}.`)
  if (format === 'pdf' && out === undefined && process.stdout.isTTY)
    throw new Error('A terminal shows no PDF. Give --out FILE.')
  const origin = chooseGateway(url, env)
  const { session } = chooseCredential({ origin }, env)
  const response = await fetch(new URL(`/api/statements/${encodeURIComponent(period)}`, origin), {
    headers: { accept: mediaTypes[format], authorization: `Bearer ${session}` },
    redirect: 'error',
  }).catch((cause: unknown) => {
    throw new Error(`${origin} could not be reached.`, { cause })
  })
  if (!response.ok) throw new Error(await describeRefusal(response))
  const content = Buffer.from(await response.arrayBuffer())
  if (out === undefined) process.stdout.write(content)
  else writeStatement(out, content)
  return 0
}

async function describeRefusal(response: Response): Promise<string> {
  const { data } = refusal.safeParse(await response.json().catch(() => null))
  if (data === undefined) return `The gateway answered ${response.status}.`
  const hint = data.code === 'unauthenticated' ? 'Run "bursar login".' : (data.hint ?? '')
  return visibleText(`${data.detail} ${hint} (${data.code})`)
}

/** @throws Error if the file exists. */
function writeStatement(path: string, content: Uint8Array): void {
  try {
    writeFileSync(path, content, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    const isThere = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
    throw new Error(isThere ? `${path} exists. It is not overwritten.` : `${path} could not be written.`, {
      cause,
    })
  }
  process.stderr.write(`Written to ${path}.\n`)
}
