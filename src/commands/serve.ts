/** `bursar serve`: the gateway process. Listens, assembles all parts, prints the banner, and drains on shutdown. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { systemClock } from '../core/base/clock.ts'
import { newId } from '../core/base/ids.ts'
import { createLog, terminalDestination } from '../core/base/log.ts'
import { type Config, readConfig, unknownVariables } from '../core/config/read-config.ts'
import type { AuthenticatedRequest } from '../kernel/authenticated-request.ts'
import { buildCatalogue, type CatalogueEntry } from '../kernel/catalogue.ts'
import type { Services } from '../kernel/context.ts'
import type { Tool } from '../kernel/tool.ts'
import { findNamedFounder } from '../people/identity/accounts.ts'
import { buildRedirectUri } from '../people/identity/oauth/federation.ts'
import { createPaywall, type Paywall } from '../rails/selling/x402/paywall.ts'
import { createRuntime, type Runtime } from '../runtime.ts'
import { SANDBOX_OPENID_PATH, sandboxClientId, sandboxOpenIdSecrets } from '../sandbox/sandbox.ts'
import { createApp } from '../server/http/app.ts'
import { listen, ownOrigin } from '../server/http/listen.ts'
import { createSandboxProvider } from '../server/http/sandbox-identity-provider/sandbox-provider.ts'
import { createGatewayServer, unreadableRequest } from '../server/http/server.ts'
import { answerStarting } from '../server/http/starting.ts'
import { startJobs } from '../server/jobs/jobs.ts'
import { createPace } from '../server/jobs/pace.ts'
import { settingsErrors } from '../settings.ts'
import { findAbsentParts } from './absent-parts.ts'
import { banner } from './banner.ts'
import { closeWithTimeout, drain, endSignal } from './drain.ts'

/** Tools and MCP transport, passed in by main.ts. */
export interface ServedSurfaces {
  readonly tools: readonly Tool[]
  readonly mcpHandler: (
    catalogue: readonly CatalogueEntry[],
    services: Services,
    options: { seller: Pick<Paywall, 'sell' | 'recall'>; ending: AbortSignal },
  ) => (mounted: AuthenticatedRequest) => Promise<Response>
}

/** Runs until SIGTERM or SIGINT. @throws Error with a remedy. */
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
  // During startup, a signal ends the process immediately.
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
  for (const { name, nearest } of unknownVariables(env))
    log.warn(
      { variable: name, ...(nearest === null ? {} : { nearest }) },
      nearest === null
        ? `${name} is no setting and has no effect`
        : `${name} is no setting and has no effect; ${nearest} is one`,
    )
  const { database, settings } = runtime.services
  const isColoured = process.stdout.isTTY && env.NO_COLOR === undefined
  const hasAdmin =
    settings.founderAccount !== null || (await findNamedFounder(database, settings)) !== undefined
  process.stdout.write(banner(runtime.services, { isColoured, absent: findAbsentParts(config), hasAdmin }))
  log.info({ origin, mode: config.mode, signal: await ended }, 'draining')
  isDraining = true
  gateway.endStreams()
  const jobsEnded = gateway.stopJobs()
  await drain(server)
  await closeWithTimeout(async () => {
    await jobsEnded
    await gateway.close()
    await runtime.close()
  }, log)
  return 0
}

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

async function openGateway(
  { services, openDoorbell, setClock }: Runtime,
  config: Config,
  { tools, mcpHandler, isDraining }: ServedSurfaces & { isDraining: () => boolean },
) {
  const catalogue = buildCatalogue(tools, services.settings)
  const ending = new AbortController()
  const paywall = await openFxPaywall(services, config)
  const doorbell = await openDoorbell(() => pace.noteActivity())
  const pace = createPace({ announce: () => doorbell.ring() })
  const app = createApp({
    catalogue,
    services,
    isDraining,
    ending: ending.signal,
    onWrite: pace.noteWrite,
    seller: paywall,
    mounts: new Map([['/mcp', mcpHandler(catalogue, services, { seller: paywall, ending: ending.signal })]]),
    isQuiet: config.mode === 'sandbox' && process.stderr.isTTY,
    below:
      config.mode === 'sandbox'
        ? new Map([[SANDBOX_OPENID_PATH, sandboxProvider(config, services)]])
        : new Map(),
  })
  const jobs = startJobs(services, pace, setClock)
  return {
    listener: getRequestListener(app.fetch, { errorHandler: unreadableRequest(newRequestId) }),
    /** Ends long-lived streams. */
    endStreams: () => ending.abort(),
    stopJobs: async () => void (await Promise.all(jobs.map((job) => job.stop()))),
    close: async () => {
      await doorbell.close()
      await paywall.close()
    },
  }
}

function openFxPaywall(
  { chains, database, settings, clock, log, metrics, tracing }: Services,
  { x402 }: Config,
): Promise<Paywall> {
  return createPaywall({
    operation: 'x402.fx',
    path: '/api/x402/fx',
    pollPath: '/api/x402/payments/{id}',
    description: 'FX quote',
    example: { from: 'USD', to: 'EUR', amount: '100' },
    chains,
    database,
    dataKey: settings.dataKey,
    payTo: settings.x402PayTo,
    price: settings.fxPrice,
    origin: settings.origin,
    facilitatorUrl: x402.facilitatorUrl,
    facilitatorKey: x402.facilitatorKey,
    clock,
    newId,
    log,
    metrics,
    tracing,
  })
}

/** Serves the sandbox's identity provider for every provider without a configured issuer. */
function sandboxProvider({ identityProviders }: Config, services: Services) {
  const { settings, database } = services
  return createSandboxProvider({
    ...services,
    issuer: new URL(`${settings.origin}${SANDBOX_OPENID_PATH}`),
    clients: identityProviders
      .filter(({ issuer }) => issuer === null)
      .map(({ name }) => ({
        clientId: sandboxClientId(name),
        redirectUri: buildRedirectUri(settings, name),
      })),
    secrets: () => sandboxOpenIdSecrets(database),
  })
}

const newRequestId = () => newId('req', systemClock())

const notReady = (request: IncomingMessage, response: ServerResponse) =>
  answerStarting(request, response, newRequestId())
