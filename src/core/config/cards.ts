/** Configuration of cards and banking: issuers and webhook secrets. */
import { createPublicKey } from 'node:crypto'
import { z } from 'zod'
import { toMoney } from '../money/money.ts'

const url = z.url({ protocol: /^https?$/, abort: true })
const webhookSecret = z
  .string()
  .regex(/^(whsec_)?[A-Za-z0-9+/]{32,}={0,2}$/, 'must be whsec_ and base64 of 24 bytes or more')
const apiKey = z.string().regex(/^[\x21-\x7e]{1,256}$/, 'must be visible ASCII')

export const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/, 'must be an EVM address')

export const cardVariables = {
  LITHIC_API_URL: url.default('https://api.lithic.com'),
  LITHIC_API_KEY: apiKey.optional(),
  LITHIC_WEBHOOK_SECRET: webhookSecret.optional(),
  LITHIC_EVENTS_SECRET: webhookSecret.optional(),
  LITHIC_WEBHOOK_SECRET_PREVIOUS: webhookSecret.optional(),
  LITHIC_WEBHOOK_SECRET_ROTATED_AT: z.iso.datetime().optional(),
  CARD_PAN_ACCESS: z.enum(['on', 'off']).default('off'),
  CARD_TREASURY: address.optional(),
  CARD_SPREAD_BPS: z
    .string()
    .regex(/^(0|[1-9]\d{0,2})$/, 'must be basis points from 0 to 999')
    .transform(Number)
    .default(50),
  CARD_FLOAT: z
    .string()
    .regex(/^\d{1,6}(\.\d{1,2})?$/, 'must be an amount in USD, such as 50')
    .default('50'),
  CARD_PULL_MS: z
    .string()
    .regex(/^\d{1,4}$/, 'must be milliseconds from 0 to 9999')
    .transform(Number)
    .default(2_500),
  BRIDGE_API_URL: url.default('https://api.bridge.xyz'),
  BRIDGE_API_KEY: apiKey.optional(),
  BRIDGE_WEBHOOK_PUBLIC_KEY: z
    .string()
    // Most environments hold one line, with `
    // ` in place of line breaks.
    .transform((text) => text.replaceAll('\\n', '\n'))
    .refine(isPublicKey, 'must be an RSA public key in PEM')
    .optional(),
  VIRTUAL_ACCOUNTS_PER_CURRENCY: z
    .string()
    .regex(/^[1-9]\d?$/, 'must be a number from 1 to 99')
    .transform(Number)
    .default(1),
}

function isPublicKey(pem: string): boolean {
  try {
    return createPublicKey(pem).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}

const variables = z.object(cardVariables)

export interface CardConfig {
  readonly cards: {
    readonly url: string
    readonly apiKey: string | null
    /** Whether numbers of cards for one purchase may pass this gateway, to the agents that asked for them. */
    readonly isPanReadable: boolean
    /** Signs the authorization stream. */
    readonly webhookSecret: string | null
    /** Signs the event subscription; null: the same secret as the stream. */
    readonly eventsSecret: string | null
    /** The previous secret, accepted for a day after the rotation. */
    readonly previous: { readonly secret: string; readonly rotatedAt: Date } | null
    /** Chain address that receives spent stablecoins. */
    readonly treasury: string | null
    /** Basis points that conversions between two currencies are below the reference rate. */
    readonly spreadBps: number
    /** The most that an account's open purchases may promise of a wallet that its owner can empty: millionths of a USD. */
    readonly floatMicros: bigint
    /** How long a purchase waits until its money is in the escrow, in milliseconds. */
    readonly pullMs: number
  }
  readonly banking: {
    readonly url: string
    readonly apiKey: string | null
    /** PEM. */
    readonly webhookPublicKey: string | null
    readonly accountsPerCurrency: number
  }
}

export function readCards(settings: z.output<typeof variables>): CardConfig {
  const { LITHIC_WEBHOOK_SECRET_PREVIOUS: secret, LITHIC_WEBHOOK_SECRET_ROTATED_AT: rotatedAt } = settings
  return {
    cards: {
      url: settings.LITHIC_API_URL,
      apiKey: settings.LITHIC_API_KEY ?? null,
      isPanReadable: settings.CARD_PAN_ACCESS === 'on',
      webhookSecret: settings.LITHIC_WEBHOOK_SECRET ?? null,
      eventsSecret: settings.LITHIC_EVENTS_SECRET ?? null,
      // Without the time of the rotation, the previous secret is not accepted.
      previous:
        secret === undefined || rotatedAt === undefined ? null : { secret, rotatedAt: new Date(rotatedAt) },
      treasury: settings.CARD_TREASURY ?? null,
      spreadBps: settings.CARD_SPREAD_BPS,
      floatMicros: toMoney('USDC', settings.CARD_FLOAT).units,
      pullMs: settings.CARD_PULL_MS,
    },
    banking: {
      url: settings.BRIDGE_API_URL,
      apiKey: settings.BRIDGE_API_KEY ?? null,
      webhookPublicKey: settings.BRIDGE_WEBHOOK_PUBLIC_KEY ?? null,
      accountsPerCurrency: settings.VIRTUAL_ACCOUNTS_PER_CURRENCY,
    },
  }
}

const ROTATION_MS = 24 * 60 * 60 * 1000

/** Secrets valid at a given time, newest first. @param sandbox the sandbox's own secret, used if none is configured. */
export function listWebhookSecrets(
  { webhookSecret, previous }: CardConfig['cards'],
  sandbox: string | null,
): (now: Date) => readonly string[] {
  const current = webhookSecret ?? sandbox
  return (now) => {
    const isOver = previous !== null && now.getTime() - previous.rotatedAt.getTime() > ROTATION_MS
    return [...(current === null ? [] : [current]), ...(previous === null || isOver ? [] : [previous.secret])]
  }
}

/** Secrets of events valid at a given time; without one of their own, those of the authorization stream. */
export function listEventSecrets(
  cards: CardConfig['cards'],
  sandbox: string | null,
): (now: Date) => readonly string[] {
  const { eventsSecret } = cards
  return eventsSecret === null ? listWebhookSecrets(cards, sandbox) : () => [eventsSecret]
}
