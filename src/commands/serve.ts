/** `bursar serve`: the gateway as a process. It listens, joins everything, says where it is, and drains when it is told to end. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { createSealRound } from '../audit/seal-decisions.ts'
import { systemClock } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import { createLog, terminalDestination } from '../base/log.ts'
import { type Config, readConfig } from '../config/read-config.ts'
import { createApp, type MountedRequest } from '../http/app.ts'
import { createSandboxProvider } from '../http/sandbox-identity-provider/sandbox-provider.ts'
import { createGatewayServer, unreadableRequest } from '../http/server.ts'
import { redirectUriOf } from '../identity/oauth/federation.ts'
import { findKey } from '../identity/store.ts'
import { payDividends } from '../investing/dividends.ts'
import { collectDebts } from '../jobs/collect-debts.ts'
import { every } from '../jobs/every.ts'
import { finishOrders } from '../jobs/finish-orders.ts'
import { notifyInstitutions } from '../jobs/notify-institutions.ts'
import { createReconcile } from '../jobs/reconcile.ts'
import { repayMints } from '../jobs/repay-mints.ts'
import { settleCards } from '../jobs/settle-cards.ts'
import { settleOrders } from '../jobs/settle-orders.ts'
import { settlePayments } from '../jobs/settle-payments.ts'
import { settlePending } from '../jobs/settle-pending.ts'
import { settleRelays } from '../jobs/settle-relays.ts'
import { settleReviews } from '../jobs/settle-reviews.ts'
import { sweep } from '../jobs/sweep.ts'
import { createWatchChain } from '../jobs/watch-chain.ts'
import { type CatalogueEntry, catalogueOf } from '../kernel/catalogue.ts'
import type { Services } from '../kernel/context.ts'
import { finishApprovals } from '../kernel/run-approved.ts'
import type { Tool } from '../kernel/tool.ts'
import { createRuntime, type Runtime } from '../runtime.ts'
import { SANDBOX_OPENID_PATH, sandboxClientId, sandboxOpenIdSecrets } from '../sandbox.ts'
import { settingsErrors } from '../settings.ts'
import { createPaywall, type Paywall } from '../x402/paywall.ts'
import { banner } from './banner.ts'
import { closed, drain, endSignal } from './drain.ts'

/** What is served beside REST, and which tools: joined in main.ts. */
export interface ServedSurfaces {
  readonly tools: readonly Tool[]
  readonly mcpHandler: (
    catalogue: readonly CatalogueEntry[],
    services: Services,
    options: { seller: Pick<Paywall, 'sell' | 'recall'>; ending: AbortSignal },
  ) => (mounted: MountedRequest) => Promise<Response>
}

/** Serves until SIGTERM or SIGINT. @throws Error whose message says what to do. */
export async function serve(
  env: Readonly<Record<string, string | undefined>>,
  surfaces: ServedSurfaces,
): Promise<number> {
  const config = readConfig(env, settingsErrors)
  const log = createLog(
    config.logLevel,
    process.stderr.isTTY ? await terminalDestination({ isColoured: env.NO_COLOR === undefined }) : undefined,
  )
  const server = createGatewayServer(newRequestId, { idleMs: config.keepAliveSeconds * 1000 })
  const origin = config.publicOrigin ?? (await listen(server, config))
  server.on('request', notReady)
  // Until all is up a signal simply ends the process, and with it whatever it waits for.
  const runtime = await createRuntime(config, {
    origin,
    ownOrigin: () => ownOrigin(server, config),
    tools: surfaces.tools,
    log,
  }).catch((error: unknown) => {
    server.close()
    throw error
  })
  let isDraining = false
  const gateway = await openServing(runtime, {
    server,
    config,
    surfaces,
    isDraining: () => isDraining,
  }).catch(async (error: unknown) => {
    server.close()
    await runtime.close()
    throw error
  })
  server.off('request', notReady).on('request', gateway.listener)
  const ended = endSignal()
  process.stdout.write(
    banner(runtime.services, { isColoured: process.stdout.isTTY && env.NO_COLOR === undefined }),
  )
  log.info({ origin, mode: config.mode, signal: await ended }, 'draining')
  isDraining = true
  gateway.endStreams()
  const jobsEnded = gateway.stopJobs()
  await drain(server)
  await closed(async () => {
    await jobsEnded
    await gateway.close()
    await runtime.close()
  }, log)
  return 0
}

/** The gateway on a server that listens. */
async function openServing(
  runtime: Runtime,
  {
    server,
    config,
    surfaces,
    isDraining,
  }: { server: Server; config: Config; surfaces: ServedSurfaces; isDraining: () => boolean },
) {
  if (!server.listening) await listen(server, config)
  return openGateway(runtime, config, { ...surfaces, isDraining })
}

