/** Screening by a sanctions list. The rule that compares is handed in. */
import type { Sanctions, SanctionsList } from '../sanctions.ts'
import type { AddressScreening, Screening } from '../screening.ts'

/** The screening port over a list. @param judge says what the list holds on an address. */
export function createListScreening(
  sanctions: Sanctions,
  judge: (address: string, lists: readonly SanctionsList[]) => Screening,
): AddressScreening {
  return { screen: async (address) => judge(address, [await sanctions.latest()]) }
}
