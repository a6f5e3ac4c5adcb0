/**
 * Provider webhooks, authenticated by signature and exempt from rate limits. A request without a signature, or with a wrong one,
 * counts like any other of its address: the former before it is read, the latter once its signature was checked. A webhook
 * is processed before the response, because a 2xx response confirms delivery to the provider.
 */
import type { Hono } from 'hono'
import { Failure } from '../../../core/failures/failure.ts'
import type { Services } from '../../../kernel/context.ts'
import { limitAddress } from '../limits.ts'
import type { Env, HttpContext } from '../request.ts'
import { bankingWebhook } from './banking-provider.ts'
import { cardWebhook } from './card-processor.ts'
import { identityWebhook } from './identity-review.ts'

/** Path prefix of all provider webhooks. */
export const WEBHOOKS = '/api/webhooks/'

/** The header that bears each provider's signature. */
const signatureHeaders: Readonly<Record<string, string>> = {
  lithic: 'webhook-signature',
  bridge: 'x-webhook-signature',
  sumsub: 'x-payload-digest',
}

/** True for a request to a webhook without a signature, which no provider sends. */
export function isUnsignedWebhook(c: HttpContext): boolean {
  const header = signatureHeaders[c.req.path.slice(WEBHOOKS.length)]
  return header === undefined || c.req.header(header) === undefined
}

export function routeWebhooks(app: Hono<Env>, services: Services): void {
  const withLimit =
    (handle: (c: HttpContext) => Promise<Response>) =>
    async (c: HttpContext): Promise<Response> => {
      try {
        return await handle(c)
      } catch (error) {
        if (error instanceof Failure && error.code === 'signature_invalid' && !isUnsignedWebhook(c))
          await limitAddress(services, c, 'mutations', { failClosed: false, isMetered: false })
        throw error
      }
    }
  app.post(`${WEBHOOKS}lithic`, withLimit(cardWebhook(services)))
  app.post(`${WEBHOOKS}bridge`, withLimit(bankingWebhook(services)))
  app.post(`${WEBHOOKS}sumsub`, withLimit(identityWebhook(services)))
}
