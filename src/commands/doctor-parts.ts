/** What the doctor asks of the parts that the gateway is joined from: database, limits, chain, providers, clocks. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { deploymentFaults } from '../audit/deployment.ts'
import { systemClock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import type { Config } from '../config/read-config.ts'
import { rootCause } from '../failures/root-cause.ts'
import { chainOwnerOf, countInRedis, loadChainInspection, openDatabase } from '../runtime.ts'
import { dataKeyOf } from './audit-database.ts'
import { askMail, askWeb, type Finding, fail, type Moment, ok, warn } from './doctor-probes.ts'

/** What a check needs. @property note remembers another clock. */
export interface CheckContext {
  readonly config: Config
  readonly signal: AbortSignal
  readonly note: (of: string, theirs: Date | null) => void
}

const OLDEST_POSTGRES = 15
const SERVER =
  'Start the server that DATABASE_URL names, or correct it (host, port, user, password, database).'

/** Whether the database answers, is new enough and has every migration. One that a gateway has open is left alone. */
export async function checkDatabase({ config, note }: CheckContext): Promise<Finding> {
  const { databaseUrl, dataDirectory, mode } = config
  if (databaseUrl === null && dataDirectory === 'memory') return ok('database', 'embedded, in memory alone')
  if (databaseUrl === null && !existsSync(join(dataDirectory, 'cluster')))
    return ok('database', `embedded; the first start makes it in ${dataDirectory}`)
  try {
    const database = await openDatabase(config, silentLog)
    try {
      const [row] = await database.call<{ version: number; now: Date }>(
        {
          name: 'doctor',
          text: "select current_setting('server_version_num')::int as version, clock_timestamp() as now",
        },
        [],
      )
      if (databaseUrl !== null) note('the database', row?.now ?? null)
      const version = Math.floor((row?.version ?? 0) / 10_000)
      const name =
        databaseUrl === null
          ? `embedded, in ${dataDirectory}`
          : `PostgreSQL ${version} at ${new URL(databaseUrl).host}`
      if (version < OLDEST_POSTGRES)
        return fail('database', name, `Use PostgreSQL ${OLDEST_POSTGRES} or newer.`)
      const pending = await database.pendingMigrations()
      if (pending.length === 0) {
        const deployment = {
          dataKey: await dataKeyOf(database, config),
          chainId: null,
          chainOwner: chainOwnerOf(config),
        }
        const [fault] = await deploymentFaults(database, deployment)
        if (fault !== undefined) return fail('database', name, fault)
        return ok('database', `${name}, every migration and function is there`)
      }
      const missing = `${name}, lacks ${pending.length} migrations or functions`
      if (mode === 'sandbox') return warn('database', missing, 'The next start applies them.')
      return fail('database', missing, 'Run "bursar migrate".')
    } finally {
      await database.close()
    }
  } catch (error) {
    const why = rootCause(error)
    const owner = /in use by process (\d+)/.exec(why)?.[1]
    if (owner !== undefined)
      return ok(
        'database',
        `embedded, in ${dataDirectory}; process ${owner} has it open: a gateway is running, and it was not touched`,
      )
    return fail(
      'database',
      why,
      databaseUrl === null ? 'Set DATA_DIR to another directory, or restore this one.' : SERVER,
    )
  }
}

/** Whether rate limits can be counted, where all instances count them. */
export async function checkLimits({ config }: CheckContext): Promise<Finding> {
  const { redisUrl, databaseUrl, mode } = config
  if (redisUrl === null && databaseUrl !== null) return ok('limits', 'counted in the database')
  if (redisUrl === null)
    return mode === 'production'
      ? warn('limits', 'counted in this process alone', 'Set REDIS_URL or DATABASE_URL.')
      : ok('limits', 'counted in this process alone')
  const { host } = new URL(redisUrl)
  const rateLimiter = countInRedis(redisUrl)
  try {
    await rateLimiter.take('doctor:0', { count: 1_000_000, seconds: 1 }, systemClock())
    return ok('limits', `counted in Redis at ${host}`)
  } catch (error) {
    return fail(
      'limits',
      `Redis at ${host}: ${rootCause(error)}`,
      'Start it, or correct REDIS_URL. Money routes answer 503 without it.',
    )
  } finally {
    await rateLimiter.close()
  }
}

/** Whether the chain is there, is the right one, and its sponsor can pay. */
export async function checkChain({ config, signal, note }: CheckContext): Promise<Finding> {
  const { kind, rpcUrl, anvilBinary, sponsorKey } = config.chain
  const look = await loadChainInspection()
  if (kind === 'simulated') return ok('chain', 'simulated, in memory')
  if (kind === 'anvil') {
    try {
      const binary = look.locateAnvil(anvilBinary)
      if (existsSync(binary)) return ok('chain', 'a local one, started with the gateway')
      return fail('chain', `${binary} is not there`, 'Correct ANVIL_BIN.')
    } catch (error) {
      return fail('chain', 'there is no anvil', error instanceof Error ? error.message : String(error))
    }
  }
  const { host } = new URL(rpcUrl ?? '')
  const at = `${host}`
  try {
    const sight = await look.inspectChain({ url: rpcUrl ?? '', sponsorKey }, signal)
    note(`the node at ${host}`, sight.date)
    if (sight.chainId !== sight.expectedChainId)
      return fail(
        'chain',
        `${at} is chain ${sight.chainId}`,
        `Name a node of chain ${sight.expectedChainId} in CHAIN_RPC_URL.`,
      )
    if (sight.isDevelopment) return ok('chain', `${at}, a development node at block ${sight.blockNumber}`)
    if (!sight.hasEntryPoint)
      return fail(
        'chain',
        `${at} has no EntryPoint`,
        'ERC-4337 needs its EntryPoint v0.7 on the chain: check CHAIN_RPC_URL.',
      )
    if (sight.sponsorBalance === null)
      return fail('chain', `${at}, nobody pays for gas`, 'Set CHAIN_SPONSOR_KEY.')
    const ether = (Number(sight.sponsorBalance) / 1e18).toFixed(4)
    const told = `${at}, block ${sight.blockNumber}, the sponsor has ${ether} ETH`
    if (sight.sponsorBalance === 0n)
      return fail('chain', told, 'Fund the sponsor: without gas nothing is sent.')
    return sight.sponsorBalance < 10n ** 16n
      ? warn('chain', told, 'Fund the sponsor before it runs out.')
      : ok('chain', told)
  } catch (error) {
    return fail('chain', `${at}: ${rootCause(error)}`, 'Start the node, or correct CHAIN_RPC_URL.')
  }
}

