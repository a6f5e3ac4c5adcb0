/** What refuses a purchase before anything is counted. */
import { refusalOf } from '../../policies/cards/controls.ts'
import { type KycLimits, neededLevel } from '../../policies/kyc.ts'
import type { CardAuthorization, CardReason } from '../providers/card-processor.ts'
import type { RailControls } from '../providers/rail-controls.ts'
import type { CardWithPolicies } from './store.ts'

/** What it asks. */
export interface CardRefusalDependencies {
  readonly railControls: Pick<RailControls, 'read'>
  readonly settings: { readonly mode: 'sandbox' | 'production'; readonly kycLimits: KycLimits }
}

/**
 * The first that refuses, or null. A paused key is told by the counters, which read it under their lock: here only where
 * there is no money, and thus nothing to count.
 */
export async function refusedBy(
  { railControls, settings }: CardRefusalDependencies,
  card: CardWithPolicies,
  { channel, merchant, units }: Pick<CardAuthorization, 'channel' | 'merchant' | 'units'>,
  now: Date,
): Promise<CardReason | null> {
  if (card.isAccountLocked) return 'account_locked'
  if (!(await railControls.read('card-payments')).enabled) return 'rail_disabled'
  const refusal = refusalOf(card, { channel, mcc: merchant.mcc, units })
  if (refusal !== null) return refusal
  const { key } = card
  const isOver = key !== null && key.expiresAt !== null && key.expiresAt.getTime() <= now.getTime()
  if (key?.status === 'revoked' || (key?.status === 'paused' && units === 0n) || isOver)
    return 'key_not_active'
  const limits = kycLimitsOf(settings, card)
  const needed = neededLevel(limits, { level: card.kycLevel, usdMicros: units * 10_000n })
  return needed === null ? null : 'kyc_required'
}

const unlimited: KycLimits = { none: null, basic: null, full: null }

/** What the holder may spend at once. Demo guests are nobody, and have nothing of worth. */
export function kycLimitsOf(
  { mode, kycLimits }: CardRefusalDependencies['settings'],
  { isGuest }: Pick<CardWithPolicies, 'isGuest'>,
): KycLimits {
  return mode === 'sandbox' && isGuest ? unlimited : kycLimits
}
