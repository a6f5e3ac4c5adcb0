/** Doctor checks of dependencies: database, rate limits, chain, providers and clocks. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../core/base/clock.ts'
import { splitHosts } from '../core/base/host-urls.ts'
import { silentLog } from '../core/base/log.ts'
import { listRedisHosts } from '../core/base/redis-url.ts'
import type { ConfiguredChain } from '../core/config/chains.ts'
import type { Config } from '../core/config/read-config.ts'
import { rootCause } from '../core/failures/root-cause.ts'
import { chainFacts } from '../core/money/chains.ts'
import type { ChainKey, Keys } from '../providers/keys/port.ts'
import { countStrays } from '../records/decisions/archive-store.ts'
import { deploymentFaults } from '../records/decisions/deployment.ts'
import { loadChainInspection, loadRedisRateLimiter, openDatabase, readChainOwners } from '../runtime.ts'
import { findAbsentParts } from './absent-parts.ts'
import { readDataKeyBy } from './audit-database.ts'
import { type Finding, fail, type Moment, ok, probeMail, probeWeb, warn } from './doctor-probes.ts'
import { checkVendor, vendorReads } from './doctor-vendors.ts'

/** @property note records another clock's time. */
export interface CheckContext {
  readonly config: Config
  readonly keys: Keys
  readonly signal: AbortSignal
  readonly note: (of: string, theirs: Date | null) => void
}

const MIN_POSTGRES_VERSION = 15
const SERVER = 'Start the server in DATABASE_URL, or correct its host, port, user, password or database.'

/**
 * Checks that the database responds, is recent enough and has every migration. A database that a gateway has open is
 * not touched.
 */
export async function checkDatabase({ config, keys, note }: CheckContext): Promise<Finding> {
  const { databaseUrl, dataDirectory, mode } = config
  if (databaseUrl === null && dataDirectory === 'memory') return ok('database', 'embedded, in memory only')
  if (databaseUrl === null && !existsSync(join(dataDirectory, 'cluster')))
    return ok('database', `embedded; the first start creates it in ${dataDirectory}`)
  try {
    const database = await openDatabase(config, silentLog)
    try {
      const [row] = await database.call<{ version: number; now: Date; limit: string }>(
        {
          name: 'doctor',
          text: "select current_setting('server_version_num')::int as version, clock_timestamp() as now, current_setting('statement_timeout') as limit",
        },
        [],
      )
      if (databaseUrl !== null) note('the database', row?.now ?? null)
      const version = Math.floor((row?.version ?? 0) / 10_000)
      const name =
        databaseUrl === null
          ? `embedded, in ${dataDirectory}`
          : `PostgreSQL ${version} at ${splitHosts(databaseUrl)
              .map((one) => new URL(one).host)
              .join(', ')}`
      if (config.databasePoolerUrl !== null && row?.limit === '0')
        return warn(
          'database',
          `${name}, through a pooler, without a limit for statements`,
          "The pooler cannot set it for a session: alter role … set statement_timeout = '5s', and lock_timeout = '4s'.",
        )
      if (version < MIN_POSTGRES_VERSION)
        return fail('database', name, `Use PostgreSQL ${MIN_POSTGRES_VERSION} or newer.`)
      const pending = await database.pendingMigrations()
      if (pending.length === 0) {
        const deployment = {
          dataKey: await readDataKeyBy(keys, database, config),
          chainId: null,
          chainOwners: await readChainOwners(config, keys),
        }
        const [fault] = await deploymentFaults(database, deployment)
        if (fault !== undefined) return fail('database', name, fault)
        const strays = await countStrays(database)
        if (strays > 0n)
          return warn(
            'database',
            `${name}, with ${strays} decisions of a month without a partition`,
            'Nothing is lost: a gateway makes partitions every hour, and "bursar archive" moves these. See its log for why it could not.',
          )
        return ok('database', `${name}, all migrations and functions are applied`)
      }
      const missing = `${name}, missing ${pending.length} migrations or functions`
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
        `embedded, in ${dataDirectory}; not checked, because the gateway with process id ${owner} has it open`,
      )
    return fail(
      'database',
      why,
      databaseUrl === null ? 'Set DATA_DIR to another directory, or restore this one.' : SERVER,
    )
  }
}

