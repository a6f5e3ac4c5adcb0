/** Configuration of investing and swaps: the broker and the swap aggregators. */
import { z } from 'zod'

const url = z.url({ protocol: /^https?$/, abort: true })
const secret = z.string().regex(/^[\x21-\x7e]{1,256}$/, 'must be visible ASCII')

export const investingVariables = {
  SANDBOX_MARKET_HOURS: z.enum(['always', 'nyse']).default('always'),
  ALPACA_API_KEY: secret.optional(),
  ALPACA_API_SECRET: secret.optional(),
  ALPACA_FIRM_ACCOUNT_ID: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'must be an account id')
    .optional(),
  ALPACA_URL: url.default('https://broker-api.alpaca.markets'),
  ALPACA_DATA_URL: url.default('https://data.alpaca.markets'),
  SWAP_AGGREGATORS: z
    .string()
    .transform((text) => text.split(',').map((name) => name.trim()))
    .pipe(z.array(z.enum(['lifi', 'relay', '0x', 'across'])))
    .optional(),
  LIFI_URL: url.default('https://li.quest'),
  LIFI_API_KEY: secret.optional(),
  RELAY_URL: url.default('https://api.relay.link'),
  RELAY_API_KEY: secret.optional(),
  ZEROX_URL: url.default('https://api.0x.org'),
  ZEROX_API_KEY: secret.optional(),
  ACROSS_URL: url.default('https://app.across.to/api'),
  ACROSS_API_KEY: secret.optional(),
  CCTP_URL: url.optional(),
}

const variables = z.object(investingVariables)

export interface InvestingConfig {
  readonly marketHours: 'always' | 'nyse'
  /** Null uses the sandbox's broker, and none in production. */
  readonly alpaca: {
    readonly url: string
    readonly dataUrl: string
    readonly apiKey: string
    readonly apiSecret: string
    /** The firm's account, which pays for purchases. */
    readonly firmAccountId: string
  } | null
  /** Null uses the sandbox's aggregators, and none in production. */
  readonly swapAggregators: readonly SwapAggregatorConfig[] | null
  /** URL of Circle's attestation service. Null uses the sandbox's own, and none in production. */
  readonly cctpUrl: string | null
}

export interface SwapAggregatorConfig {
  readonly name: 'lifi' | 'relay' | '0x' | 'across'
  readonly url: string
  readonly apiKey: string | null
}

/** Variables that must be set together. */
export const investingGroups = [['ALPACA_API_KEY', 'ALPACA_API_SECRET', 'ALPACA_FIRM_ACCOUNT_ID']] as const

export function readInvesting(settings: z.output<typeof variables>): InvestingConfig {
  const endpoints = {
    lifi: { url: settings.LIFI_URL, apiKey: settings.LIFI_API_KEY },
    relay: { url: settings.RELAY_URL, apiKey: settings.RELAY_API_KEY },
    '0x': { url: settings.ZEROX_URL, apiKey: settings.ZEROX_API_KEY },
    across: { url: settings.ACROSS_URL, apiKey: settings.ACROSS_API_KEY },
  }
  const { ALPACA_API_KEY: apiKey, ALPACA_API_SECRET: apiSecret } = settings
  const firmAccountId = settings.ALPACA_FIRM_ACCOUNT_ID
  return {
    marketHours: settings.SANDBOX_MARKET_HOURS,
    swapAggregators:
      settings.SWAP_AGGREGATORS?.map((name) => ({
        name,
        url: endpoints[name].url.replace(/\/+$/, ''),
        apiKey: endpoints[name].apiKey ?? null,
      })) ?? null,
    cctpUrl: settings.CCTP_URL?.replace(/\/+$/, '') ?? null,
    alpaca:
      apiKey === undefined || apiSecret === undefined || firmAccountId === undefined
        ? null
        : {
            url: settings.ALPACA_URL,
            dataUrl: settings.ALPACA_DATA_URL,
            apiKey,
            apiSecret,
            firmAccountId,
          },
  }
}
