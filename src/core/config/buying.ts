/** Configuration of buying: where sellers are listed, and how much of what they answer is kept. */
import { z } from 'zod'
import { list } from './list.ts'

const MIB = 1024 * 1024

export const buyingVariables = {
  BAZAAR_URLS: list.pipe(z.array(z.url({ protocol: /^https?$/, abort: true })).max(5)).optional(),
  // At least two of the longest answers: one is written while another is read.
  ANSWER_ROOM_MIB: z
    .string()
    .regex(/^(6[4-9]|[7-9]\d|[1-9]\d{2,5})$/, 'must be a number of MiB from 64 to 999999')
    .transform(Number)
    .default(256),
}

const variables = z.object(buyingVariables)

export interface BuyingConfig {
  /** Services that list sellers in the x402 discovery format. */
  readonly bazaarUrls: readonly string[]
  /** What the stored answers of an account's purchases may take together. */
  readonly answerRoomBytes: number
}

export function readBuying({ BAZAAR_URLS, ANSWER_ROOM_MIB }: z.output<typeof variables>): BuyingConfig {
  return { bazaarUrls: BAZAAR_URLS ?? [], answerRoomBytes: ANSWER_ROOM_MIB * MIB }
}
