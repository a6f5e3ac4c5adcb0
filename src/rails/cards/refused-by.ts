/** Declines that do not depend on counters. */
import { findControlRefusal } from '../../../policies/cards/controls.ts'
import { type KycLimits, neededLevel } from '../../../policies/kyc.ts'
import type { CardAuthorization, CardReason } from '../../providers/card-processor/port.ts'
import type { RailControls } from '../../providers/rail-controls/port.ts'
import { isSameMerchant } from './card-merchant.ts'
import type { CardWithPolicies } from './store.ts'

export interface CardRefusalDependencies {
  readonly railControls: Pick<RailControls, 'read'>
  readonly settings: {
    readonly mode: 'sandbox' | 'production'
    readonly kycLimits: KycLimits
    readonly cardSpreadBps: number
  }
}

/**
 * Returns the first reason to decline, or null. The counters check for a paused key under their lock, so it is
 * checked here only when there is no money to count.
 */
export async function findRefusal(
  { railControls, settings }: CardRefusalDependencies,
  card: CardWithPolicies,
  { channel, merchant, units }: Pick<CardAuthorization, 'channel' | 'merchant' | 'units'>,
  now: Date,
): Promise<CardReason | null> {
  if (card.isAccountLocked) return 'account_locked'
  if (!(await railControls.read('card-payments')).enabled) return 'rail_disabled'
  const refusal = findControlRefusal(card, { channel, mcc: merchant.mcc, units })
  if (refusal !== null) return refusal
  if (card.singleUse !== null && !isSameMerchant(card.singleUse, merchant)) return 'merchant_denied'
  const { key } = card
  const isOver = key !== null && key.expiresAt !== null && key.expiresAt.getTime() <= now.getTime()
  if (key?.status === 'revoked' || (key?.status === 'paused' && units === 0n) || isOver)
    return 'key_not_active'
  const limits = chooseKycLimits(settings, card)
  const needed = neededLevel(limits, { level: card.kycLevel, usdMicros: units * 10_000n })
  return needed === null ? null : 'kyc_required'
}

const unlimited: KycLimits = { none: null, basic: null, full: null }

/**
 * Spending limits of the holder. Demo guests are unidentified and hold nothing of value, so the sandbox does not
 * limit them.
 */
export function chooseKycLimits(
  { mode, kycLimits }: CardRefusalDependencies['settings'],
  { isGuest }: Pick<CardWithPolicies, 'isGuest'>,
): KycLimits {
  return mode === 'sandbox' && isGuest ? unlimited : kycLimits
}
