/** Screening in the sandbox with the AML rules of the policies, which are injected. */
import type { Address } from '../chain/port.ts'
import type { AddressScreening, Screening } from './port.ts'

/** The screening port over a pure rule. @param judge evaluates an address. */
export function createSandboxScreening(judge: (address: Address) => Screening): AddressScreening {
  return { screen: async (address) => judge(address) }
}
