/**
 * Configuration: the environment, parsed once at startup. The sandbox has a default for every variable; production
 * has none for secrets.
 */
import { isIP } from 'node:net'
import { z } from 'zod'
import { isAddressRange } from '../base/address-range.ts'
import { splitHosts } from '../base/host-urls.ts'
import { importJwtKey } from '../base/jwt-key.ts'
import { logLevels } from '../base/log.ts'
import { namesSentinels, parseSentinels } from '../base/redis-url.ts'
import {
  amountMismatch,
  decimalAmount,
  type Money,
  type Stablecoin,
  stablecoins,
  toMoney,
} from '../money/money.ts'
import { type BuyingConfig, buyingVariables, readBuying } from './buying.ts'
import { address, type CardConfig, cardVariables, readCards } from './cards.ts'
import { type ChainConfig, chainErrors, chainVariables, nodeVariables, readChains } from './chains.ts'
import { type ComplianceConfig, complianceGroups, complianceVariables, readCompliance } from './compliance.ts'
import { type EventConfig, eventVariables, readEvents } from './events.ts'
import { type HttpConfig, httpVariables, readHttp } from './http.ts'
import {
  type IdentityProviderConfig,
  providerNames,
  providerVariablePrefix,
  readIdentityProviders,
} from './identity-providers.ts'
import { type InvestingConfig, investingGroups, investingVariables, readInvesting } from './investing.ts'
import { type KeyConfig, keyVariables, readKeys } from './keys.ts'
import { list } from './list.ts'
import { type ObservabilityConfig, observabilityVariables, readObservability } from './observability.ts'
import { productionErrors } from './production.ts'
import { secretsFromFiles } from './secret-files.ts'
import { findUnknownVariables, type UnknownVariable } from './unknown-variables.ts'

const isDatabaseUrl = (text: string) => {
  try {
    return splitHosts(text).every((one) => /^postgres(ql)?:$/.test(new URL(one).protocol))
  } catch {
    return false
  }
}
const isRedisUrl = (text: string) => {
  try {
    if (namesSentinels(text)) return parseSentinels(text).sentinels.length > 0
    return /^rediss?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}
const url = (schemes: RegExp) => z.url({ protocol: schemes, abort: true })
const refuseMismatch = (price: string, context: z.core.$RefinementCtx<string>) => {
  const mismatch = amountMismatch(price, 'USDC')
  if (mismatch !== undefined) context.addIssue({ code: 'custom', message: mismatch })
}

/** Names that would collide with other routes below `/api/auth/`. */
const takenNames: ReadonlySet<string> = new Set(
  'webauthn otp guest logout session sessions recovery'.split(' '),
)

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
    .refine((text) => new URL(text).href === `${new URL(text).origin}/`, 'must be an origin without a path')
    .optional(),
  DATA_DIR: z.string().min(1).default('.bursar'),
  DATABASE_URL: z
    .string()
    .refine(isDatabaseUrl, 'must be a postgres:// URL; separate several hosts by commas')
    .optional(),
  DATABASE_POOLER_URL: url(/^postgres(ql)?$/).optional(),
  REDIS_URL: z
    .string()
    .refine(
      isRedisUrl,
      'must be a redis:// URL, or redis+sentinel:// with Sentinels and the name of their primary',
    )
    .optional(),
  X402_PAY_TO: address.optional(),
  X402_FX_PRICE: decimalAmount.superRefine(refuseMismatch).default('0.01'),
  X402_FACILITATOR_URL: url(/^https?$/).optional(),
  CDP_API_KEY_ID: z
    .string()
    .regex(/^[\x21-\x7e]{1,256}$/, 'must be visible ASCII')
    .optional(),
  CDP_API_KEY_SECRET: z
    .string()
    // Most environments hold one line, with `\n` in place of line breaks.
    .transform((text) => text.replaceAll('\\n', '\n'))
    .refine(isSigningKey, 'must be an EC key (P-256) in PEM, or an Ed25519 key: base64 of 64 bytes')
    .optional(),
  RAIL_CONTROLS_URL: url(/^https?$/).optional(),
  FX_RATES_URL: url(/^https?$/).optional(),
  PEG_FEEDS: list
    .pipe(
      z.array(
        z.templateLiteral([z.enum(['USDC', 'USDT', 'PYUSD']), '=', z.string().regex(/^0x[0-9a-fA-F]{40}$/)], {
          error:
            'must name USDC, USDT or PYUSD and its feed in US dollars, such as USDC=0x…; a price of EURC in dollars says nothing of the euro',
        }),
      ),
    )
    .refine(
      (entries) => new Set(entries.map((entry) => entry.split('=')[0])).size === entries.length,
      'names a stablecoin twice',
    )
    .default([]),
  RP_ID: z
    .string()
    .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'must be a domain in lower case')
    .refine((domain) => isIP(domain) === 0, 'must be a domain, not an address')
    .optional(),
  FOUNDER_ACCOUNT: z
    .string()
    .regex(/^acct_[0-9a-hjkmnp-tv-z]{26}$/, 'must be an account id (acct_…)')
    .optional(),
  GUEST_SESSIONS: z.enum(['on', 'off']).optional(),
  SMTP_URL: url(/^smtps?$/).optional(),
  SMTP_FROM: z.string().min(3).max(254).optional(),
  TWILIO_ACCOUNT_SID: z
    .string()
    .regex(/^\w{1,64}$/)
    .optional(),
  TWILIO_AUTH_TOKEN: z.string().optional(),
  TWILIO_FROM: z.string().optional(),
  TWILIO_API_URL: url(/^https?$/).default('https://api.twilio.com'),
  TELEGRAM_API_URL: url(/^https?$/).default('https://api.telegram.org'),
  IDENTITY_PROVIDERS: list
    .superRefine((names, context) => {
      for (const name of names.filter((text) => !/^[a-z][a-z0-9-]{0,31}$/.test(text) || takenNames.has(text)))
        context.addIssue({ code: 'custom', message: `"${name}" is not a valid provider name` })
    })
    .optional(),
  TRUSTED_PROXIES: list
    .superRefine((entries, context) => {
      for (const entry of entries.filter((text) => !isAddressRange(text)))
        context.addIssue({ code: 'custom', message: `"${entry}" is not an address or CIDR` })
    })
    .prefault(''),
  LOG_LEVEL: z.enum(logLevels).default('info'),
  ...keyVariables,
  ...chainVariables,
  ...complianceVariables,
  ...investingVariables,
  ...buyingVariables,
  ...cardVariables,
  ...httpVariables,
  ...eventVariables,
  ...observabilityVariables,
})

