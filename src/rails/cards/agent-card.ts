/**
 * Cards that keys spend with: limited by default, without cash withdrawals and without the magnetic stripe, which can
 * be copied.
 */
import { loosenedControls } from '../../../policies/cards/loosening.ts'
import type { Card } from './store.ts'

/** Default daily limit of a key's card, in cents. */
const DEFAULT_DAILY_CENTS = 100_00n
const OWNER_CHANNELS: ReadonlySet<string> = new Set(['atm', 'magstripe'])

type Limited = Pick<Card, 'keyId' | 'dailyMax' | 'channels'>

/** Binds a card to a key with default restrictions, which its owner may change. */
export function bindToKey<Kind extends Limited>(card: Kind, keyId: string | null): Kind {
  if (keyId === null || keyId === card.keyId) return { ...card, keyId }
  return {
    ...card,
    keyId,
    dailyMax:
      card.dailyMax === null || card.dailyMax > DEFAULT_DAILY_CENTS ? DEFAULT_DAILY_CENTS : card.dailyMax,
    channels: card.channels.filter((channel) => !OWNER_CHANNELS.has(channel)),
  }
}

/** Lists the parts of a new card that only its owner may request, with a second factor. */
export function listLooseParts({ keyId, dailyMax, channels }: Limited): readonly string[] {
  const open = keyId === null ? [] : channels.filter((channel) => OWNER_CHANNELS.has(channel))
  return [...(dailyMax === null ? ['limits.daily'] : []), ...open.map((channel) => `channels.${channel}`)]
}

/** Lists the parts that a change of a card loosens: controls, and the key whose policy binds it. */
export function listLoosenedParts(before: Card, after: Card): readonly string[] {
  const isUnbound = before.keyId !== null && after.keyId !== before.keyId
  // Binding removes the channels that keys do not start with, so adding them back in the same change is loosening.
  const bound = bindToKey(before, after.keyId)
  return [...loosenedControls(bound, after), ...(isUnbound ? ['agentId'] : [])]
}
