/** Delivers events to webhook endpoints. Each endpoint has a worker of its own, so that none waits for another. */

import type { Services } from '../../kernel/context.ts'
import { type ClaimedEndpoint, claimEndpoints, deliverTo } from '../../records/events/webhooks/deliver.ts'
import type { ShouldClaim } from './find-work.ts'

/** Endpoints that one gateway delivers to at once. */
const MAX_WORKERS = 256

export function createDeliverWebhooks(
  services: Services,
  shouldClaim: ShouldClaim,
): (signal: AbortSignal) => Promise<number> {
  const parts = { ...services, fetch: services.fetchPublic }
  const { log } = services
  let workers = 0

  async function work(endpoint: ClaimedEndpoint, signal: AbortSignal): Promise<void> {
    workers += 1
    try {
      await deliverTo(parts, endpoint, signal)
    } catch (err) {
      // The claim ends by itself, and another worker goes on.
      if (!signal.aborted) log.error({ err, endpointId: endpoint.id }, 'deliveries to an endpoint failed')
    } finally {
      workers -= 1
    }
  }

  return async (signal) => {
    if (workers >= MAX_WORKERS || !(await shouldClaim())) return workers
    const claimed = await claimEndpoints(parts, MAX_WORKERS - workers)
    for (const endpoint of claimed) void work(endpoint, signal)
    return workers
  }
}
