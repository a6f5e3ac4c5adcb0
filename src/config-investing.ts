/** The part of the configuration that investing and swaps read: who trades for us, and who is asked for routes. */
import { z } from 'zod'

const url = z.url({ protocol: /^https?$/, abort: true })
const secret = z.string().regex(/^[\x21-\x7e]{1,256}$/, 'must be visible ASCII')

/** Its variables. */
export const investingVariables = {
  SANDBOX_MARKET_HOURS: z.enum(['always', 'nyse']).default('always'),
  ALPACA_API_KEY: secret.optional(),
  ALPACA_API_SECRET: secret.optional(),
  ALPACA_ACCOUNT_ID: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'must be the id of an account')
    .optional(),
  ALPACA_URL: url.default('https://broker-api.alpaca.markets'),
  ALPACA_DATA_URL: url.default('https://data.alpaca.markets'),
}

const variables = z.object(investingVariables)

/** What the environment decides of investing. */
export interface InvestingConfig {
  readonly marketHours: 'always' | 'nyse'
  /** Null: the sandbox's own broker, and none in production. */
  readonly alpaca: {
    readonly url: string
    readonly dataUrl: string
    readonly apiKey: string
    readonly apiSecret: string
    readonly accountId: string
  } | null
}

/** What belongs together. */
export const investingGroups = [['ALPACA_API_KEY', 'ALPACA_API_SECRET', 'ALPACA_ACCOUNT_ID']] as const

/** Investing's part of the settings. */
export function investingOf(settings: z.output<typeof variables>): InvestingConfig {
  const { ALPACA_API_KEY: apiKey, ALPACA_API_SECRET: apiSecret, ALPACA_ACCOUNT_ID: accountId } = settings
  return {
    marketHours: settings.SANDBOX_MARKET_HOURS,
    alpaca:
      apiKey === undefined || apiSecret === undefined || accountId === undefined
        ? null
        : { url: settings.ALPACA_URL, dataUrl: settings.ALPACA_DATA_URL, apiKey, apiSecret, accountId },
  }
}
