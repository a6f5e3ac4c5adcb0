/**
 * The identity reviewer's webhook: signals a possible change. The result is fetched from the reviewer; the body is
 * untrusted.
 */
import { createHash } from 'node:crypto'
import type { Services } from '../../../kernel/context.ts'
import { followUp } from '../../../people/compliance/kyc.ts'
import { findApplicationBy } from '../../../people/compliance/kyc-store.ts'
import { type HttpContext, parseJsonBody } from '../request.ts'
import { isWebhookRecorded, recordWebhook } from './note.ts'

const PROVIDER = 'sumsub'

/** Handles POST /api/webhooks/sumsub. */
export function identityWebhook(services: Services): (c: HttpContext) => Promise<Response> {
  const { identityReview, database, settings } = services
  return async (c) => {
    const now = c.get('now')
    const body = c.get('body')
    identityReview.verify({ header: (name) => c.req.header(name), body })
    const { reference, type } = identityReview.readNotice(parseJsonBody(c))
    const id = createHash('sha256').update(body).digest('hex')
    if (!(await isWebhookRecorded(database, { provider: PROVIDER, id }))) {
      const keeping = { database, dataKey: settings.dataKey }
      const application = reference === null ? undefined : await findApplicationBy(keeping, { reference })
      if (application?.status === 'pending') await followUp(services, application, now)
      // Recorded only after processing, so that a redelivery after a failure is not treated as a duplicate.
      await recordWebhook(database, { provider: PROVIDER, id, type, at: now })
    }
    return c.json({ received: true, eventId: id })
  }
}
