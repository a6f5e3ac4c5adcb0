/** The banking provider's webhook: deposits to virtual accounts and payout updates. */
import { applyBankingEvent } from '../../banking/apply-event.ts'
import type { Services } from '../../kernel/context.ts'
import type { Mint } from '../../providers/chain.ts'
import type { Connection } from '../../storage/database.ts'
import { mintOwed, recordOwedMints } from '../../wallets/reconcile/owed-mints.ts'
import { type HttpContext, jsonBodyOf } from '../request.ts'

/** Handles POST /api/webhooks/bridge. */
export function bankingWebhook(services: Services): (c: HttpContext) => Promise<Response> {
  const { bankingProvider, log, newId } = services
  return async (c) => {
    const now = c.get('now')
    bankingProvider.verify({ header: (name) => c.req.header(name), body: c.get('body') }, now)
    const event = bankingProvider.read(jsonBodyOf(c))
    const parts = {
      ...services,
      isBookedHere: !bankingProvider.deliversOnChain,
      oweMint: (database: Connection, accountId: string, mint: Mint) =>
        recordOwedMints({ database, newId }, { accountId, mints: [mint], at: now }),
    }
    const owed = await applyBankingEvent(parts, event, now)
    // The deposit is booked even if minting fails; a job retries the mint.
    if (owed !== null)
      await mintOwed(services, owed).catch((err: unknown) =>
        log.warn({ err, eventId: event.eventId }, 'minting a deposit failed; a job will retry'),
      )
    return c.json({ received: true, eventId: event.eventId })
  }
}
