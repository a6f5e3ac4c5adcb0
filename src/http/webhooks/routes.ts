/**
 * Webhooks: what providers tell us. Each is known by its signature alone; no caller's limit counts them. What a webhook says
 * is done before it is answered: an answer is the provider's proof that we have it.
 */
import type { Hono } from 'hono'
import type { Services } from '../../kernel/context.ts'
import type { Env } from '../request.ts'
import { bankingWebhook } from './banking-provider.ts'
import { cardWebhook } from './card-processor.ts'
import { identityWebhook } from './identity-review.ts'

/** Everything below this path is a provider's. */
export const WEBHOOKS = '/api/webhooks/'

/** Adds the webhooks to the app. */
export function routeWebhooks(app: Hono<Env>, services: Services): void {
  app.post(`${WEBHOOKS}lithic`, cardWebhook(services))
  app.post(`${WEBHOOKS}bridge`, bankingWebhook(services))
  app.post(`${WEBHOOKS}sumsub`, identityWebhook(services))
}
