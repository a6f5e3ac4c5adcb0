/** Assembles a gateway over a runtime: routes, tools, MCP, the paywall and the background jobs. It listens nowhere by itself. */
import { newId } from '../core/base/ids.ts'
import type { Config } from '../core/config/read-config.ts'
import type { AuthenticatedRequest } from '../kernel/authenticated-request.ts'
import { buildCatalogue, type CatalogueEntry } from '../kernel/catalogue.ts'
import type { Services } from '../kernel/context.ts'
import type { Tool } from '../kernel/tool.ts'
import { buildRedirectUri } from '../people/identity/oauth/federation.ts'
import { meteredPrice } from '../rails/selling/payments/metered-price.ts'
import { createPaywall, type Paywall, type PaywallParts } from '../rails/selling/x402/paywall.ts'
import { createRequestSeller, type RequestSeller } from '../rails/selling/x402/request-sale.ts'
import type { Runtime } from '../runtime.ts'
import { SANDBOX_OPENID_PATH, sandboxClientId, sandboxOpenIdSecrets } from '../sandbox/sandbox.ts'
import { createApp } from '../server/http/app.ts'
import { createSandboxProvider } from '../server/http/sandbox-identity-provider/sandbox-provider.ts'
import { startJobs } from '../server/jobs/jobs.ts'
import { createPace } from '../server/jobs/pace.ts'

/** Tools and MCP transport, passed in by main.ts. */
export interface ServedSurfaces {
  readonly tools: readonly Tool[]
  readonly mcpHandler: (
    catalogue: readonly CatalogueEntry[],
    services: Services,
    options: { seller: Pick<Paywall, 'sell' | 'recall'>; ending: AbortSignal },
  ) => (mounted: AuthenticatedRequest) => Promise<Response>
}

/** A running gateway without a socket. @property endStreams ends long-lived streams. */
export interface OpenGateway {
  readonly fetch: (request: Request, env: object) => Response | Promise<Response>
  readonly endStreams: () => void
  readonly stopJobs: () => Promise<void>
  readonly close: () => Promise<void>
}

/** @param options `jobFactor` lengthens the pauses of all jobs, and `listen` replaces the private listener: for simulations. */
export async function openGateway(
  { services, openDoorbell, setClock }: Runtime,
  config: Config,
  {
    tools,
    mcpHandler,
    isDraining,
    jobFactor,
    listen,
  }: ServedSurfaces & {
    isDraining: () => boolean
    jobFactor?: number
    listen?: NonNullable<PaywallParts['listen']>
  },
): Promise<OpenGateway> {
  const catalogue = buildCatalogue(tools, services.settings)
  const ending = new AbortController()
  const paywall = await openFxPaywall(services, config, listen)
  const doorbell = await openDoorbell(() => pace.noteActivity())
  const pace = createPace({ announce: () => doorbell.ring() })
  const app = createApp({
    catalogue,
    services,
    isDraining,
    ending: ending.signal,
    onWrite: pace.noteWrite,
    seller: paywall,
    requestSeller: openRequestSeller(services, config, listen),
    mounts: new Map([['/mcp', mcpHandler(catalogue, services, { seller: paywall, ending: ending.signal })]]),
    isQuiet: config.mode === 'sandbox' && process.stderr.isTTY,
    below:
      config.mode === 'sandbox'
        ? new Map([[SANDBOX_OPENID_PATH, sandboxProvider(config, services)]])
        : new Map(),
  })
  const jobs = startJobs(services, pace, { setClock, factor: jobFactor })
  return {
    fetch: app.fetch,
    endStreams: () => ending.abort(),
    stopJobs: async () => void (await Promise.all(jobs.map((job) => job.stop()))),
    close: async () => {
      await doorbell.close()
      await paywall.close()
    },
  }
}

function openRequestSeller(
  services: Services,
  { x402 }: Config,
  listen: PaywallParts['listen'],
): RequestSeller {
  const { settings } = services
  return createRequestSeller({
    ...services,
    dataKey: settings.dataKey,
    origin: settings.origin,
    facilitatorUrl: x402.facilitatorUrl,
    facilitatorKey: x402.facilitatorKey,
    ...(listen === undefined ? {} : { listen }),
  })
}

function openFxPaywall(
  { chains, database, settings, clock, log, metrics, tracing }: Services,
  { x402 }: Config,
  listen: PaywallParts['listen'],
): Promise<Paywall> {
  return createPaywall({
    operation: 'x402.fx',
    path: '/api/x402/fx',
    pollPath: '/api/x402/payments/{id}',
    description: 'FX quote',
    example: { from: 'USD', to: 'EUR', amount: '100' },
    metered: meteredPrice,
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
    ...(listen === undefined ? {} : { listen }),
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
