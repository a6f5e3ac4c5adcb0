/** Several screenings as one: all are asked at once, and where one cannot answer, none is believed. */
import type { AddressScreening, Screening } from '../screening.ts'

/** The screening port over several. @param worstOf what their answers come to. */
export function joinScreening(
  screenings: readonly AddressScreening[],
  worstOf: (answers: readonly Screening[]) => Screening,
): AddressScreening {
  return {
    screen: async (address) => worstOf(await Promise.all(screenings.map((one) => one.screen(address)))),
  }
}
