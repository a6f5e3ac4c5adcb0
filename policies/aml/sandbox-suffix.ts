import type { Screening } from './screening.ts'

/**
 * The sandbox's own list: addresses ending in 9999 are sanctioned, those ending in 8888 need review, all others are
 * clear.
 */
export function screenSandboxSuffix(address: string): Screening {
  const lists = ['sandbox']
  if (address.endsWith('9999')) return { result: 'blocked', lists }
  if (address.endsWith('8888')) return { result: 'review', lists }
  return { result: 'clear', lists }
}
