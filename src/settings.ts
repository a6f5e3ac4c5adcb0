/** Product settings, from the configuration and the sandbox's secrets. A root, as part of the runtime. */

import {
  type AmlLimits,
  defaultAmlLimits,
  parseStructuring,
  parseThresholds,
  parseVelocity,
} from '../policies/aml/limits.ts'
import { defaultKycLimits, type KycLimits } from '../policies/kyc.ts'
import { parseRateLimit, rateClasses } from '../policies/rate-classes.ts'
import { listOriginNames } from './core/base/origins.ts'
import { DERIVED, type RotatingKey, type RotatingKeyName, rotatingKeys } from './core/base/rotating-key.ts'
import type { Config } from './core/config/read-config.ts'
import type { Settings } from './kernel/context.ts'
import type { Keys } from './providers/keys/port.ts'
import type { RateLimit } from './providers/rate-limiter/port.ts'
import { openDataKey, openDataKeys } from './records/decisions/data-key.ts'
import { openReceiptKey } from './records/decisions/signing-key.ts'
import { sandboxSecret } from './sandbox/sandbox.ts'
import type { Database } from './storage/database.ts'

/** @param origin public origin. @throws Error with the variable of a secret that cannot be opened. */
export async function buildSettings(
  config: Config,
  { origin, database, keys }: { origin: string; database: Database; keys: Keys },
): Promise<Omit<Settings, 'rateLimits'>> {
  const { session, sessionPrevious, data, previous } = await openSecrets(config, keys)
  const secret = session ?? (await sandboxSecret(database, 'session'))
  const current = data ?? (await sandboxSecret(database, 'data'))
  const dataKey = await openDataKey(database, { current, previous })
  return {
    mode: config.mode,
    origin,
    fxPrice: config.x402.price,
    x402PayTo: hexAddress(config.x402.payTo ?? SANDBOX_PAY_TO),
    trustedProxies: config.trustedProxies,
    sessionKey: Buffer.from(secret),
    previousSessionKeys: sessionPrevious === null ? [] : [Buffer.from(sessionPrevious)],
    dataKey,
    receiptKey: await openReceiptKey(keys, { ...config, dataKey }),
    accessTokenKey: await openRotatingKey('ACCESS_TOKEN_KEY', config, { keys, dataKey }),
    ...buildWebSettings(config, origin),
    founderAccount: config.founderAccount,
    guests: config.guests,
    aml: buildAmlLimits(config),
    kycLimits: buildKycLimits(config),
    vasp: config.vasp,
    accountsPerCurrency: config.banking.accountsPerCurrency,
    metricsToken: config.metricsToken,
    eventDays: config.eventDays,
    channels: config.channels,
    answerRoomBytes: config.answerRoomBytes,
    anchorChain: config.anchorChain,
    cardSpreadBps: config.cards.spreadBps,
    cardFloatMicros: config.cards.floatMicros,
    cardPullMs: config.cards.pullMs,
    cardTreasury: hexAddress(config.cards.treasury ?? SANDBOX_TREASURY),
  }
}

/** Opens a key with one use, and the one beside it in a rotation. */
export async function openRotatingKey(
  name: RotatingKeyName,
  config: Pick<Config, 'rotatingKeys'>,
  { keys, dataKey }: { readonly keys: Pick<Keys, 'openPrivateKey'>; readonly dataKey: Uint8Array },
): Promise<RotatingKey> {
  const { current, previous } = config.rotatingKeys[name]
  const { curve, derive } = rotatingKeys[name]
  const open = (variable: string, text: string) =>
    text === DERIVED ? derive(dataKey) : keys.openPrivateKey(variable, text, curve)
  return {
    current: await open(name, current ?? DERIVED),
    previous: previous === null ? null : await open(`${name}_PREVIOUS`, previous),
  }
}

/** The session secret and the data keys; null if none is configured. */
async function openSecrets(config: Config, keys: Keys) {
  const { sessionSecret, sessionSecretPrevious } = config
  const [session, sessionPrevious, { current: data, previous }] = await Promise.all([
    sessionSecret === null ? null : keys.openSecret('SESSION_SECRET', sessionSecret),
    sessionSecretPrevious === null ? null : keys.openSecret('SESSION_SECRET_PREVIOUS', sessionSecretPrevious),
    openDataKeys(keys, config),
  ])
  // The configuration has compared only what it could see.
  if (session !== null && session === data)
    throw new Error('DATA_KEY must differ from SESSION_SECRET, so that leaking one does not expose both.')
  return { session, sessionPrevious, data, previous }
}

