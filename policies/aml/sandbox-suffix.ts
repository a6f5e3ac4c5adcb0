import type { Screening } from './screening.ts'

/** The sandbox's own list: an address that ends in 9999 is sanctioned, in 8888 needs review; every other one is clear. */
export function screenSandboxSuffix(address: string): Screening {
  const lists = ['sandbox']
  if (address.endsWith('9999')) return { result: 'blocked', lists }
  if (address.endsWith('8888')) return { result: 'review', lists }
  return { result: 'clear', lists }
}
