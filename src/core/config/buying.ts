/** Configuration of buying: where sellers are listed, how much of what they answer is kept, and the limits of payment channels. */
import { z } from 'zod'
import { toMoney } from '../money/money.ts'
import { list } from './list.ts'

const MIB = 1024 * 1024

export const buyingVariables = {
  WEB_BOT_AUTH: z.enum(['on', 'off']).default('on'),
  BAZAAR_URLS: list.pipe(z.array(z.url({ protocol: /^https?$/, abort: true })).max(5)).optional(),
  CHANNEL_MAX_WITHDRAW_DELAY: z
    .string()
    .regex(/^(9\d\d|[1-9]\d{3,6})$/, 'must be seconds from 900 to 9999999')
    .transform(Number)
    .default(86_400),
  CHANNEL_DEPOSIT_MAX: z
    .string()
    .regex(/^\d{1,6}(\.\d{1,6})?$/, 'must be an amount of a stablecoin, such as 1.00')
    .default('1.00'),
  CHANNEL_IDLE_SECONDS: z
    .string()
    .regex(/^[1-9]\d{0,6}$/, 'must be seconds from 1 to 9999999')
    .transform(Number)
    .default(3_600),
  // At least two of the longest answers: one is written while another is read.
  ANSWER_ROOM_MIB: z
    .string()
    .regex(/^(6[4-9]|[7-9]\d|[1-9]\d{2,5})$/, 'must be a number of MiB from 64 to 999999')
    .transform(Number)
    .default(256),
}

const variables = z.object(buyingVariables)

export interface BuyingConfig {
  /** Whether requests to sellers are signed as this deployment's. */
  readonly webBotAuth: boolean
  /** Services that list sellers in the x402 discovery format. */
  readonly bazaarUrls: readonly string[]
  /** What the stored answers of an account's purchases may take together. */
  readonly answerRoomBytes: number
  /** Of payment channels: seconds that a seller may keep the rest, the largest deposit in smallest units of USDC, and the idle time. */
  readonly channels: {
    readonly maxWithdrawDelay: number
    readonly depositMax: bigint
    readonly idleMs: number
  }
}

export function readBuying(given: z.output<typeof variables>): BuyingConfig {
  return {
    webBotAuth: given.WEB_BOT_AUTH === 'on',
    bazaarUrls: given.BAZAAR_URLS ?? [],
    answerRoomBytes: given.ANSWER_ROOM_MIB * MIB,
    channels: {
      maxWithdrawDelay: given.CHANNEL_MAX_WITHDRAW_DELAY,
      depositMax: toMoney('USDC', given.CHANNEL_DEPOSIT_MAX).units,
      idleMs: given.CHANNEL_IDLE_SECONDS * 1000,
    },
  }
}
