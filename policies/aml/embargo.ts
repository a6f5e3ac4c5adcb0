import type { Screening } from './screening.ts'

/**
 * Countries under a comprehensive embargo (ISO 3166-1 alpha-2).
 * @see https://ofac.treasury.gov/sanctions-programs-and-country-information
 */
const embargoed: ReadonlySet<string> = new Set(['CU', 'IR', 'KP'])

/** Blocks a payee in an embargoed country. */
export function screenCountry(country: string): Screening {
  return { result: embargoed.has(country) ? 'blocked' : 'clear', lists: ['embargo'] }
}
