/** Presets of spend policies, offered by the consent page for a key that can spend. */

/**
 * Limits of a preset. Amounts in USD.
 * @property approvalAbove amount above which the owner must approve; null: never.
 */
export interface PolicyPreset {
  readonly name: string
  readonly title: string
  readonly perTransaction: string
  readonly daily: string
  readonly weekly: string
  readonly monthly: string
  readonly approvalAbove: string | null
}

/** Equal payments that a preset allows: more of them are a loop. */
export const presetRepeats = { count: 5, perSec: 600 } as const

/** From the strictest; the first is the default. */
export const policyPresets: readonly PolicyPreset[] = [
  {
    name: 'careful',
    title: 'Careful',
    perTransaction: '5',
    daily: '20',
    weekly: '60',
    monthly: '150',
    approvalAbove: '2',
  },
  {
    name: 'everyday',
    title: 'Everyday',
    perTransaction: '50',
    daily: '200',
    weekly: '600',
    monthly: '1500',
    approvalAbove: '25',
  },
  {
    name: 'generous',
    title: 'Generous',
    perTransaction: '500',
    daily: '1000',
    weekly: '3000',
    monthly: '7500',
    approvalAbove: null,
  },
]
