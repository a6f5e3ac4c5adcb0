/** A card's controls as recorded in the journal, without its name and number. */
import { type Json, toJson } from '../../core/base/json.ts'
import { viewCard } from './card-view.ts'
import type { Card } from './store.ts'

export function cardState(card: Card): Json {
  const { status, limits, channels, mcc, priority } = viewCard(card)
  return toJson({ status, limits, channels, mcc, priority, keyId: card.keyId })
}
