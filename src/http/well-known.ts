/** What the gateway tells anybody about itself at well-known places. @see https://www.rfc-editor.org/rfc/rfc8615 */
import type { Hono } from 'hono'
import { type KeySet, signingKeyOf } from '../audit/signing-key.ts'
import type { Services } from '../kernel/context.ts'
import type { Env } from './request.ts'
import type { Seller } from './route.ts'

/** Serves the public keys that receipts of decisions verify with, and what strangers can buy here. */
export function routeWellKnown(
  app: Hono<Env>,
  { settings }: Pick<Services, 'settings'>,
  { discovery }: Pick<Seller, 'discovery'>,
): void {
  let keys: Promise<KeySet> | undefined
  app.get('/.well-known/jwks.json', async (c) => {
    keys ??= signingKeyOf(settings.dataKey).then(({ keySet }) => keySet)
    return c.json(await keys, 200, { 'Cache-Control': 'public, max-age=300' })
  })
  app.get('/.well-known/x402', (c) => c.json(discovery))
}