/** Settings that are probably misspelt. */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): UnknownVariable[] {
  return findUnknownVariables(env, Object.keys(environment.shape))
}

/** Limits as `count/seconds`, by variable; policies define the classes. */
export type RateSettings = Readonly<Record<string, string>>

export interface Config
  extends ChainConfig,
    KeyConfig,
    ComplianceConfig,
    InvestingConfig,
    BuyingConfig,
    CardConfig,
    HttpConfig,
    EventConfig,
    ObservabilityConfig {
  readonly mode: 'sandbox' | 'production'
  readonly host: string
  readonly port: number
  /** Public origin of the gateway, without a trailing slash; null derives it from host and port once bound. */
  readonly publicOrigin: string | null
  readonly dataDirectory: string
  readonly databaseUrl: string | null
  /** A pooler in transaction mode before the database of `databaseUrl`; null: none. */
  readonly databasePoolerUrl: string | null
  readonly redisUrl: string | null
  readonly x402: {
    readonly payTo: string | null
    readonly price: Money
    readonly facilitatorUrl: string | null
    /** Signs a token for each request to the facilitator. */
    readonly facilitatorKey: { readonly id: string; readonly secret: string } | null
  }
  readonly railControlsUrl: string | null
  /** URL of the ECB's daily rates; null uses the sandbox's snapshot, or the ECB itself in production. */
  readonly fxRatesUrl: string | null
  /** Chainlink's feeds of stablecoins in dollars, by token; empty: no peg is watched. */
  readonly pegFeeds: ReadonlyMap<Stablecoin, `0x${string}`>
  /** WebAuthn relying party id; null uses the host of the public origin. */
  readonly rpId: string | null
  readonly founderAccount: string | null
  readonly guests: boolean
  readonly smtp: { readonly url: string; readonly from: string } | null
  readonly twilio: {
    readonly url: string
    readonly accountSid: string
    readonly authToken: string
    readonly from: string
  } | null
  /** Bot API of Telegram. */
  readonly telegramUrl: string
  readonly identityProviders: readonly IdentityProviderConfig[]
  readonly trustedProxies: readonly string[]
  readonly logLevel: (typeof logLevels)[number]
  /** Raw values of the `RATE_…` variables. */
  readonly rates: RateSettings
}

