/** Screening of the sandbox: the AML rules of the policies, asked as a provider would be. The rules are handed in. */
import type { Address } from '../chain.ts'
import type { AddressScreening, Screening } from '../screening.ts'

/** The screening port over a pure rule. @param judge says what the lists hold on an address. */
export function createSandboxScreening(judge: (address: Address) => Screening): AddressScreening {
  return { screen: async (address) => judge(address) }
}
