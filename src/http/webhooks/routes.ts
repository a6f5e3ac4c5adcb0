/**
 * Provider webhooks, authenticated by signature and exempt from rate limits. A webhook is processed before the
 * response, because a 2xx response confirms delivery to the provider.
 */
import type { Hono } from 'hono'
import type { Services } from '../../kernel/context.ts'
import type { Env } from '../request.ts'
import { bankingWebhook } from './banking-provider.ts'
import { cardWebhook } from './card-processor.ts'
import { identityWebhook } from './identity-review.ts'

/** Path prefix of all provider webhooks. */
export const WEBHOOKS = '/api/webhooks/'

export function routeWebhooks(app: Hono<Env>, services: Services): void {
  app.post(`${WEBHOOKS}lithic`, cardWebhook(services))
  app.post(`${WEBHOOKS}bridge`, bankingWebhook(services))
  app.post(`${WEBHOOKS}sumsub`, identityWebhook(services))
}