/**
 * Reads the environment, including secret files. @param judge returns errors of variables that only higher layers
 * understand. @throws Error with one message that lists every missing or invalid variable.
 */
export function readConfig(
  env: Readonly<Record<string, string | undefined>>,
  judge: (config: Config) => readonly string[] = () => [],
): Config {
  const set = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  )
  const files = secretsFromFiles(set)
  const given = { ...set, ...files.read }
  const parsed = environment.safeParse(given)
  const config = parsed.success ? toConfig(parsed.data, given) : null
  const problems = [
    ...(parsed.error?.issues ?? []).map((issue) => `${issue.path.join('.')}: ${issue.message}`),
    ...files.complaints,
    ...productionErrors(given),
    ...incomplete(given),
    ...chainErrors(given),
    ...(config === null ? [] : judge(config)),
  ]
  if (config === null || problems.length > 0) throw invalidConfiguration(problems)
  return config
}

/** Reads the keys alone, for commands that need nothing else. @throws Error as {@link readConfig}. */
export function readKeyConfig(env: Readonly<Record<string, string | undefined>>): KeyConfig {
  const set = Object.fromEntries(
    Object.entries(env).filter(
      ([name, value]) =>
        Object.hasOwn(keyVariables, name.replace(/_FILE$/, '')) && value !== undefined && value !== '',
    ),
  )
  const files = secretsFromFiles(set)
  const parsed = z.object(keyVariables).safeParse({ ...set, ...files.read })
  const problems = [
    ...(parsed.error?.issues ?? []).map((issue) => `${issue.path.join('.')}: ${issue.message}`),
    ...files.complaints,
  ]
  if (!parsed.success || problems.length > 0) throw invalidConfiguration(problems)
  return readKeys(parsed.data)
}

/** Reads the chains alone, for commands that need nothing else. @throws Error as {@link readConfig}. */
export function readChainConfig(env: Readonly<Record<string, string | undefined>>): ChainConfig['chains'] {
  const set = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  )
  const files = secretsFromFiles(set)
  const given = { ...set, ...files.read }
  const parsed = z.object(chainVariables).safeParse(given)
  const problems = [
    ...(parsed.error?.issues ?? []).map((issue) => `${issue.path.join('.')}: ${issue.message}`),
    ...files.complaints,
    // A command moves no money, so it may ask the node of any chain.
    ...chainErrors({ ...given, MODE: 'production' }),
  ]
  if (!parsed.success || problems.length > 0) throw invalidConfiguration(problems)
  return readChains(parsed.data).chains
}

function invalidConfiguration(problems: readonly string[]): Error {
  return new Error(`The configuration is not valid:\n${problems.map((line) => `  ${line}`).join('\n')}`)
}

function toConfig(
  settings: z.output<typeof environment>,
  given: Readonly<Record<string, string | undefined>>,
): Config {
  return {
    mode: settings.MODE,
    host: settings.HOST,
    port: settings.PORT,
    publicOrigin: settings.PUBLIC_ORIGIN === undefined ? null : new URL(settings.PUBLIC_ORIGIN).origin,
    dataDirectory: settings.DATA_DIR,
    databaseUrl: settings.DATABASE_URL ?? null,
    databasePoolerUrl: settings.DATABASE_POOLER_URL ?? null,
    redisUrl: settings.REDIS_URL ?? null,
    x402: {
      payTo: settings.X402_PAY_TO ?? null,
      price: toMoney('USDC', settings.X402_FX_PRICE),
      facilitatorUrl: settings.X402_FACILITATOR_URL ?? null,
      facilitatorKey:
        settings.CDP_API_KEY_ID === undefined || settings.CDP_API_KEY_SECRET === undefined
          ? null
          : { id: settings.CDP_API_KEY_ID, secret: settings.CDP_API_KEY_SECRET },
    },
    railControlsUrl: settings.RAIL_CONTROLS_URL ?? null,
    fxRatesUrl: settings.FX_RATES_URL ?? null,
    pegFeeds: parsePegFeeds(settings.PEG_FEEDS),
    ...readKeys(settings),
    rpId: settings.RP_ID ?? null,
    founderAccount: settings.FOUNDER_ACCOUNT ?? null,
    guests:
      settings.GUEST_SESSIONS === undefined ? settings.MODE === 'sandbox' : settings.GUEST_SESSIONS === 'on',
    smtp:
      settings.SMTP_URL === undefined
        ? null
        : { url: settings.SMTP_URL, from: settings.SMTP_FROM ?? 'Bursar <no-reply@localhost>' },
    twilio:
      settings.TWILIO_ACCOUNT_SID === undefined
        ? null
        : {
            url: settings.TWILIO_API_URL,
            accountSid: settings.TWILIO_ACCOUNT_SID,
            authToken: settings.TWILIO_AUTH_TOKEN ?? '',
            from: settings.TWILIO_FROM ?? '',
          },
    telegramUrl: settings.TELEGRAM_API_URL,
    identityProviders: readIdentityProviders(
      given,
      settings.IDENTITY_PROVIDERS ?? (settings.MODE === 'sandbox' ? ['google', 'apple'] : []),
    ),
    trustedProxies: settings.TRUSTED_PROXIES,
    logLevel: settings.LOG_LEVEL,
    ...readChains(settings),
    ...readCompliance(settings),
    ...readInvesting(settings),
    ...readBuying(settings),
    ...readCards(settings),
    ...readHttp(settings),
    ...readEvents(settings),
    ...readObservability(settings),
    rates: Object.fromEntries(
      Object.entries(given)
        .filter(([name]) => name.startsWith('RATE_'))
        .map(([name, value]) => [name, value ?? '']),
    ),
  }
}

