/** Purchases of each card. */
import { bursar } from './gateway.ts'
import { resourceById } from './resource.ts'

export const purchasesOfCard = resourceById(
  (id) => bursar.cards.transactions({ id, limit: 50 }),
  ['card.', 'decision.'],
)
