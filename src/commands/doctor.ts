/** `bursar doctor`: checks everything that the gateway needs, with remedies. Read-only. */
import { systemClock } from '../core/base/clock.ts'
import { type Cancel, timers } from '../core/base/timers.ts'
import { type Config, readConfig, unknownVariables } from '../core/config/read-config.ts'
import { buildRateLimits, settingsErrors } from '../settings.ts'
import { withKeys } from './audit-database.ts'
import { checkKeys } from './doctor-keys.ts'
import {
  checkDisk,
  checkFiles,
  checkNode,
  checkOrigin,
  checkPort,
  checkSanctions,
  checkSecrets,
} from './doctor-own.ts'
import { checkOwners } from './doctor-owners.ts'
import {
  type CheckContext,
  checkChains,
  checkClock,
  checkDatabase,
  checkLimits,
  checkProviders,
} from './doctor-parts.ts'
import { type Finding, fail, type Moment, ok, warn } from './doctor-probes.ts'

/** Time limit per check; all run in parallel. */
const CHECK_TIMEOUT_MS = 8_000

/** @param print receives the report. @returns 0, or 1 when a check fails. */
export async function doctor(
  env: Readonly<Record<string, string | undefined>>,
  { isJson, isColoured }: { readonly isJson: boolean; readonly isColoured: boolean },
  print: (text: string) => void,
): Promise<number> {
  const findings = await examine(env)
  const isWell = findings.every(({ status }) => status !== 'fail')
  print(
    isJson
      ? `${JSON.stringify({ ok: isWell, checks: findings }, null, 2)}\n`
      : formatReport(findings, isColoured),
  )
  return isWell ? 0 : 1
}

async function examine(env: Readonly<Record<string, string | undefined>>): Promise<Finding[]> {
  const node = checkNode(process.versions.node)
  const config = loadConfig(env)
  if ('status' in config) return [config, node]
  const moments: Moment[] = []
  const note = (of: string, theirs: Date | null) => {
    if (theirs !== null && !Number.isNaN(theirs.getTime())) moments.push({ of, theirs, ours: systemClock() })
  }
  const checks: readonly (readonly [
    string,
    (part: CheckContext) => Finding | Promise<Finding | Finding[]>,
  ])[] = [
    ['database', checkDatabase],
    ['owners', checkOwners],
    ['limits', checkLimits],
    ['chain', checkChains],
    ['disk', () => checkDisk(config)],
    ['files', () => checkFiles(config)],
    ['sanctions', () => checkSanctions(config)],
    ['secrets', () => checkSecrets(config)],
    ['keys', ({ keys }) => checkKeys(config, { keys, env })],
    ['origin', () => checkOrigin(config)],
    ['port', ({ signal }) => checkPort(config, signal)],
    ['providers', checkProviders],
  ]
  const found = await withKeys(config, (keys) =>
    Promise.all(checks.map(([name, check]) => inTime(name, check, { config, keys, note }))),
  )
  const mode = ok('configuration', `${config.mode} mode`)
  const unknown = unknownVariables(env).map(({ name, nearest }) =>
    warn(
      'configuration',
      `${name} is no setting and has no effect`,
      nearest === null ? 'Remove it; docs/configuration.md lists all.' : `Use ${nearest}, if that is meant.`,
    ),
  )
  return [mode, ...unknown, node, ...found.flat(), checkClock(moments)]
}

/** Reads the configuration, or returns its errors as a finding. */
function loadConfig(env: Readonly<Record<string, string | undefined>>): Config | Finding {
  try {
    const config = readConfig(env, settingsErrors)
    buildRateLimits(config)
    return config
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    return fail(
      'configuration',
      detail,
      'Correct these variables; docs/configuration.md says what each means.',
    )
  }
}

async function inTime(
  name: string,
  check: (part: CheckContext) => Finding | Promise<Finding | Finding[]>,
  part: Omit<CheckContext, 'signal'>,
): Promise<Finding | Finding[]> {
  const ending = new AbortController()
  let cancel: Cancel | undefined
  const late = new Promise<Finding>((resolve) => {
    cancel = timers.after(CHECK_TIMEOUT_MS, () => {
      ending.abort()
      resolve(
        fail(
          name,
          `no answer in ${CHECK_TIMEOUT_MS / 1_000} s`,
          'Check that it is running and reachable from this machine.',
        ),
      )
    })
  })
  try {
    return await Promise.race([late, check({ ...part, signal: ending.signal })])
  } catch (error) {
    return fail(
      name,
      error instanceof Error ? error.message : String(error),
      'The check itself failed; please report this.',
    )
  } finally {
    cancel?.()
  }
}

const signs = { ok: ['✓', 32], warn: ['!', 33], fail: ['✗', 31] } as const

function formatReport(findings: readonly Finding[], isColoured: boolean): string {
  const paint = (code: number, text: string) => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text)
  const lines = findings.flatMap(({ check, status, detail, hint }) => {
    const [sign, colour] = signs[status]
    const [first = '', ...rest] = detail.split('\n')
    return [
      `${paint(colour, sign)} ${check}: ${first}`,
      ...rest.map((line) => `  ${line}`),
      ...(hint === null ? [] : [paint(2, `    → ${hint}`)]),
    ]
  })
  const count = (status: Finding['status']) => findings.filter((finding) => finding.status === status).length
  const [failed, warned] = [count('fail'), count('warn')]
  const verdict =
    failed > 0
      ? `${failed} of ${findings.length} checks failed.`
      : warned > 0
        ? `All checks passed with ${warned} warnings.`
        : 'All checks passed.'
  return `${lines.join('\n')}\n\n${verdict}\n`
}
