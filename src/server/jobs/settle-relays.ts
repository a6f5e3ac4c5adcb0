/** Finishes relays that a crash, a lost connection or a slow chain left open. Checks the chain before resending. */
import type { RelayDependencies } from '../../rails/wallets/relays/relay-outcome.ts'
import { resumeRelay } from '../../rails/wallets/relays/relay-payment.ts'
import { claimRelay, openRelays } from '../../rails/wallets/relays/relay-store.ts'

/** A more recently updated relay may still be handled by its request. */
const QUIET_MS = 10_000
const BATCH = 100

/** Runs one round. @param signal stops the round early. */
export async function settleRelays(relaying: RelayDependencies, signal: AbortSignal): Promise<number> {
  const { database, clock, log } = relaying
  const before = new Date(clock().getTime() - QUIET_MS)
  const relays = await openRelays(relaying, { before, limit: BATCH })
  for (const relay of relays) {
    if (signal.aborted) break
    if (!(await claimRelay(database, relay.id, before, clock()))) continue
    await resumeRelay(relaying, relay).catch((err: unknown) =>
      log.error({ err, relayId: relay.id }, 'finishing a relay failed'),
    )
  }
  return relays.length
}
