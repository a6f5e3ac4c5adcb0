/** The banking provider's webhook: what came in through virtual accounts, and what became of payouts. */
import { applyBankingEvent } from '../../banking/apply-event.ts'
import type { Services } from '../../kernel/context.ts'
import type { Mint } from '../../providers/chain.ts'
import type { Connection } from '../../storage/database.ts'
import { oweMints, payMints } from '../../wallets/reconcile/owed-mints.ts'
import { type HttpContext, jsonBodyOf } from '../request.ts'

/** The handler of POST /api/webhooks/bridge. */
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
        oweMints({ database, newId }, { accountId, mints: [mint], at: now }),
    }
    const owed = await applyBankingEvent(parts, event, now)
    // The deposit is ours now, whatever the chain does: what it does not take, a job makes up for.
    if (owed !== null)
      await payMints(services, owed).catch((err: unknown) =>
        log.warn({ err, eventId: event.eventId }, 'a deposit is not on the chain yet'),
      )
    return c.json({ received: true, eventId: event.eventId })
  }
}
