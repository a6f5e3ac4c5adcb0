/** Cards that keys spend with: limited from the start, without cash and without the stripe that can be copied. */
import { loosenedControls } from '../../policies/cards/loosening.ts'
import type { Card } from './store.ts'

/** A day of a card whose owner has not said anything, in cents. */
const DAILY_MAX = 100_00n
const OWNERS_OWN: ReadonlySet<string> = new Set(['atm', 'magstripe'])

type Limited = Pick<Card, 'keyId' | 'dailyMax' | 'channels'>

/** What a card is like when it comes into the hands of a key, before its owner has said more. */
export function isHeldByKey<Kind extends Limited>(card: Kind, keyId: string | null): Kind {
  if (keyId === null || keyId === card.keyId) return { ...card, keyId }
  return {
    ...card,
    keyId,
    dailyMax: card.dailyMax ?? DAILY_MAX,
    channels: card.channels.filter((channel) => !OWNERS_OWN.has(channel)),
  }
}

/** What of a new card only its owner may ask for, with a second factor; empty where there is nothing. */
export function looseParts({ keyId, dailyMax, channels }: Limited): readonly string[] {
  const open = keyId === null ? [] : channels.filter((channel) => OWNERS_OWN.has(channel))
  return [...(dailyMax === null ? ['limits.daily'] : []), ...open.map((channel) => `channels.${channel}`)]
}

/** What a change of a card loosens, by name: controls, and the key whose policy binds it. */
export function loosenedParts(before: Card, after: Card): readonly string[] {
  const isUnbound = before.keyId !== null && after.keyId !== before.keyId
  // Binding takes away what keys do not start with: to give it back in the same change is to loosen.
  const bound = isHeldByKey(before, after.keyId)
  return [...loosenedControls(bound, after), ...(isUnbound ? ['agentId'] : [])]
}
