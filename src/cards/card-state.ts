/** The controls of a card as the journal holds them: never its name or number. */
import { type Json, toJson } from '../base/json.ts'
import { viewCard } from './card-view.ts'
import type { Card } from './store.ts'

/** The state of a card's controls. */
export function cardState(card: Card): Json {
  const { status, limits, channels, mcc, priority } = viewCard(card)
  return toJson({ status, limits, channels, mcc, priority, keyId: card.keyId })
}
