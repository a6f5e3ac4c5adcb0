/**
 * Controls of a card: state, channels, merchants and the cap per purchase. The daily limit is counted where money is
 * held.
 */

/** Payment channels that a card's owner can switch. */
export const cardChannels = ['ecommerce', 'contactless', 'atm', 'magstripe'] as const

export type CardChannel = (typeof cardChannels)[number]

/** A card's controls. @property purchaseMax smallest units of the card's currency; null: no cap. */
export interface CardControls {
  readonly status: 'active' | 'frozen' | 'canceled'
  readonly channels: readonly string[]
  readonly mccAllow: readonly string[] | null
  readonly mccDeny: readonly string[]
  readonly purchaseMax: bigint | null
}

/** A purchase as the controls see it. @property channel `chip` has no switch; null when unknown. */
export interface CardPurchase {
  readonly channel: CardChannel | 'chip' | null
  readonly mcc: string | null
  readonly units: bigint
}

/** Reasons to decline a purchase. */
export type CardRefusal =
  | 'card_frozen'
  | 'card_canceled'
  | 'channel_off'
  | 'merchant_denied'
  | 'purchase_limit'

/**
 * Returns the first control that declines a purchase, or null. An unknown value is declined wherever a control
 * depends on it.
 */
export function findControlRefusal(
  card: CardControls,
  { channel, mcc, units }: CardPurchase,
): CardRefusal | null {
  if (card.status === 'canceled') return 'card_canceled'
  if (card.status === 'frozen') return 'card_frozen'
  if (!isChannelOn(card, channel)) return 'channel_off'
  if (!isMerchantAllowed(card, mcc)) return 'merchant_denied'
  return card.purchaseMax !== null && units > card.purchaseMax ? 'purchase_limit' : null
}

function isChannelOn({ channels }: CardControls, channel: CardPurchase['channel']): boolean {
  if (channel === 'chip') return true
  if (channel === null) return cardChannels.every((each) => channels.includes(each))
  return channels.includes(channel)
}

function isMerchantAllowed({ mccAllow, mccDeny }: CardControls, mcc: string | null): boolean {
  if (mcc === null) return mccAllow === null && mccDeny.length === 0
  return !mccDeny.includes(mcc) && (mccAllow === null || mccAllow.includes(mcc))
}
