/**
 * The runtime: configuration → database, chain and the other adapters. The only file that imports adapters. Everything
 * slow starts at once, and everything that was started is closed again, in reverse.
 */
import { privateKeyToAddress } from 'viem/accounts'
import { screenSandboxSuffix } from '../policies/aml/sandbox-suffix.ts'
import { screenAddress } from '../policies/aml/screen-address.ts'
import { worstOf } from '../policies/aml/screening.ts'
import { claimDeployment } from './audit/deployment.ts'
import { type Clock, systemClock } from './base/clock.ts'
import { newId } from './base/ids.ts'
import type { Log } from './base/log.ts'
import { naming, partOf, startTogether } from './base/start-together.ts'
import { VERSION } from './base/version.ts'
import type { Config } from './config/read-config.ts'
import { createJournal } from './journal/write.ts'
import type { Services } from './kernel/context.ts'
import { countRefusals, observed } from './kernel/observed.ts'
import { createRunApproved } from './kernel/run-approved.ts'
import type { Tool } from './kernel/tool.ts'
import { createConfiguredBanking } from './providers/banking/configured.ts'
import { createAlpacaBroker } from './providers/broker/alpaca.ts'
import { noBroker } from './providers/broker/none.ts'
import { createSandboxBroker } from './providers/broker/sandbox.ts'
import type { Broker } from './providers/broker.ts'
import { createConfiguredProcessor } from './providers/card-processor/configured.ts'
import type { Chain } from './providers/chain.ts'
import { createOpenIdProvider } from './providers/identity-provider/openid.ts'
import type { IdentityProvider } from './providers/identity-provider.ts'
import { createConfiguredReview } from './providers/identity-review/configured.ts'
import { createConfiguredMessages } from './providers/messages/configured.ts'
import { createPrometheusMetrics } from './providers/metrics/prometheus.ts'
import { cachedRailControls } from './providers/rail-controls/cached.ts'
import { createDatabaseRailControls } from './providers/rail-controls/database.ts'
import { createRemoteRailControls } from './providers/rail-controls/remote.ts'
import type { RailControls } from './providers/rail-controls.ts'
import { createDatabaseRateLimiter } from './providers/rate-limiter/database.ts'
import { createMemoryRateLimiter } from './providers/rate-limiter/memory.ts'
import { createRedisRateLimiter } from './providers/rate-limiter/redis.ts'
import type { RateLimiter } from './providers/rate-limiter.ts'
import { createEcbRates, ECB_URL } from './providers/rates/ecb.ts'
import { createSandboxRates } from './providers/rates/sandbox.ts'
import type { Rates } from './providers/rates.ts'
import { createSanctionsFile } from './providers/sanctions/file.ts'
import { createOfacExcerpt } from './providers/sanctions/ofac-excerpt.ts'
import type { Sanctions } from './providers/sanctions.ts'
import { createChainalysisScreening } from './providers/screening/chainalysis.ts'
import { joinScreening } from './providers/screening/joined.ts'
import { createListScreening } from './providers/screening/listed.ts'
import { noScreening } from './providers/screening/none.ts'
import { createSandboxScreening } from './providers/screening/sandbox.ts'
import type { AddressScreening } from './providers/screening.ts'
import { createConfiguredAggregators } from './providers/swap-aggregator/configured.ts'
import { noTracing, type Tracing } from './providers/tracing.ts'
import { createConfiguredTravelRule } from './providers/travel-rule-network/configured.ts'
import {
  prepareSandbox,
  SANDBOX_OPENID_PATH,
  sandboxClientId,
  sandboxClientSecret,
  sandboxWebhookSecrets,
} from './sandbox.ts'
import { rateLimitsOf, settingsOf } from './settings.ts'
import { authenticatedReserve, createVouch } from './spending/authenticate.ts'
import { observedReserve } from './spending/observed-reserve.ts'
import { createReserveQueue } from './spending/reserve-queue.ts'
import type { Database } from './storage/database.ts'
import { createSharedClock, type SharedClock } from './storage/shared-clock.ts'

/** The services, and how to let them go. */
export interface Runtime {
  readonly services: Services
  /** Sets its clock anew; to be called now and then. */
  setClock(): Promise<void>
  close(): Promise<void>
}

/** What adapters that go by time are given. */
interface Timed {
  readonly clock: Clock
  readonly log: Log
}

/** Opens the database of a configuration. @throws Error that says what to do where it cannot be had. */
export async function openDatabase(config: Config, log: Log): Promise<Database> {
  if (config.databaseUrl !== null)
    return (await import('./storage/postgres.ts')).openPostgres({ url: config.databaseUrl })
  return (await import('./storage/pglite.ts')).openPglite({
    directory: config.dataDirectory,
    now: systemClock,
    log,
  })
}

