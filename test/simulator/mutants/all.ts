import { cardMutants } from './cards.ts'
import { evidenceMutants } from './evidence.ts'
import type { Mutant } from './mutant.ts'
import { purchaseMutants } from './purchases.ts'
import { spendingMutants } from './spending.ts'
import { swapMutants } from './swaps.ts'

export const mutants: readonly Mutant[] = [
  ...spendingMutants,
  ...evidenceMutants,
  ...purchaseMutants,
  ...cardMutants,
  ...swapMutants,
]