/** Checks that rate limits have a working shared store. */
export async function checkLimits({ config }: CheckContext): Promise<Finding> {
  const { redisUrl, databaseUrl, mode } = config
  if (redisUrl === null && databaseUrl !== null) return ok('limits', 'counted in the database')
  if (redisUrl === null)
    return mode === 'production'
      ? warn('limits', 'counted in this process only', 'Set REDIS_URL or DATABASE_URL.')
      : ok('limits', 'counted in this process only')
  const host = listRedisHosts(redisUrl)
  const rateLimiter = (await loadRedisRateLimiter()).createRedisRateLimiter(redisUrl)
  try {
    await rateLimiter.take('doctor:0', { count: 1_000_000, seconds: 1 }, systemClock())
    return ok('limits', `counted in Redis at ${host}`)
  } catch (error) {
    return fail(
      'limits',
      `Redis at ${host}: ${rootCause(error)}`,
      'Start it, or correct REDIS_URL. Money routes return 503 without it.',
    )
  } finally {
    await rateLimiter.close()
  }
}

/** Checks that each chain is reachable and correct, and that its sponsor has funds. */
export async function checkChains({ config, keys, signal, note }: CheckContext): Promise<Finding[]> {
  const [{ sponsorKey }] = config.chains
  const key = sponsorKey === null ? null : await keys.openChainKey('CHAIN_SPONSOR_KEY', sponsorKey)
  return Promise.all(
    config.chains.map(async (chain, at) => {
      const finding = await checkChain(chain, { sponsor: key?.address ?? null, signal, note })
      return at === 0 ? finding : { ...finding, name: `chain ${chain.name}` }
    }),
  )
}

/** Said of a chain on which payments by a scheme of x402 are neither made nor taken. */
const supportNotes = {
  supported: () => '',
  missing: (scheme: string) => `; ${scheme} is off: its contracts are not there`,
  unknown_code: (scheme: string) =>
    `; ${scheme} is off: X402_CODE_HASHES does not name the code of its contracts`,
} as const

async function checkChain(
  { kind, name, rpcUrl, rpcVariable, anvilBinary, x402Hashes }: ConfiguredChain,
  {
    sponsor,
    signal,
    note,
  }: Pick<CheckContext, 'signal' | 'note'> & { readonly sponsor: ChainKey['address'] | null },
): Promise<Finding> {
  const look = await loadChainInspection()
  if (kind === 'simulated') return ok('chain', 'simulated, in memory')
  if (kind === 'anvil') {
    try {
      const binary = look.locateAnvil(anvilBinary)
      if (existsSync(binary)) return ok('chain', 'a local chain, started with the gateway')
      return fail('chain', `${binary} does not exist`, 'Correct ANVIL_BIN.')
    } catch (error) {
      return fail('chain', 'anvil was not found', error instanceof Error ? error.message : String(error))
    }
  }
  const { host } = new URL(rpcUrl ?? '')
  const at = `${host}`
  try {
    const sight = await look.inspectChain({ name, url: rpcUrl ?? '', sponsor, x402Hashes }, signal)
    note(`the node at ${host}`, sight.date)
    if (sight.chainId !== sight.expectedChainId)
      return fail(
        'chain',
        `${at} is chain ${sight.chainId}`,
        `Set ${rpcVariable} to a node of chain ${sight.expectedChainId}.`,
      )
    if (sight.isDevelopment) return ok('chain', `${at}, a development node at block ${sight.blockNumber}`)
    if (!sight.hasEntryPoint)
      return fail(
        'chain',
        `${at} has no EntryPoint`,
        `ERC-4337 requires EntryPoint v0.7 on the chain: check ${rpcVariable}.`,
      )
    if (sight.sponsorBalance === null) return fail('chain', `${at}, no gas sponsor`, 'Set CHAIN_SPONSOR_KEY.')
    const notes = Object.entries(sight.support).map(([scheme, support]) => supportNotes[support](scheme))
    const ether = (Number(sight.sponsorBalance) / 1e18).toFixed(4)
    const detail = `${at}, block ${sight.blockNumber}, the sponsor has ${ether} ${chainFacts(name).gasSymbol}${notes.join('')}`
    if (sight.sponsorBalance === 0n)
      return fail('chain', detail, 'Fund the sponsor: transactions cannot be sent without gas.')
    return sight.sponsorBalance < 10n ** 16n
      ? warn('chain', detail, 'Fund the sponsor before it runs out.')
      : ok('chain', detail)
  } catch (error) {
    return fail('chain', `${at}: ${rootCause(error)}`, `Start the node, or correct ${rpcVariable}.`)
  }
}

