import type { Screening } from './screening.ts'

/** A sanctions list as data. @property addresses EVM addresses in lower case; they hold on every EVM chain. */
export interface SanctionsList {
  readonly name: string
  readonly addresses: ReadonlySet<string>
}

/** Screens an address, in any letter case, against lists. @see https://sanctionslist.ofac.treas.gov */
export function screenAddress(address: string, lists: readonly SanctionsList[]): Screening {
  const hits = lists.filter(({ addresses }) => addresses.has(address.toLowerCase()))
  if (hits.length > 0) return { result: 'blocked', lists: hits.map(({ name }) => name) }
  return { result: 'clear', lists: lists.map(({ name }) => name) }
}
