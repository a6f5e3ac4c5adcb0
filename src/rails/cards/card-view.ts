/** Views of a card and the schema of its controls. Card numbers and codes never appear. */
import { z } from 'zod'
import { cardChannels } from '../../../policies/cards/controls.ts'
import { controlDirections } from '../../../policies/cards/loosening.ts'
import type { Directions } from '../../../policies/directions.ts'
import { untrustedText, untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { amountMismatch, decimalAmount, toDecimal, toMoney } from '../../core/money/money.ts'
import { type Card, fundingAssets } from './store.ts'

const limit = z.string().nullable().describe('USD, as a decimal string; null: no limit.')
const channelsView = z
  .strictObject({
    ecommerce: z.boolean().describe('Online and other card-not-present purchases.'),
    contactless: z.boolean().describe('Contactless payments at a terminal.'),
    atm: z.boolean().describe('Cash withdrawals.'),
    magstripe: z.boolean().describe('Magnetic stripe payments.'),
  })
  .describe('Payment channels that are switched on. Chip payments are always on.')
  .meta({ id: 'CardChannels' })

export const cardView = z.strictObject({
  id: z.string().describe('`card_…`'),
  status: z.enum(['active', 'frozen', 'canceled']).describe('State of the card; `canceled` is permanent.'),
  type: z.enum(['virtual', 'physical']).describe('Form of the card.'),
  brand: z.string().describe('Card network.'),
  last4: z.string().describe('Last four digits of its number.'),
  expMonth: z.int().describe('Expiry month, 1 to 12.'),
  expYear: z.int().describe('Expiry year.'),
  currency: z.literal('USD').describe('Currency of purchases and limits.'),
  cardholderName: untrustedText('Name on the card.'),
  nickname: untrustedTextOrNull('Name the owner gave the card.'),
  agentId: z
    .string()
    .nullable()
    .describe('`key_…`: key whose spend policy also applies to every purchase; null: the owner’s own card.'),
  limits: z
    .strictObject({ daily: limit, perPurchase: limit })
    .describe('Limits per UTC calendar day and per purchase.'),
  channels: channelsView,
  mcc: z
    .strictObject({
      allow: z
        .array(z.string())
        .nullable()
        .describe('Allowed merchant categories; null: all that are not denied.'),
      deny: z.array(z.string()).describe('Denied merchant categories.'),
    })
    .describe('Merchant category codes (ISO 18245).'),
  priority: z.array(z.enum(fundingAssets)).describe('Assets that pay for purchases, in this order.'),
  createdAt: z.string().describe('When it was issued, ISO 8601 UTC.'),
})

cardView.register(z.globalRegistry, { id: 'Card' })

export function viewCard(card: Card): z.output<typeof cardView> {
  const dollars = (units: bigint | null) => (units === null ? null : toDecimal({ asset: 'USD', units }))
  const isOn = (channel: string) => card.channels.includes(channel)
  return {
    id: card.id,
    status: card.status,
    type: card.type,
    brand: card.brand,
    last4: card.last4,
    expMonth: card.expMonth,
    expYear: card.expYear,
    currency: 'USD',
    cardholderName: card.cardholderName,
    nickname: card.nickname,
    agentId: card.keyId,
    limits: { daily: dollars(card.dailyMax), perPurchase: dollars(card.purchaseMax) },
    channels: {
      ecommerce: isOn('ecommerce'),
      contactless: isOn('contactless'),
      atm: isOn('atm'),
      magstripe: isOn('magstripe'),
    },
    mcc: { allow: card.mccAllow === null ? null : [...card.mccAllow], deny: [...card.mccDeny] },
    priority: [...card.priority],
    createdAt: card.createdAt.toISOString(),
  }
}

const dollars = decimalAmount
  .superRefine((text, context) => {
    const misfit = amountMismatch(text, 'USD')
    if (misfit !== undefined) context.addIssue({ code: 'custom', message: misfit })
  })
  .nullable()
  .optional()
const codes = z.array(z.string().regex(/^\d{4}$/, 'must be four digits')).max(1000)

/** Members that change a card's controls. Absent members stay unchanged. */
export const controlMembers = {
  limits: z
    .strictObject({
      daily: dollars.describe('USD a UTC day; null: none.'),
      perPurchase: dollars.describe('USD; null: none.'),
    })
    .optional()
    .describe('Limits.'),
  channels: z
    .strictObject({
      ecommerce: z.boolean(),
      contactless: z.boolean(),
      atm: z.boolean(),
      magstripe: z.boolean(),
    })
    .partial()
    .optional()
    .describe('Ways of paying, on or off.'),
  mcc: z
    .strictObject({
      allow: codes.nullable().optional().describe('Null: all that are not denied.'),
      deny: codes.optional(),
    })
    .optional()
    .describe('Merchant category codes, ISO 18245.'),
  priority: z
    .array(z.enum(fundingAssets))
    .min(1)
    .max(fundingAssets.length)
    .refine((assets) => new Set(assets).size === assets.length, 'names an asset twice')
    .optional()
    .describe('Assets that pay, in this order; no others do.'),
  nickname: z.string().trim().min(1).max(60).nullable().optional().describe('Null removes it.'),
}

/** Member that binds a card to a key. */
export function boundKey(description: string) {
  return z.string().max(64).nullable().optional().describe(description)
}

const controls = z.strictObject(controlMembers)

const { dailyMax, purchaseMax, mccAllow, mccDeny, priority } = controlDirections

/** The direction in which each member loosens: that of the control that it sets. */
export const memberDirections: Directions<z.output<typeof controls>> = {
  limits: { daily: dailyMax, perPurchase: purchaseMax },
  channels: { ecommerce: 'on', contactless: 'on', atm: 'on', magstripe: 'on' },
  mcc: { allow: mccAllow, deny: mccDeny },
  priority,
  nickname: 'never',
}

export function withControls<Kind extends Pick<Card, ControlName>>(
  card: Kind,
  { limits, channels, mcc, priority, nickname }: z.output<typeof controls>,
): Kind {
  return {
    ...card,
    dailyMax: toCents(limits?.daily, card.dailyMax),
    purchaseMax: toCents(limits?.perPurchase, card.purchaseMax),
    channels: cardChannels.filter((channel) => channels?.[channel] ?? card.channels.includes(channel)),
    mccAllow: mcc?.allow === undefined ? card.mccAllow : mcc.allow,
    mccDeny: mcc?.deny ?? card.mccDeny,
    priority: priority ?? card.priority,
    nickname: nickname === undefined ? card.nickname : nickname,
  }
}

type ControlName = 'dailyMax' | 'purchaseMax' | 'channels' | 'mccAllow' | 'mccDeny' | 'priority' | 'nickname'

function toCents(decimal: string | null | undefined, before: bigint | null): bigint | null {
  if (decimal === undefined) return before
  return decimal === null ? null : toMoney('USD', decimal).units
}
