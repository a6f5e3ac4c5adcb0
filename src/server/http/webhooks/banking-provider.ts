/** The banking provider's webhook: deposits to virtual accounts and payout updates. */

import type { Services } from '../../../kernel/context.ts'
import { applyBankingEvent } from '../../../rails/banking/apply-event.ts'
import { noticeBankCustomer } from '../../../rails/banking/bank-customer.ts'
import { mintOwed, recordMint } from '../../../rails/wallets/reconcile/owed-mints.ts'
import { type HttpContext, parseJsonBody } from '../request.ts'

/** Handles POST /api/webhooks/bridge. */
export function bankingWebhook(services: Services): (c: HttpContext) => Promise<Response> {
  const { bankingProvider, log } = services
  return async (c) => {
    const now = c.get('now')
    bankingProvider.verify({ header: (name) => c.req.header(name), body: c.get('body') }, now)
    const event = bankingProvider.read(parseJsonBody(c))
    if (event.kind === 'customer') await noticeBankCustomer(services, { ...event, at: now })
    const parts = {
      ...services,
      isBookedHere: !bankingProvider.deliversOnChain,
      oweMint: recordMint(services),
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
