/** A card as its owner sees it, and what may be said of its controls. Never a number or a code. */
import { z } from 'zod'
import { cardChannels } from '../../policies/cards/controls.ts'
import { untrustedText, untrustedTextOrNull } from '../base/untrusted-text.ts'
import { amountMismatch, decimalAmount, decimalOf, moneyOf } from '../money/money.ts'
import { type Card, fundingAssets } from './store.ts'

const limit = z.string().nullable().describe('USD, as a decimal string; null: no limit.')
const channelsView = z
  .strictObject({
    ecommerce: z.boolean().describe('Purchases on the web, and others without the card at hand.'),
    contactless: z.boolean().describe('Held to a terminal.'),
    atm: z.boolean().describe('Cash.'),
    magstripe: z.boolean().describe('Swiped.'),
  })
  .describe('Ways of paying that are on. A chip in a terminal always is.')

/** A card. */
export const cardView = z.strictObject({
  id: z.string().describe('`card_…`'),
  status: z.enum(['active', 'frozen', 'canceled']).describe('`canceled` is for good.'),
  type: z.enum(['virtual', 'physical']).describe('What it is made of.'),
  brand: z.string().describe('Card network.'),
  last4: z.string().describe('Last four digits of its number.'),
  expMonth: z.int().describe('Month that it expires in, 1 to 12.'),
  expYear: z.int().describe('Year that it expires in.'),
  currency: z.literal('USD').describe('What purchases and limits are in.'),
  cardholderName: untrustedText('Name on the card.'),
  nickname: untrustedTextOrNull('What its owner calls it.'),
  agentId: z
    .string()
    .nullable()
    .describe(
      '`key_…`: the key whose spend policy decides on every purchase too; null: the owner’s own card.',
    ),
  limits: z
    .strictObject({ daily: limit, perPurchase: limit })
    .describe('Limits of the UTC calendar day and of one purchase.'),
  channels: channelsView,
  mcc: z
    .strictObject({
      allow: z
        .array(z.string())
        .nullable()
        .describe('Only merchants of these categories; null: any not denied.'),
      deny: z.array(z.string()).describe('Never merchants of these.'),
    })
    .describe('Merchant category codes (ISO 18245).'),
  priority: z.array(z.enum(fundingAssets)).describe('What purchases are paid from, in this order.'),
  createdAt: z.string().describe('When it was issued, ISO 8601 UTC.'),
})

/** A card as it is shown. */
export function viewCard(card: Card): z.output<typeof cardView> {
  const dollars = (units: bigint | null) => (units === null ? null : decimalOf({ asset: 'USD', units }))
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

/** Members by which a card's controls are changed. What is absent stays. */
export const controlMembers = {
  limits: z
    .strictObject({
      daily: dollars.describe('Most of one UTC calendar day, in USD; null: no limit.'),
      perPurchase: dollars.describe('Most of one purchase, in USD; null: no limit.'),
    })
    .optional()
    .describe('Limits to change.'),
  channels: channelsView.partial().optional().describe('Ways of paying to switch.'),
  mcc: z
    .strictObject({
      allow: codes
        .nullable()
        .optional()
        .describe('Only merchants of these categories; null: any not denied.'),
      deny: codes.optional().describe('Never merchants of these.'),
    })
    .optional()
    .describe('Merchant category codes (ISO 18245), four digits each.'),
  priority: z
    .array(z.enum(fundingAssets))
    .min(1)
    .refine((assets) => new Set(assets).size === assets.length, 'names an asset twice')
    .optional()
    .describe('What purchases are paid from, in this order; what is not named is never touched.'),
  nickname: z.string().trim().min(1).max(60).nullable().optional().describe('What to call it.'),
}

const controls = z.strictObject(controlMembers)

/** A card with some of its controls changed. */
export function withControls<Kind extends Pick<Card, ControlName>>(
  card: Kind,
  { limits, channels, mcc, priority, nickname }: z.output<typeof controls>,
): Kind {
  return {
    ...card,
    dailyMax: centsOf(limits?.daily, card.dailyMax),
    purchaseMax: centsOf(limits?.perPurchase, card.purchaseMax),
    channels: cardChannels.filter((channel) => channels?.[channel] ?? card.channels.includes(channel)),
    mccAllow: mcc?.allow === undefined ? card.mccAllow : mcc.allow,
    mccDeny: mcc?.deny ?? card.mccDeny,
    priority: priority ?? card.priority,
    nickname: nickname === undefined ? card.nickname : nickname,
  }
}

type ControlName = 'dailyMax' | 'purchaseMax' | 'channels' | 'mccAllow' | 'mccDeny' | 'priority' | 'nickname'

function centsOf(decimal: string | null | undefined, before: bigint | null): bigint | null {
  if (decimal === undefined) return before
  return decimal === null ? null : moneyOf('USD', decimal).units
}
