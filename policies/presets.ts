/** Spend policies to begin with: what a consent page offers for a key that can spend. */

/** A policy's limits in a word. Amounts in USD. @property approvalAbove the owner is asked above it; null: never. */
export interface PolicyPreset {
  readonly name: string
  readonly title: string
  readonly perTransaction: string
  readonly daily: string
  readonly approvalAbove: string | null
}

/** From the most careful; the first is what nobody changed. */
export const policyPresets: readonly PolicyPreset[] = [
  { name: 'careful', title: 'Careful', perTransaction: '5', daily: '20', approvalAbove: '2' },
  { name: 'everyday', title: 'Everyday', perTransaction: '50', daily: '200', approvalAbove: '25' },
  { name: 'generous', title: 'Generous', perTransaction: '500', daily: '1000', approvalAbove: null },
]
