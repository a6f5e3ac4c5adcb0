/** `bursar serve`: the gateway process. Listens, assembles all parts, prints the banner, and drains on shutdown. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { systemClock } from '../core/base/clock.ts'
import { newId } from '../core/base/ids.ts'
import { createLog, terminalDestination } from '../core/base/log.ts'
import { type Config, readConfig, unknownVariables } from '../core/config/read-config.ts'
import { findNamedFounder } from '../people/identity/accounts.ts'
import { createRuntime, type Runtime } from '../runtime.ts'
import { listen, ownOrigin } from '../server/http/listen.ts'
import { createGatewayServer, unreadableRequest } from '../server/http/server.ts'
import { answerStarting } from '../server/http/starting.ts'
import { settingsErrors } from '../settings.ts'
import { findAbsentParts } from './absent-parts.ts'
import { banner } from './banner.ts'
import { closeWithTimeout, drain, endSignal } from './drain.ts'
import { openGateway, type ServedSurfaces } from './open-gateway.ts'

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
  const gateway = await openGateway(runtime, config, { ...surfaces, isDraining })
  const listener = getRequestListener(gateway.fetch, { errorHandler: unreadableRequest(newRequestId) })
  return { ...gateway, listener }
}

const newRequestId = () => newId('req', systemClock())

const notReady = (request: IncomingMessage, response: ServerResponse) =>
  answerStarting(request, response, newRequestId())
