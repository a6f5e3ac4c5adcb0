/**
 * The runtime: configuration → database, chain and the other adapters. The only file that imports adapters, each through
 * its `configured.ts`. Slow dependencies start in parallel, and are closed in reverse order.
 */
import { screenSandboxSuffix } from '../policies/aml/sandbox-suffix.ts'
import { screenAddress } from '../policies/aml/screen-address.ts'
import { findWorst } from '../policies/aml/screening.ts'
import {
  authenticatedReserve,
  createDecisionAuthenticator,
  storeCodes,
  type UnstoredCodes,
} from './books/spending/authenticate.ts'
import { observedReserve } from './books/spending/observed-reserve.ts'
import { createReserveQueue } from './books/spending/reserve-queue.ts'
import { readChainOwners, type StartedChains, startConfiguredChains } from './chain/configured.ts'
import { type Clock, systemClock } from './core/base/clock.ts'
import { newId } from './core/base/ids.ts'
import type { Log } from './core/base/log.ts'
import { describeVariable, startTogether, withVariableName } from './core/base/start-together.ts'
import { timers } from './core/base/timers.ts'
import { VERSION } from './core/base/version.ts'
import type { Config } from './core/config/read-config.ts'
import { createAskOwner } from './kernel/ask-owner.ts'
import type { Services } from './kernel/context.ts'
import { createRunApproved } from './kernel/run-approved.ts'
import { createScheduling } from './kernel/scheduling.ts'
import type { Tool } from './kernel/tool.ts'
import { createConfiguredAttester } from './providers/attester/configured.ts'
import { createConfiguredBanking } from './providers/banking/configured.ts'
import { createConfiguredBroker } from './providers/broker/configured.ts'
import { createConfiguredProcessor } from './providers/card-processor/configured.ts'
import { createChains } from './providers/chain/chains.ts'
import type { Chain } from './providers/chain/port.ts'
import { createConfiguredChats } from './providers/chats/configured.ts'
import { createConfiguredDiscovery } from './providers/discovery/configured.ts'
import { createConfiguredIdentityProviders } from './providers/identity-provider/configured.ts'
import { createConfiguredReview } from './providers/identity-review/configured.ts'
import { createConfiguredKeys } from './providers/keys/configured.ts'
import { createConfiguredMessages } from './providers/messages/configured.ts'
import { createPrometheusMetrics } from './providers/metrics/prometheus.ts'
import { countRefusals, observeProvider } from './providers/observe-provider.ts'
import { createConfiguredPegs } from './providers/pegs/configured.ts'
import { fetchPublic, type PublicFetch } from './providers/public-fetch.ts'
import { createWebPush } from './providers/push/web-push.ts'
import { createConfiguredRailControls } from './providers/rail-controls/configured.ts'
import { createConfiguredRateLimiter } from './providers/rate-limiter/configured.ts'
import { createConfiguredRates } from './providers/rates/configured.ts'
import { withPegs } from './providers/rates/port.ts'
import { createConfiguredSanctions } from './providers/sanctions/configured.ts'
import { createConfiguredScreening } from './providers/screening/configured.ts'
import {
  createConfiguredAggregators,
  createConfiguredNamedRoutes,
} from './providers/swap-aggregator/configured.ts'
import { createConfiguredTracing } from './providers/tracing/configured.ts'
import { createConfiguredTravelRule } from './providers/travel-rule-network/configured.ts'
import { createWebBotAuth } from './providers/web-bot-auth.ts'
import { readOwnerBook } from './rails/wallets/owners/owner-store.ts'
import { hasSigner } from './rails/wallets/signing/signer-store.ts'
import { claimDeployment } from './records/decisions/deployment.ts'
import { publishReceiptKey } from './records/decisions/receipt-keys.ts'
import { createEventWatches } from './records/events/watch-events.ts'
import { createJournal } from './records/journal/write.ts'
import {
  prepareSandbox,
  SANDBOX_OPENID_PATH,
  sandboxClientId,
  sandboxClientSecret,
  sandboxWebhookSecrets,
} from './sandbox/sandbox.ts'
import { buildRateLimits, buildSettings, openRotatingKey } from './settings.ts'
import { createBusinessCalendar } from './storage/business-calendar.ts'
import { openConfiguredDoorbell, openMigrated } from './storage/configured.ts'
import type { Doorbell } from './storage/database.ts'
import { createSharedClock, type SharedClock } from './storage/shared-clock.ts'

export interface Runtime {
  readonly services: Services
  /** @param onRing called when another gateway announces activity. */
  openDoorbell(onRing: () => void): Promise<Doorbell>
  /** Synchronizes the shared clock; call it periodically. */
  setClock(): Promise<void>
  close(): Promise<void>
}

/** The parts of a gateway that reach outside its process. Simulations pass their own. */
export interface Outside {
  readonly openDatabase: typeof openMigrated
  readonly startChains: typeof startConfiguredChains
  readonly openDoorbell: typeof openConfiguredDoorbell
  readonly fetchPublic: PublicFetch
}

