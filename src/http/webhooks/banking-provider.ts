/** The banking provider's webhook: what came in through virtual accounts, and what became of payouts. */
import { applyBankingEvent } from '../../banking/apply-event.ts'
import type { Services } from '../../kernel/context.ts'
import { type HttpContext, jsonBodyOf } from '../request.ts'

/** The handler of POST /api/webhooks/bridge. */
export function bankingWebhook(services: Services): (c: HttpContext) => Promise<Response> {
  const { bankingProvider, chain } = services
  const parts = { ...services, isBookedHere: !bankingProvider.deliversOnChain }
  return async (c) => {
    const now = c.get('now')
    bankingProvider.verify({ header: (name) => c.req.header(name), body: c.get('body') }, now)
    const event = bankingProvider.read(jsonBodyOf(c))
    const mint = await applyBankingEvent(parts, event, now)
    if (mint !== null) await chain.mint([mint])
    return c.json({ received: true, eventId: event.eventId })
  }
}