/** Checks that the configured providers are reachable, and that vendors answer the credentials; one line each. */
export async function checkProviders({ config, signal, note }: CheckContext): Promise<Finding[]> {
  const { screening, smtp, mode } = config
  const web: readonly (readonly [name: string, url: string | null | undefined])[] = [
    ['rail controls', config.railControlsUrl],
    ['rates', config.fxRatesUrl],
    ['screening', screening?.apiKey === null ? screening.url : null],
    ['collector of traces', config.tracesTo],
    ...(config.swapAggregators ?? []).map(({ name, url }) => [`swaps by ${name}`, url] as const),
    ['attestations of burned USDC', config.cctpUrl],
    ...config.identityProviders.map(({ name, issuer }) => [`sign-in by ${name}`, issuer] as const),
  ]
  const configured = web.flatMap(([name, url]) => (url === null || url === undefined ? [] : [{ name, url }]))
  const probes = configured.map(async ({ name, url }) => {
    const { host } = new URL(url)
    try {
      const { date } = await probeWeb(url, signal)
      note(host, date)
      return ok(name, `${host} responds`)
    } catch (error) {
      return fail(
        name,
        `${host}: ${rootCause(error)}`,
        'Check its URL in the configuration, and the network path (DNS, proxy, firewall).',
      )
    }
  })
  const vendors = (await vendorReads(config)).map((read) => checkVendor(read, { signal, note }))
  const findings = await Promise.all([
    ...probes,
    ...vendors,
    ...(smtp === null ? [] : [checkMail(smtp.url, signal)]),
  ])
  if (mode === 'sandbox')
    return findings.length > 0 ? findings : [ok('providers', 'all simulated by the sandbox')]
  return [...findings, ...reportAbsent(config)]
}

async function checkMail(url: string, signal: AbortSignal): Promise<Finding> {
  const { host } = new URL(url)
  try {
    const code = await probeMail(url, signal)
    if (code === 220) return ok('mail', `${host} accepts connections`)
    return fail('mail', `${host} responds with ${code}`, 'Ask its operator whether this host may send mail.')
  } catch (error) {
    return fail('mail', `${host}: ${rootCause(error)}`, 'Correct SMTP_URL, or allow connections to its port.')
  }
}

/** Warns about providers that production runs without, with the consequence. */
function reportAbsent(config: Config): Finding[] {
  return findAbsentParts(config).map(({ part, consequence, variable }) =>
    warn(part, `none: ${consequence}`, `Set ${variable} if this is not intended.`),
  )
}

/** Agent signatures are rejected beyond this skew. @see https://www.rfc-editor.org/rfc/rfc9421#section-3.2.1 */
const MAX_SKEW_MS = 30_000

/** Reports the largest difference between this clock and the observed ones. */
export function checkClock(moments: readonly Moment[]): Finding {
  const [worst] = moments
    .map(({ of, theirs, ours }) => ({ of, ms: ours.getTime() - theirs.getTime() }))
    .sort((left, right) => Math.abs(right.ms) - Math.abs(left.ms))
  if (worst === undefined) return ok('clock', 'no other clock to compare with')
  const seconds = Math.round(Math.abs(worst.ms) / 1_000)
  const detail = `${seconds} s ${worst.ms >= 0 ? 'ahead of' : 'behind'} ${worst.of}`
  const hint = 'Synchronize the clock by NTP: beyond 30 s, signatures and one-time codes are rejected.'
  if (Math.abs(worst.ms) > MAX_SKEW_MS) return fail('clock', detail, hint)
  return seconds > 5
    ? warn('clock', detail, hint)
    : ok('clock', `within ${Math.max(seconds, 1)} s of ${worst.of}`)
}