/** Whether the providers that are configured can be reached, each on its own line. */
export async function checkProviders({ config, signal, note }: CheckContext): Promise<Finding[]> {
  const { alpaca, sumsub, screening, twilio, cards, banking, x402, smtp, mode } = config
  const web: readonly (readonly [name: string, url: string | null | undefined])[] = [
    ['facilitator', x402.facilitatorUrl],
    ['rail controls', config.railControlsUrl],
    ['rates', config.fxRatesUrl],
    ['screening', screening?.url],
    ['identity review', sumsub?.url],
    ['broker', alpaca?.url],
    ['broker’s data', alpaca?.dataUrl],
    ['card processor', cards.apiKey === null ? null : cards.url],
    ['banking', banking.apiKey === null ? null : banking.url],
    ['SMS', twilio?.url],
    ['collector of traces', config.tracesTo],
    ...(config.swapAggregators ?? []).map(({ name, url }) => [`swaps by ${name}`, url] as const),
    ...config.identityProviders.map(({ name, issuer }) => [`sign-in by ${name}`, issuer] as const),
  ]
  const asked = web.flatMap(([name, url]) => (url === null || url === undefined ? [] : [{ name, url }]))
  const reached = asked.map(async ({ name, url }) => {
    const { host } = new URL(url)
    try {
      const { date } = await askWeb(url, signal)
      note(host, date)
      return ok(name, `${host} answers`)
    } catch (error) {
      return fail(
        name,
        `${host}: ${rootCause(error)}`,
        'Check its URL in the configuration, and the way there (DNS, proxy, firewall).',
      )
    }
  })
  const findings = await Promise.all([...reached, ...(smtp === null ? [] : [checkMail(smtp.url, signal)])])
  if (mode === 'sandbox')
    return findings.length > 0 ? findings : [ok('providers', 'the sandbox plays them all')]
  return [...findings, ...absentOf(config)]
}

async function checkMail(url: string, signal: AbortSignal): Promise<Finding> {
  const { host } = new URL(url)
  try {
    const code = await askMail(url, signal)
    if (code === 220) return ok('mail', `${host} greets`)
    return fail('mail', `${host} greets with ${code}`, 'Ask whoever runs it whether you may send from here.')
  } catch (error) {
    return fail('mail', `${host}: ${rootCause(error)}`, 'Correct SMTP_URL, or open the way to its port.')
  }
}

/** What production does without: each has a consequence that somebody should have wanted. */
function absentOf({ alpaca, sumsub, screening, swapAggregators, smtp, twilio }: Config): Finding[] {
  const absent = (isThere: boolean, check: string, detail: string, variable: string) =>
    isThere ? [] : [warn(check, `none: ${detail}`, `Set ${variable} if that is not what you want.`)]
  return [
    ...absent(screening !== null, 'screening', 'nothing is sent to any address', 'SCREENING_URL'),
    ...absent(sumsub !== null, 'identity review', 'nobody is verified', 'SUMSUB_APP_TOKEN'),
    ...absent(alpaca !== null, 'broker', 'every order is refused', 'ALPACA_API_KEY'),
    ...absent(swapAggregators !== null, 'swaps', 'there are no quotes', 'SWAP_AGGREGATORS'),
    ...absent(smtp !== null || twilio !== null, 'codes', 'nobody gets any by mail or SMS', 'SMTP_URL'),
  ]
}

/** Past this signatures of agents are refused. @see https://www.rfc-editor.org/rfc/rfc9421#section-3.2.1 */
const MOST_SKEW_MS = 30_000

/** By how much our clock differs from the others that were seen. */
export function checkClock(moments: readonly Moment[]): Finding {
  const [worst] = moments
    .map(({ of, theirs, ours }) => ({ of, ms: ours.getTime() - theirs.getTime() }))
    .sort((left, right) => Math.abs(right.ms) - Math.abs(left.ms))
  if (worst === undefined) return ok('clock', 'there is no other clock to compare with')
  const seconds = Math.round(Math.abs(worst.ms) / 1_000)
  const told = `${seconds} s ${worst.ms >= 0 ? 'ahead of' : 'behind'} ${worst.of}`
  const hint = 'Set the clock by NTP: from 30 s on signatures and one-time codes are refused.'
  if (Math.abs(worst.ms) > MOST_SKEW_MS) return fail('clock', told, hint)
  return seconds > 5
    ? warn('clock', told, hint)
    : ok('clock', `within ${Math.max(seconds, 1)} s of ${worst.of}`)
}