function parsePegFeeds(entries: readonly string[]): Config['pegFeeds'] {
  const feeds = entries.map((entry) => entry.split('='))
  return new Map(
    stablecoins.flatMap((token) =>
      feeds.flatMap(([name, address = '']) =>
        name === token ? [[token, `0x${address.slice(2)}`] as const] : [],
      ),
    ),
  )
}

function isSigningKey(secret: string): boolean {
  try {
    importJwtKey(secret)
    return true
  } catch {
    return false
  }
}

/** Reports variables that must be set together and are incomplete. */
function incomplete(given: Readonly<Record<string, string | undefined>>): string[] {
  const names = providerNames(given.IDENTITY_PROVIDERS ?? (given.MODE === 'production' ? '' : undefined))
  const optional = [
    ['TWILIO_ACCOUNT_SID', 'TWILIO_AUTH_TOKEN', 'TWILIO_FROM'],
    ['CDP_API_KEY_ID', 'CDP_API_KEY_SECRET'],
    ...investingGroups,
    ...complianceGroups,
  ]
  const together = [
    ...optional,
    ...names.map((name) =>
      ['ISSUER', 'CLIENT_ID', 'CLIENT_SECRET'].map((member) => `${providerVariablePrefix(name)}${member}`),
    ),
  ]
  const isProduction = given.MODE === 'production'
  const half = together.flatMap((group, at) => {
    const absent = group.filter((name) => given[name] === undefined)
    const isNeeded = absent.length < group.length || (at >= optional.length && isProduction)
    return isNeeded ? absent.map((name) => `${name}: missing; ${group.join(', ')} must be set together`) : []
  })
  const issuers = names
    .map((name) => `${providerVariablePrefix(name)}ISSUER`)
    .filter((name) => given[name] !== undefined && !/^https?:\/\/[^?#]+$/.test(given[name] ?? ''))
    .map((name) => `${name}: must be the https URL of an issuer`)
  const pooled =
    given.DATABASE_POOLER_URL !== undefined && given.DATABASE_URL === undefined
      ? ['DATABASE_URL: missing; it is the direct address of the database behind DATABASE_POOLER_URL']
      : []
  const priced =
    given.PEG_FEEDS !== undefined && given[nodeVariables(given)[0] ?? ''] === undefined
      ? ['PEG_FEEDS: needs a node of the first chain; a sandbox sets prices by POST /sandbox/prices']
      : []
  const rotated = ['CHAIN_OWNER_KEY', 'DATA_KEY', 'SESSION_SECRET'].flatMap((name) => {
    const previous = `${name}_PREVIOUS`
    if (given[previous] === undefined) return []
    if (given[name] === undefined) return [`${name}: missing; it is the key that replaces ${previous}`]
    return given[name] === given[previous] ? [`${previous}: must differ from ${name}`] : []
  })
  return [...half, ...issuers, ...pooled, ...priced, ...rotated]
}
