/** The card processor's webhook: real-time authorization requests and transaction updates. */

import type { Services } from '../../../kernel/context.ts'
import { parsePolicy } from '../../../kernel/gates/policy.ts'
import { applyTransaction } from '../../../rails/cards/apply-transaction.ts'
import { authorizeCard, createKnownCards } from '../../../rails/cards/authorize.ts'
import { cardAuthorization } from '../../../rails/cards/card-authorization.ts'
import { applyDispute } from '../../../rails/cards/disputes.ts'
import { storeOutOfOrderMessage } from '../../../rails/cards/out-of-order-messages.ts'
import { type HttpContext, parseJsonBody } from '../request.ts'
import { recordWebhook } from './note.ts'

/** Handles POST /api/webhooks/lithic. */
export function cardWebhook(services: Services): (c: HttpContext) => Promise<Response> {
  const { cardProcessor, database, metrics } = services
  const authorizing = cardAuthorization(services, parsePolicy, createKnownCards())
  return async (c) => {
    const now = c.get('now')
    const header = (name: string) => c.req.header(name)
    const webhookId = cardProcessor.verify({ header, body: c.get('body') }, now)
    const body = parseJsonBody(c)
    const message = cardProcessor.read(body)
    if (message.kind === 'authorization') {
      const answer = await authorizeCard(authorizing, message, { webhookId, now })
      const isApproved = answer.reason === 'approved'
      metrics.decision({
        path: 'card',
        verdict: isApproved ? 'allow' : 'deny',
        rules: isApproved ? [] : [answer.reason],
      })
      return c.json(cardProcessor.answer(answer))
    }
    if (message.kind === 'transaction') {
      const outcome = await applyTransaction(services, message, { isForcePosted: false })
      if (outcome === 'early')
        await storeOutOfOrderMessage(database, { webhookId, token: message.token, message: body, at: now })
      if (outcome === 'unknown')
        await recordWebhook(database, {
          provider: 'lithic',
          id: webhookId,
          type: 'card_transaction.updated',
          at: now,
        })
    } else if (message.kind === 'dispute') {
      await applyDispute(services, message)
      await recordWebhook(database, { provider: 'lithic', id: webhookId, type: 'dispute.updated', at: now })
    } else await recordWebhook(database, { provider: 'lithic', id: webhookId, type: message.type, at: now })
    return c.json({ received: true, eventId: webhookId })
  }
}
