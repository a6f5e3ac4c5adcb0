/** Public documents at well-known paths. @see https://www.rfc-editor.org/rfc/rfc8615 */
import type { Hono } from 'hono'
import { matchOriginName } from '../../core/base/origins.ts'
import type { Services } from '../../kernel/context.ts'
import { scopes } from '../../people/identity/keys/grantable.ts'
import { buildIssuer, buildResource } from '../../people/identity/oauth/oauth-tokens.ts'
import { BOT_DIRECTORY_PATH, BOT_DIRECTORY_TYPE } from '../../providers/web-bot-auth.ts'
import type { ListedSeller } from '../../rails/selling/x402/sale.ts'
import { readKeySet } from '../../records/decisions/receipt-keys.ts'
import type { Env } from './request.ts'

/** Path of the protected-resource metadata of `/mcp`. @see https://www.rfc-editor.org/rfc/rfc9728 */
export const RESOURCE_METADATA = '/.well-known/oauth-protected-resource/mcp'

/** Serves the public keys for decision receipts, the protected-resource metadata and the x402 discovery document. */
export function routeWellKnown(
  app: Hono<Env>,
  { database, settings, webBotAuth }: Pick<Services, 'database' | 'settings' | 'webBotAuth'>,
  seller: Pick<ListedSeller, 'discovery'>,
): void {
  const { origin } = settings
  // Clients accept the metadata only if it names the resource as they do.
  const resourceFor = (host: string | undefined) => ({
    resource: buildResource(matchOriginName(origin, host)),
    authorization_servers: [buildIssuer(origin)],
    scopes_supported: Object.keys(scopes),
    bearer_methods_supported: ['header'],
    resource_name: 'Bursar',
  })
  for (const path of [RESOURCE_METADATA, '/.well-known/oauth-protected-resource'])
    app.get(path, (c) =>
      c.json(resourceFor(c.req.header('host')), 200, {
        'Cache-Control': 'public, max-age=300',
        'Access-Control-Allow-Origin': '*',
      }),
    )
  app.get('/.well-known/jwks.json', async (c) =>
    c.json(await readKeySet(database, settings.dataKey), 200, { 'Cache-Control': 'public, max-age=300' }),
  )
  if (webBotAuth !== null)
    app.get(BOT_DIRECTORY_PATH, async (c) => {
      const { body, fields } = await webBotAuth.directory()
      return c.body(body, 200, {
        ...fields,
        'Content-Type': BOT_DIRECTORY_TYPE,
        // Not longer than its signature is valid.
        'Cache-Control': 'public, max-age=30',
      })
    })
  app.get('/.well-known/x402', (c) => c.json(seller.discovery))
}
