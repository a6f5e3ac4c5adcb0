/** Configuration: the environment, parsed once at start. Sandbox has a default for everything; production has none for secrets. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { logLevels } from './log.ts'
import { decimalAmount, type Money, misfitOf, moneyOf } from './money.ts'

const url = (schemes: RegExp) => z.url({ protocol: schemes, abort: true })
const refuseMisfit = (price: string, context: z.core.$RefinementCtx<string>) => {
  const misfit = misfitOf(price, 'USDC')
  if (misfit !== undefined) context.addIssue({ code: 'custom', message: misfit })
}
const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/, 'must be an EVM address')

const list = z
  .string()
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .transform((entries) => entries.filter((entry) => entry !== ''))

/** Whether a text is an IP address or a CIDR range. */
export function isAddressRange(text: string): boolean {
  const [address = '', prefix = '0', ...rest] = text.split('/')
  const bits = isIP(address) === 6 ? 128 : 32
  return isIP(address) !== 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits && rest.length === 0
}

const environment = z.object({
  MODE: z.enum(['sandbox', 'production']).default('sandbox'),
  HOST: z.string().default('127.0.0.1'),
  PORT: z
    .string()
    .regex(/^\d{1,5}$/, 'must be a number from 0 to 65535')
    .transform(Number)
    .refine((port) => port <= 65535, 'must be a number from 0 to 65535')
    .default(8787),
  PUBLIC_ORIGIN: url(/^https?$/)
    .refine((text) => new URL(text).href === `${new URL(text).origin}/`, 'must be an origin and nothing more')
    .optional(),
  DATA_DIR: z.string().min(1).default('.bursar'),
  DATABASE_URL: url(/^postgres(ql)?$/).optional(),
  REDIS_URL: url(/^rediss?$/).optional(),
  CHAIN: z.enum(['anvil', 'simulated']).default('anvil'),
  CHAIN_RPC_URL: url(/^https?$/).optional(),
  CHAIN_SPONSOR_KEY: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/)
    .optional(),
  CHAIN_OWNER_KEY: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/)
    .optional(),
  ANVIL_BIN: z.string().optional(),
  X402_PAY_TO: address.optional(),
  X402_FX_PRICE: decimalAmount.superRefine(refuseMisfit).default('0.01'),
  X402_FACILITATOR_URL: url(/^https?$/).optional(),
  RAIL_CONTROLS_URL: url(/^https?$/).optional(),
  SESSION_SECRET: z.string().min(32, 'must have 32 characters or more').optional(),
  TRUSTED_PROXIES: list
    .superRefine((entries, context) => {
      for (const entry of entries.filter((text) => !isAddressRange(text)))
        context.addIssue({ code: 'custom', message: `"${entry}" is not an address or CIDR` })
    })
    .prefault(''),
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
    readonly ownerKey: string | null
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
  'CHAIN_OWNER_KEY',
  'X402_PAY_TO',
  'SESSION_SECRET',
] as const

/** Reads the environment. @throws Error with one message that lists everything that is missing or wrong. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  )
  const parsed = environment.safeParse(given)
  const wrong = [
    ...(parsed.error?.issues ?? []).map((issue) => `${issue.path.join('.')}: ${issue.message}`),
    ...missing(given),
  ]
  if (!parsed.success || wrong.length > 0)
    throw new Error(`The configuration is not valid:\n${wrong.map((line) => `  ${line}`).join('\n')}`)
  const settings = parsed.data
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
      ownerKey: settings.CHAIN_OWNER_KEY ?? null,
      anvilBinary: settings.ANVIL_BIN ?? null,
    },
    x402: {
      payTo: settings.X402_PAY_TO ?? null,
      price: moneyOf('USDC', settings.X402_FX_PRICE),
      facilitatorUrl: settings.X402_FACILITATOR_URL ?? null,
    },
    railControlsUrl: settings.RAIL_CONTROLS_URL ?? null,
    sessionSecret: settings.SESSION_SECRET ?? null,
    trustedProxies: settings.TRUSTED_PROXIES,
    logLevel: settings.LOG_LEVEL,
    rates: Object.fromEntries(
      Object.entries(given)
        .filter(([name]) => name.startsWith('RATE_'))
        .map(([name, value]) => [name, value ?? '']),
    ),
  }
}

function missing(given: Readonly<Record<string, string | undefined>>): string[] {
  if (given.MODE !== 'production') return []
  return productionNeeds
    .filter((name) => given[name] === undefined)
    .map((name) => `${name}: missing, and production has no default for it`)
}
