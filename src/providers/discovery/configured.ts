import type { Log } from '../../core/base/log.ts'
import type { Config } from '../../core/config/read-config.ts'
import type { PublicFetch } from '../public-fetch.ts'
import { createBazaar } from './bazaar.ts'
import type { Discovery } from './port.ts'

/** Listings of the configured services; none without one. */
export function createConfiguredDiscovery(
  { mode, bazaarUrls }: Pick<Config, 'mode' | 'bazaarUrls'>,
  parts: { readonly fetchPublic: PublicFetch; readonly log: Log },
): Discovery {
  return createBazaar({ ...parts, urls: bazaarUrls, loopback: mode === 'sandbox' })
}
