/** Configuration of buying: where sellers are listed. */
import { z } from 'zod'
import { list } from './list.ts'

export const buyingVariables = {
  BAZAAR_URLS: list.pipe(z.array(z.url({ protocol: /^https?$/, abort: true })).max(5)).optional(),
}

const variables = z.object(buyingVariables)

export interface BuyingConfig {
  /** Services that list sellers in the x402 discovery format. */
  readonly bazaarUrls: readonly string[]
}

export function readBuying({ BAZAAR_URLS }: z.output<typeof variables>): BuyingConfig {
  return { bazaarUrls: BAZAAR_URLS ?? [] }
}
