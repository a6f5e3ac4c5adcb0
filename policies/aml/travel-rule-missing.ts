import type { Screening } from './screening.ts'

/** Wants a review of a transfer that the Travel Rule asks data of and that comes without. */
export function screenTravelRule({
  isRequired,
  isOnRecord,
}: {
  isRequired: boolean
  isOnRecord: boolean
}): Screening {
  return { result: isRequired && !isOnRecord ? 'review' : 'clear', lists: ['travel_rule'] }
}
