/** Defects of swaps and bridges: what arrived is never booked, or stays when it is undone. */
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
  {
    name: 'lost-mint-unnoticed',
    attack: 'The block of a mint is replaced: the money is not on the chain, and is spent from the books.',
    edits: [
      {
        file: 'src/server/jobs/verify-settled.ts',
        text: 'await verifyMint(parts, swap)',
        by: 'void verifyMint',
      },
    ],
    kinds: ['bridge', 'transfer by the owner', 'reorganization of the other chain'],
  },
  {
    name: 'attester-believed',
    attack: 'An attester that lies sends the money elsewhere, and the burn is spent for nothing.',
    edits: [
      {
        file: 'src/rails/swaps/settle-bridge.ts',
        text: 'isSameBurn(message, own.message)',
        by: 'true',
      },
    ],
    kinds: ['bridge', 'trouble of the bridge'],
  },
  {
    name: 'burn-never-taken-back',
    attack: 'The block of a burn is replaced for good: the money is back, and stays on its way, too.',
    edits: [
      {
        file: 'src/rails/swaps/reverse-swap.ts',
        text: 'return reverseBurn({ database, chain }, swap, at)',
        by: 'return void reverseBurn',
      },
    ],
    kinds: ['bridge', 'clock jump', 'network split', 'reorganization'],
  },
]
