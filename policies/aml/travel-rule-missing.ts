import type { Screening } from './screening.ts'

/** Requires a review of a transfer that needs Travel Rule data and has none. */
export function screenTravelRule({
  isRequired,
  isOnRecord,
}: {
  isRequired: boolean
  isOnRecord: boolean
}): Screening {
  return { result: isRequired && !isOnRecord ? 'review' : 'clear', lists: ['travel_rule'] }
}
