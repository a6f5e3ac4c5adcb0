/** Defects of swaps: what was bought is never booked, or stays when the swap is undone. */
import type { Mutant } from './mutant.ts'

export const swapMutants: readonly Mutant[] = [
  {
    name: 'swap-arrival-unseen',
    attack: 'What a swap bought is taken for a difference, and nobody books it.',
    edits: [
      {
        file: 'src/rails/swaps/settle-swap.ts',
        text: 'if (arrivals.length === 0) return',
        by: 'if (arrivals.length > 0) return',
      },
    ],
    kinds: ['swap'],
  },
  {
    name: 'swap-arrival-kept',
    attack: 'The block of a swap is replaced: what was sold is back, and what it bought stays, too.',
    edits: [
      {
        file: 'src/server/jobs/verify-settled.ts',
        text: 'await reverseSwap(',
        by: 'if (false) await reverseSwap(',
      },
    ],
    kinds: ['swap', 'crash', 'clock jump', 'reorganization', 'network split'],
  },
]