const configuredOutside: Outside = {
  openDatabase: openMigrated,
  startChains: startConfiguredChains,
  openDoorbell: openConfiguredDoorbell,
  fetchPublic,
}

/**
 * @param origin public origin. @param ownOrigin address of this process once it listens. @throws Error with a remedy
 * when a dependency cannot be started.
 */
export async function createRuntime(
  config: Config,
  {
    origin,
    ownOrigin,
    tools,
    log,
    outside: { openDatabase, startChains, openDoorbell, fetchPublic } = configuredOutside,
  }: { origin: string; ownOrigin: () => string; tools: readonly Tool[]; log: Log; outside?: Outside },
): Promise<Runtime> {
  const rateLimits = buildRateLimits(config)
  const keys = createConfiguredKeys(config)
  let shared: SharedClock | undefined
  const clock: Clock = () => (shared?.clock ?? systemClock)()
  const [{ started, late }, database] = await startTogether(
    () => startChains(config, { clock, log, keys }),
    () =>
      withVariableName(
        describeVariable('DATABASE_URL', config.databaseUrl) ?? 'DATA_DIR',
        openDatabase(config, log),
      ),
  )
  const tracing = await createConfiguredTracing(config)
  const metrics = createPrometheusMetrics({ version: VERSION })
  const watch = <Provider extends object>(name: string, provider: Provider) =>
    observeProvider(provider, name, { metrics, tracing })
  const { rateLimiter, close: closeLimiter } = await createConfiguredRateLimiter(config, database)
  let releaseChainClaim = async () => {}
  const closing = new AbortController()
  const joined: Chain[] = []
  const unstoredCodes: UnstoredCodes = new Map()
  const close = async () => {
    await tracing.close()
    await releaseChainClaim()
    await closeLimiter()
    closing.abort()
    await Promise.all([...started, ...joined].map((chain) => chain.close()))
    // Those of the last decisions, which no round of sealing stored.
    await storeCodes(database, unstoredCodes).catch((err: unknown) => {
      log.error({ err, decisions: unstoredCodes.size }, 'decisions stay without an authentication code')
    })
    await database.close()
    await keys.close()
  }
  try {
    const { databaseUrl: url } = config
    if (config.chains.some(({ kind }) => kind !== 'rpc') && url !== null)
      releaseChainClaim = await (await import('./storage/own-chain.ts')).claimForOwnChain({ url, log })
    // The embedded database uses this machine's clock.
    if (database.engine === 'postgres') shared = await createSharedClock(database, { own: systemClock, log })
    // Production has no calendar of its own, whatever its database says.
    const calendar = config.mode === 'sandbox' ? await createBusinessCalendar(database) : null
    const settings = await buildSettings(config, { origin, database, keys })
    const { dataKey } = settings
    const opened = { keys, dataKey }
    const webBotAuth = config.webBotAuth
      ? createWebBotAuth({
          keys: await openRotatingKey('WEB_BOT_AUTH_KEY', config, opened),
          ...{ origin, clock },
        })
      : null
    const pushKey = await openRotatingKey('PUSH_KEY', config, opened)
    const chainOwners = await readChainOwners(config, keys)
    // On local chains, whose key is the sandbox's own, there is nothing to replace.
    const isReplaceable = late.length > 0 || started.some(({ gatewayKeys }) => gatewayKeys !== null)
    const claimed = chainOwners !== null && !isReplaceable ? { ...chainOwners, previous: null } : chainOwners
    await claimDeployment(database, { dataKey, chainId: started[0].id, chainOwners: claimed }, clock())
    const ownerBook = chainOwners === null ? null : await readOwnerBook(database)
    if (ownerBook !== null) for (const one of started) one.adoptOwners(ownerBook)
    await publishReceiptKey(database, settings, clock())
    const authenticating = { dataKey, log, unstoredCodes }
    const broker = watch('broker', createConfiguredBroker(config, { database, clock, log }))
    const [first, ...others] = started
    const chain = watch('chain', first)
    const watchOther = (one: Chain) => watch(`chain_${one.name}`, one)
    const absent = late.map(({ name }) => name)
    const { chains, join } = createChains(
      [chain, ...others.map(watchOther)],
      absent,
      settings.mode === 'sandbox',
    )
    for (const one of late)
      void connectLate(one, { log, signal: closing.signal }).then((connected) => {
        if (connected === null) return
        if (ownerBook !== null) connected.adoptOwners(ownerBook)
        joined.push(connected)
        join(watchOther(connected))
      })
    const parts = { database, chain, chains, broker, clock, newId, log, metrics, tracing }
    const sanctions = createConfiguredSanctions(config, log)
    const travelRule = createConfiguredTravelRule(config, clock)
    const webhooks = config.mode === 'sandbox' ? await sandboxWebhookSecrets(database) : null
    const webhookParts = { ...parts, ownOrigin, dataKey, webhooks }
    const cardProcessor = watch('card_processor', createConfiguredProcessor(config, webhookParts))
    const pegs = createConfiguredPegs(config, { database, log })
    const rates = watch('rates', withPegs(createConfiguredRates(config, { database, log }), pegs))
    const bankingProvider = watch('banking', createConfiguredBanking(config, { ...webhookParts, rates }))
    const providers = await createConfiguredIdentityProviders(config, {
      sandbox: {
        issuer: `${origin}${SANDBOX_OPENID_PATH}`,
        reachedAt: ownOrigin,
        clientId: sandboxClientId,
        clientSecret: () => sandboxClientSecret(database),
      },
      log,
    })
    const attesting = createConfiguredAttester(config, { chains, database, clock })
    const attester = attesting === null ? null : watch('attester', attesting)
    const journal = createJournal({ dataKey, newId })
    const services: Services = {
      ...parts,
      reserve: observedReserve(
        authenticatedReserve(createReserveQueue(database), { database, ...authenticating }),
        {
          metrics,
          tracing,
        },
      ),
      vouch: createDecisionAuthenticator(authenticating),
      unstoredCodes,
      journal,
      settings: { ...settings, rateLimits },
      messages: watch('messages', createConfiguredMessages(config, parts)),
      identityProviders: new Map(
        [...providers].map(([name, provider]) => [name, watch('identity_provider', provider)]),
      ),
      swapAggregators: createConfiguredAggregators(config, { clock, log, attester }).map((one) =>
        watch(`swap_${one.tool}`, one),
      ),
      attester,
      namedRoutes: createConfiguredNamedRoutes(config),
      rates,
      railControls: watch('rail_controls', createConfiguredRailControls(config, { database, clock })),
      sanctions,
      identityReview: watch('identity_review', createConfiguredReview(config, clock)),
      screening: watch(
        'screening',
        createConfiguredScreening(config, { sanctions, rules: screeningRules, log }),
      ),
      travelRuleNetwork: travelRule === null ? null : watch('travel_rule', travelRule),
      cardProcessor,
      fetchPublic: webBotAuth?.wrap(fetchPublic) ?? fetchPublic,
      webBotAuth,
      discovery: createConfiguredDiscovery(config, { fetchPublic, log }),
      chats: watch('chats', createConfiguredChats(config, fetchPublic)),
      push: createWebPush({ keys: pushKey, origin, mode: config.mode, publicFetch: fetchPublic, log }),
      bankingProvider,
      eventWatches: createEventWatches(database),
      rateLimiter: countRefusals(watch('rate_limits', rateLimiter), metrics),
      sandbox:
        webhooks === null
          ? null
          : await prepareSandbox({ ...parts, journal, cardProcessor, bankingProvider, webhooks }),
      runApproved: createRunApproved((name) => tools.find((tool) => tool.name === name)),
      askOwner: createAskOwner(tools),
      scheduling: createScheduling(tools),
      onCalendar: calendar?.onCalendar ?? ((at) => at),
      advanceCalendar: calendar?.advance ?? null,
      hasSigner,
    }
    return {
      services,
      openDoorbell: (onRing) => {
        const ring = () => {
          onRing()
          // The ring may be about the calendar.
          calendar?.set().catch((err: unknown) => log.warn({ err }, 'reading the calendar failed'))
        }
        return openDoorbell(config, { onRing: ring, log })
      },
      setClock: async () => {
        await shared?.set()
        await calendar?.set()
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Pause between attempts to reach a node that did not answer at the start. */
const LATE_MS = 5_000

/** Connects to a chain as soon as its node answers. @returns null when the signal was aborted before. */
async function connectLate(
  { name, connect }: StartedChains['late'][number],
  { log, signal }: { log: Log; signal: AbortSignal },
): Promise<Chain | null> {
  log.error({ chain: name }, 'the node of a chain does not answer; the other chains work without it')
  for (;;) {
    await timers.sleep(LATE_MS, { isIdle: true, signal }).catch(() => undefined)
    if (signal.aborted) return null
    try {
      const chain = await connect()
      if (!signal.aborted) return chain
      await chain.close()
      return null
    } catch (err) {
      log.error({ err, chain: name }, 'a chain could not be connected and will be retried')
    }
  }
}

/** Parts of adapters for read-only commands; no other file may import an adapter. */
export { readChainOwners } from './chain/configured.ts'
export const loadChainInspection = () => import('./chain/node/inspect.ts')
export const loadChainContracts = () => import('./chain/node/contracts-on-node.ts')
export { sumsubHeaders } from './providers/identity-review/sumsub-signature.ts'
export { createConfiguredKeys } from './providers/keys/configured.ts'
export const loadRedisRateLimiter = () => import('./providers/rate-limiter/redis.ts')
export { createConfiguredSanctions } from './providers/sanctions/configured.ts'
export const loadBackup = () => import('./storage/backup.ts')
export { openDatabase } from './storage/configured.ts'

const screeningRules = { listed: screenAddress, sandboxSuffix: screenSandboxSuffix, worst: findWorst }