/** Joins everything. @param origin that clients use. @param ownOrigin where this process is reached once it listens. @throws Error that says what to do where a part cannot be had. */
export async function createRuntime(
  config: Config,
  {
    origin,
    ownOrigin,
    tools,
    log,
  }: { origin: string; ownOrigin: () => string; tools: readonly Tool[]; log: Log },
): Promise<Runtime> {
  const rateLimits = rateLimitsOf(config)
  let shared: SharedClock | undefined
  const clock: Clock = () => (shared?.clock ?? systemClock)()
  const [bareChain, database] = await startTogether(
    () => naming(partOf('CHAIN_RPC_URL', config.chain.rpcUrl) ?? 'CHAIN', startChain(config, { clock, log })),
    () => naming(partOf('DATABASE_URL', config.databaseUrl) ?? 'DATA_DIR', openMigrated(config, log)),
  )
  const tracing = await createConfiguredTracing(config)
  const metrics = createPrometheusMetrics({ version: VERSION })
  const watch = <Provider extends object>(name: string, provider: Provider) =>
    observed(provider, name, { metrics, tracing })
  const { rateLimiter, close: closeLimiter } = createRateLimiter(config, database)
  let unclaim = async () => {}
  const close = async () => {
    await tracing.close()
    await unclaim()
    await closeLimiter()
    await bareChain.close()
    await database.close()
  }
  try {
    const { chain: asked, databaseUrl: url } = config
    if (asked.kind !== 'rpc' && url !== null)
      unclaim = await (await import('./storage/own-chain.ts')).claimForOwnChain({ url, log })
    // The embedded database has this machine's clock.
    if (database.engine === 'postgres') shared = await createSharedClock(database, { own: systemClock, log })
    const settings = await settingsOf(config, origin, database)
    const { dataKey } = settings
    const chainOwner = chainOwnerOf(config)
    await claimDeployment(database, { dataKey, chainId: bareChain.id, chainOwner }, clock())
    const authenticating = { dataKey, log }
    const broker = watch('broker', createBroker(config, database, { clock, log }))
    const chain = watch('chain', bareChain)
    const parts = { database, chain, broker, clock, newId, log, metrics, tracing }
    const sanctions = createSanctions(config, log)
    const travelRule = createConfiguredTravelRule(config, clock)
    const webhooks = config.mode === 'sandbox' ? await sandboxWebhookSecrets(database) : null
    const wired = { ...parts, ownOrigin, webhooks }
    const cardProcessor = watch('card_processor', createConfiguredProcessor(config, wired))
    const bankingProvider = watch('banking', createConfiguredBanking(config, wired))
    const journal = createJournal({ dataKey, newId })
    const services: Services = {
      ...parts,
      reserve: observedReserve(
        authenticatedReserve(createReserveQueue(database).reserve, { database, ...authenticating }),
        {
          metrics,
          tracing,
        },
      ),
      vouch: createVouch(authenticating),
      journal,
      settings: { ...settings, rateLimits },
      messages: watch('messages', createConfiguredMessages(config, parts)),
      identityProviders: new Map(
        [...(await createIdentityProviders(config, { origin, ownOrigin, database, log }))].map(
          ([name, provider]) => [name, watch('identity_provider', provider)],
        ),
      ),
      swapAggregators: createConfiguredAggregators(config, { clock, log }).map((one) =>
        watch(`swap_${one.tool}`, one),
      ),
      rates: watch('rates', createRates(config, log)),
      railControls: watch('rail_controls', createRailControls(config, database, clock)),
      sanctions,
      identityReview: watch('identity_review', createConfiguredReview(config, clock)),
      screening: watch('screening', createScreening(config, sanctions, log)),
      travelRuleNetwork: travelRule === null ? null : watch('travel_rule', travelRule),
      cardProcessor,
      bankingProvider,
      rateLimiter: countRefusals(watch('rate_limits', rateLimiter), metrics),
      sandbox:
        webhooks === null
          ? null
          : await prepareSandbox({ ...parts, journal, cardProcessor, bankingProvider, webhooks }),
      runApproved: createRunApproved((name) => tools.find((tool) => tool.name === name)),
    }
    return { services, setClock: async () => shared?.set(), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Address of the key that owns the wallets of a public chain; null where the sandbox's own key does. */
export function chainOwnerOf({ chain: { ownerKey, sponsorKey } }: Pick<Config, 'chain'>): string | null {
  const key = ownerKey ?? sponsorKey
  return key === null ? null : privateKeyToAddress(`0x${key.slice(2)}`)
}

/** Where a collector is configured, and loaded only then. */
async function createConfiguredTracing({ tracesTo }: Config): Promise<Tracing> {
  if (tracesTo === null) return noTracing
  return (await import('./providers/tracing/opentelemetry.ts')).createTracing({ version: VERSION })
}

async function openMigrated(config: Config, log: Log): Promise<Database> {
  const database = await openDatabase(config, log)
  try {
    if (config.mode === 'sandbox') await database.migrate()
    const pending = await database.pendingMigrations()
    if (pending.length > 0)
      throw new Error(
        `The database lacks ${pending.length} migrations or functions (${pending.join(', ')}). Run "bursar migrate".`,
      )
    return database
  } catch (error) {
    await database.close()
    throw error
  }
}

/** The parts of the chain's room that only look. */
export const loadChainInspection = () => import('./providers/chain/node/inspect.ts')

async function startChain({ chain }: Config, parts: Timed): Promise<Chain> {
  switch (chain.kind) {
    case 'anvil':
      return (await import('./providers/chain/node/anvil.ts')).startAnvilChain({
        ...parts,
        binary: chain.anvilBinary,
      })
    case 'rpc':
      return (await import('./providers/chain/rpc.ts')).connectRpcChain({
        ...parts,
        url: chain.rpcUrl ?? '',
        sponsorKey: chain.sponsorKey,
        ownerKey: chain.ownerKey,
      })
    case 'simulated':
      return (await import('./providers/chain/simulated/simulated.ts')).createSimulatedChain(parts)
  }
}

/** Who signs people in. Where the configuration names no issuer, the sandbox's own stands in; production always names one. */
async function createIdentityProviders(
  { identityProviders }: Config,
  {
    origin,
    ownOrigin,
    database,
    log,
  }: { origin: string; ownOrigin: () => string; database: Database; log: Log },
): Promise<ReadonlyMap<string, IdentityProvider>> {
  const clients = identityProviders.map(async ({ name, issuer, clientId, clientSecret, scope }) => ({
    name,
    issuer: issuer ?? `${origin}${SANDBOX_OPENID_PATH}`,
    clientId: clientId ?? sandboxClientId(name),
    clientSecret: clientSecret ?? (await sandboxClientSecret(database)),
    scope,
    ...(issuer === null ? { reachedAt: ownOrigin } : {}),
  }))
  return new Map(
    (await Promise.all(clients)).map((client) => [client.name, createOpenIdProvider(client, { log })]),
  )
}

/** Production never prices by a snapshot. */
function createRates({ mode, fxRatesUrl }: Config, log: Log): Rates {
  if (mode === 'sandbox' && fxRatesUrl === null) return createSandboxRates()
  return createEcbRates({ url: fxRatesUrl ?? ECB_URL, log })
}

/** The one that the configuration names; without one the sandbox has its own and production none. */
function createBroker(
  { alpaca, marketHours, mode }: Config,
  database: Database,
  { clock, log }: Timed,
): Broker {
  if (alpaca !== null) return createAlpacaBroker({ ...alpaca, clock, log })
  if (mode === 'production') return noBroker
  return createSandboxBroker({ database, clock, hours: marketHours })
}

function createRailControls(
  { railControlsUrl, mode }: Config,
  database: Database,
  clock: Clock,
): RailControls {
  const controls =
    railControlsUrl === null
      ? createDatabaseRailControls({ database, defaultEnabled: mode === 'sandbox' })
      : createRemoteRailControls({ url: railControlsUrl })
  return cachedRailControls({ controls, clock })
}

/** The list that the configuration names; ours where it names none. */
function createSanctions({ sanctionsList }: Config, log: Log): Sanctions {
  return sanctionsList === null ? createOfacExcerpt() : createSanctionsFile({ path: sanctionsList, log })
}

/** The list always counts. Production needs a provider beside it; the sandbox has its own addresses instead. */
function createScreening({ screening, mode }: Config, sanctions: Sanctions, log: Log): AddressScreening {
  const provider =
    screening === null
      ? mode === 'sandbox'
        ? []
        : [noScreening]
      : [createChainalysisScreening({ ...screening, log })]
  const suffixes = mode === 'sandbox' ? [createSandboxScreening(screenSandboxSuffix)] : []
  return joinScreening([createListScreening(sanctions, screenAddress), ...suffixes, ...provider], worstOf)
}

/** Limits in Redis alone, for whoever only asks whether it is there. */
export const countInRedis = createRedisRateLimiter

function createRateLimiter(
  config: Config,
  database: Database,
): { rateLimiter: RateLimiter; close: () => Promise<void> } {
  if (config.redisUrl !== null) {
    const rateLimiter = createRedisRateLimiter(config.redisUrl)
    return { rateLimiter, close: () => rateLimiter.close() }
  }
  const rateLimiter =
    config.databaseUrl === null ? createMemoryRateLimiter() : createDatabaseRateLimiter({ database })
  return { rateLimiter, close: async () => {} }
}