/**
 * Origins of our pages. Passkeys are bound to a domain, so pages of a gateway at 127.0.0.1 are served at localhost.
 * @throws Error when the relying party is not the origin's domain or a parent of it.
 */
function buildWebSettings(
  { rpId }: Pick<Config, 'rpId'>,
  origin: string,
): Pick<Settings, 'rpId' | 'webOrigins'> {
  const { hostname, port, protocol } = new URL(origin)
  const isLoopback = hostname === '127.0.0.1' || hostname === '[::1]'
  const domain = isLoopback ? 'localhost' : hostname
  const relyingParty = rpId ?? domain
  if (relyingParty !== domain && !domain.endsWith(`.${relyingParty}`))
    throw new Error(`RP_ID: ${relyingParty} is not ${domain} (of PUBLIC_ORIGIN) or a parent of it.`)
  const named = `${protocol}//${domain}${port === '' ? '' : `:${port}`}`
  return { rpId: relyingParty, webOrigins: [...new Set([named, ...listOriginNames(origin)])] }
}

/** Recipient of FX quote payments in the sandbox: the development mnemonic's ninth account. */
const SANDBOX_PAY_TO = '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f'

/** Recipient of spent stablecoins in the sandbox: the development mnemonic's tenth account. */
const SANDBOX_TREASURY = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'

function hexAddress(text: string): `0x${string}` {
  return `0x${text.slice(2)}`
}

/** Returns one line per invalid limit, and an error of the relying party. */
export function settingsErrors(config: Config): string[] {
  const { publicOrigin } = config
  const readings = [
    () => buildRateLimits(config),
    () => buildAmlLimits(config),
    () => (publicOrigin === null ? null : buildWebSettings(config, publicOrigin)),
  ]
  return readings.flatMap((read) => {
    try {
      read()
      return []
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)]
    }
  })
}

/** Rate limits of all classes. @throws Error naming a `RATE_` variable that is unknown or not `count/seconds`. */
export function buildRateLimits({ rates }: Config): ReadonlyMap<string, RateLimit> {
  const known = new Map<string, string>(Object.entries(rateClasses).map(([name, { env }]) => [env, name]))
  const limits = new Map<string, RateLimit>(
    Object.entries(rateClasses).map(([name, { count, seconds }]) => [name, { count, seconds }]),
  )
  for (const [variable, text] of Object.entries(rates)) {
    const name = known.get(variable)
    const limit = parseRateLimit(text)
    if (name === undefined)
      throw new Error(`${variable} is not a rate limit; use ${[...known.keys()].join(', ')}.`)
    if (limit === undefined) throw new Error(`${variable} must be count/seconds, such as 150/60.`)
    limits.set(name, limit)
  }
  // Key and account limits scale with the configured address limit, unless they are set.
  const mutations = limits.get('mutations') ?? rateClasses.mutations
  for (const name of ['key', 'account'] as const) {
    const { count, env } = rateClasses[name]
    const share = count / rateClasses.mutations.count
    if (rates[env] === undefined)
      limits.set(name, { count: Math.ceil(mutations.count * share), seconds: mutations.seconds })
  }
  return limits
}

/** Thresholds of the AML rules. @throws Error naming an invalid variable. */
function buildAmlLimits({ aml }: Pick<Config, 'aml'>): AmlLimits {
  const { velocity, structuring, thresholds } = defaultAmlLimits
  return {
    velocity:
      parseSetting('AML_VELOCITY', aml.velocity, parseVelocity, '50000/86400,10000/600/10') ?? velocity,
    structuring:
      parseSetting('AML_STRUCTURING', aml.structuring, parseStructuring, '3/86400/80') ?? structuring,
    thresholds:
      parseSetting('TRAVEL_RULE_THRESHOLDS', aml.thresholds, parseThresholds, 'default:1000,US:3000,EU:0') ??
      thresholds,
  }
}

function parseSetting<Value>(
  variable: string,
  text: string | null,
  read: (text: string) => Value | undefined,
  example: string,
): Value | undefined {
  const value = text === null ? undefined : read(text)
  if (text !== null && value === undefined) throw new Error(`${variable} must be like ${example}.`)
  return value
}

function buildKycLimits({ mode, kycLimits }: Pick<Config, 'mode' | 'kycLimits'>): KycLimits {
  if (kycLimits === null) return defaultKycLimits[mode]
  const micros = (usd: bigint) => usd * 1_000_000n
  return { none: micros(kycLimits.none), basic: micros(kycLimits.basic), full: null }
}
