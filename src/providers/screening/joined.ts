/** Combines screenings: all are queried at once, and if one fails, the whole screening fails. */
import type { AddressScreening, Screening } from './port.ts'

/** The screening port over several adapters. @param findWorst combines their results. */
export function joinScreening(
  screenings: readonly AddressScreening[],
  findWorst: (answers: readonly Screening[]) => Screening,
): AddressScreening {
  return {
    screen: async (address) => findWorst(await Promise.all(screenings.map((one) => one.screen(address)))),
  }
}
