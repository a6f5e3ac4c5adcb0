/** Configuration: the environment, parsed once at start. Sandbox has a default for everything; production has none for secrets. */
import { z } from 'zod'
import { logLevels } from './log.ts'
import { decimalAmount, type Money, misfitOf, moneyOf } from './money.ts'

const url = (schemes: RegExp) => z.url({ protocol: schemes })
const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/, 'must be an EVM address')

const environment = z.object({
  MODE: z.enum(['sandbox', 'production']).default('sandbox'),
  HOST: z.string().default('127.0.0.1'),
  PORT: z.coerce.number().int().min(0).max(65535).default(8787),
  PUBLIC_ORIGIN: url(/^https?$/).optional(),
  DATA_DIR: z.string().min(1).default('.bursar'),
  DATABASE_URL: url(/^postgres(ql)?$/).optional(),
  REDIS_URL: url(/^rediss?$/).optional(),
  CHAIN: z.enum(['anvil', 'simulated']).default('anvil'),
  CHAIN_RPC_URL: url(/^https?$/).optional(),
  CHAIN_SPONSOR_KEY: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/)
    .optional(),
  ANVIL_BIN: z.string().optional(),
  X402_PAY_TO: address.optional(),
  X402_FX_PRICE: z.string().default('0.01'),
  X402_FACILITATOR_URL: url(/^https?$/).optional(),
  RAIL_CONTROLS_URL: url(/^https?$/).optional(),
  SESSION_SECRET: z.string().min(32, 'must have 32 characters or more').optional(),
  TRUSTED_PROXIES: z.string().default(''),
  LOG_LEVEL: z.enum(logLevels).default('info'),
})

/** The limits of one class, as count and seconds; which classes there are is a matter of policy. */
export type RateSettings = Readonly<Record<string, string>>

/** Everything that the environment decides. */
export interface Config {
  readonly mode: 'sandbox' | 'production'
  readonly host: string
  readonly port: number
  /** Scheme, host and port that clients use, without a trailing slash; null: made from host and port once bound. */
  readonly publicOrigin: string | null
  readonly dataDirectory: string
  readonly databaseUrl: string | null
  readonly redisUrl: string | null
  readonly chain: {
    readonly kind: 'anvil' | 'simulated' | 'rpc'
    readonly rpcUrl: string | null
    readonly sponsorKey: string | null
    readonly anvilBinary: string | null
  }
  readonly x402: {
    readonly payTo: string | null
    readonly price: Money
    readonly facilitatorUrl: string | null
  }
  readonly railControlsUrl: string | null
  readonly sessionSecret: string | null
  readonly trustedProxies: readonly string[]
  readonly logLevel: (typeof logLevels)[number]
  /** `RATE_…` variables as they were given. */
  readonly rates: RateSettings
}

/** What production cannot do without. */
const productionNeeds = [
  'PUBLIC_ORIGIN',
  'DATABASE_URL',
  'CHAIN_RPC_URL',
  'CHAIN_SPONSOR_KEY',
  'X402_PAY_TO',
  'SESSION_SECRET',
] as const

/** Reads the environment. @throws Error with one message that lists everything that is missing or wrong. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  )
  const parsed = environment.safeParse(given)
  if (!parsed.success)
    throw new Error(
      `The configuration is not valid:\n${parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`).join('\n')}`,
    )
  const settings = parsed.data
  const wrong = contradictions(settings)
  if (wrong.length > 0)
    throw new Error(`The configuration is not valid:\n${wrong.map((line) => `  ${line}`).join('\n')}`)
  return {
    mode: settings.MODE,
    host: settings.HOST,
    port: settings.PORT,
    publicOrigin: settings.PUBLIC_ORIGIN === undefined ? null : new URL(settings.PUBLIC_ORIGIN).origin,
    dataDirectory: settings.DATA_DIR,
    databaseUrl: settings.DATABASE_URL ?? null,
    redisUrl: settings.REDIS_URL ?? null,
    chain: {
      kind: settings.CHAIN_RPC_URL === undefined ? settings.CHAIN : 'rpc',
      rpcUrl: settings.CHAIN_RPC_URL ?? null,
      sponsorKey: settings.CHAIN_SPONSOR_KEY ?? null,
      anvilBinary: settings.ANVIL_BIN ?? null,
    },
    x402: {
      payTo: settings.X402_PAY_TO ?? null,
      price: moneyOf('USDC', settings.X402_FX_PRICE),
      facilitatorUrl: settings.X402_FACILITATOR_URL ?? null,
    },
    railControlsUrl: settings.RAIL_CONTROLS_URL ?? null,
    sessionSecret: settings.SESSION_SECRET ?? null,
    trustedProxies: settings.TRUSTED_PROXIES.split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== ''),
    logLevel: settings.LOG_LEVEL,
    rates: Object.fromEntries(
      Object.entries(given)
        .filter(([name]) => name.startsWith('RATE_'))
        .map(([name, value]) => [name, value ?? '']),
    ),
  }
}

function contradictions(settings: z.output<typeof environment>): string[] {
  const price = decimalAmount.safeParse(settings.X402_FX_PRICE)
  const misfit = price.success ? misfitOf(price.data, 'USDC') : price.error.issues[0]?.message
  const missing =
    settings.MODE === 'production' ? productionNeeds.filter((name) => settings[name] === undefined) : []
  return [
    ...(misfit === undefined ? [] : [`X402_FX_PRICE: ${misfit}`]),
    ...(settings.PUBLIC_ORIGIN !== undefined && new URL(settings.PUBLIC_ORIGIN).pathname !== '/'
      ? ['PUBLIC_ORIGIN: must be an origin without a path']
      : []),
    ...missing.map((name) => `${name}: missing, and production has no default for it`),
  ]
}
