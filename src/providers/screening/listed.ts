/** Screening with a sanctions list; the comparison rule is injected. */
import type { Sanctions, SanctionsList } from '../sanctions/port.ts'
import type { AddressScreening, Screening } from './port.ts'

/** The screening port over a list. @param judge evaluates an address against the list. */
export function createListScreening(
  sanctions: Sanctions,
  judge: (address: string, lists: readonly SanctionsList[]) => Screening,
): AddressScreening {
  return { screen: async (address) => judge(address, [await sanctions.latest()]) }
}
