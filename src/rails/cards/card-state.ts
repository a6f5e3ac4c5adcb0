/** A card's controls as recorded in the journal, without its name and number. */
import { type Json, toJson } from '../../core/base/json.ts'
import { viewCard } from './card-view.ts'
import type { Card } from './store.ts'

/** The journal's entry of a change. */
export function describeCardChange(before: Card, after: Card) {
  return {
    action: 'card.updated',
    object: { kind: 'card', id: before.id },
    before: cardState(before),
    after: cardState(after),
  } as const
}

export function cardState(card: Card): Json {
  const { status, limits, channels, mcc, priority } = viewCard(card)
  return toJson({ status, limits, channels, mcc, priority, keyId: card.keyId })
}