/** The transports and jobs over a runtime. */
async function openGateway(
  { services, setClock }: Runtime,
  config: Config,
  { tools, mcpHandler, isDraining }: ServedSurfaces & { isDraining: () => boolean },
) {
  const catalogue = catalogueOf(tools, services.settings)
  const ending = new AbortController()
  const paywall = await openFxPaywall(services, config)
  const app = createApp({
    catalogue,
    services,
    isDraining,
    seller: paywall,
    mounts: new Map([['/mcp', mcpHandler(catalogue, services, { seller: paywall, ending: ending.signal })]]),
    below:
      config.mode === 'sandbox'
        ? new Map([[SANDBOX_OPENID_PATH, sandboxProvider(config, services)]])
        : new Map(),
  })
  const { log } = services
  const seal = createSealRound(services)
  const jobs = [
    every(1_000, { name: 'settle-pending', round: (signal) => settlePending(services, signal), log }),
    every(1_000, { name: 'settle-payments', round: (signal) => settlePayments(services, signal), log }),
    every(1_000, { name: 'settle-relays', round: (signal) => settleRelays(services, signal), log }),
    every(1_000, { name: 'settle-orders', round: (signal) => settleOrders(services, signal), log }),
    every(config.mode === 'sandbox' ? 5_000 : 60_000, {
      name: 'pay-dividends',
      round: () => payDividends(services),
      log,
    }),
    every(1_000, { name: 'settle-cards', round: (signal) => settleCards(services, signal), log }),
    every(1_000, { name: 'collect-debts', round: (signal) => collectDebts(services, signal), log }),
    every(2_000, { name: 'finish-orders', round: (signal) => finishOrders(services, signal), log }),
    ...(config.mode === 'sandbox'
      ? [every(2_000, { name: 'repay-mints', round: (signal) => repayMints(services, signal), log })]
      : []),
    every(500, { name: 'seal-decisions', round: async (signal) => void (await seal(signal)), log }),
    every(2_000, {
      name: 'finish-approvals',
      round: (signal) => finishApprovals(services, findKey, signal),
      log,
    }),
    every(1_000, { name: 'watch-chain', round: createWatchChain(services), log }),
    every(5_000, { name: 'reconcile', round: createReconcile(services), log }),
    every(2_000, { name: 'settle-reviews', round: (signal) => settleReviews(services, signal), log }),
    every(1_000, { name: 'tell-institutions', round: (signal) => notifyInstitutions(services, signal), log }),
    every(60_000, { name: 'sweep', round: () => sweep(services), log }),
    every(30_000, { name: 'set-clock', round: setClock, log }),
  ]
  return {
    listener: getRequestListener(app.fetch, { errorHandler: unreadableRequest(newRequestId) }),
    /** Ends what would stay open for as long as its client likes. */
    endStreams: () => ending.abort(),
    stopJobs: async () => void (await Promise.all(jobs.map((job) => job.stop()))),
    close: () => paywall.close(),
  }
}

/** Where strangers buy FX quotes. */
function openFxPaywall(
  { chain, database, settings, clock, log, metrics, tracing }: Services,
  { x402 }: Config,
): Promise<Paywall> {
  return createPaywall({
    operation: 'x402.fx',
    path: '/api/x402/fx',
    pollPath: '/api/x402/payments/{id}',
    description: 'FX quote',
    example: { from: 'USD', to: 'EUR', amount: '100' },
    chain,
    database,
    dataKey: settings.dataKey,
    payTo: settings.x402PayTo,
    price: settings.fxPrice,
    origin: settings.origin,
    facilitatorUrl: x402.facilitatorUrl,
    clock,
    newId,
    log,
    metrics,
    tracing,
  })
}

/** Signs people in for every provider that has no issuer of its own. */
function sandboxProvider({ identityProviders }: Config, services: Services) {
  const { settings, database } = services
  return createSandboxProvider({
    ...services,
    issuer: new URL(`${settings.origin}${SANDBOX_OPENID_PATH}`),
    clients: identityProviders
      .filter(({ issuer }) => issuer === null)
      .map(({ name }) => ({ clientId: sandboxClientId(name), redirectUri: redirectUriOf(settings, name) })),
    secrets: () => sandboxOpenIdSecrets(database),
  })
}

/** @returns the origin that it listens on. @throws Error that says what to do where the port is taken. */
function listen(server: Server, { host, port }: Config): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new Error(`Port ${port} on ${host} is taken. Set PORT to another one.`)
          : new Error(`HOST, PORT: ${error.message}`),
      )
    })
    server.listen(port, host, () => resolve(ownOrigin(server, { host, port })))
  })
}

/** Where a server that listens is reached from this machine, as clients write it: without the port where it is 80. */
function ownOrigin(server: Server, { host, port }: Pick<Config, 'host' | 'port'>): string {
  const address = server.address()
  const bound = isAddressInfo(address) ? address.port : port
  return new URL(`http://${nameOf(host)}:${bound}`).origin
}

/** How clients on this machine name a host that is listened on: every address is none to connect to. */
function nameOf(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

function isAddressInfo(address: string | AddressInfo | null): address is AddressInfo {
  return typeof address === 'object' && address !== null
}

const newRequestId = () => newId('req', systemClock())

/** What a request is told that comes before everything is up. */
function notReady({ url = '/' }: IncomingMessage, response: ServerResponse): void {
  const requestId = newRequestId()
  const problem = {
    type: '/errors/provider_unavailable',
    title: 'Starting',
    status: 503,
    detail: 'The gateway is starting; nothing was done.',
    instance: url.replace(/\?.*$/s, ''),
    code: 'provider_unavailable',
    requestId,
    retryAfter: 1,
    hint: 'Send the same request again in a second.',
  }
  const headers = {
    'content-type': 'application/problem+json',
    'retry-after': '1',
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  }
  response.writeHead(503, headers).end(JSON.stringify(problem))
}
