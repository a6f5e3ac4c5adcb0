import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { type Invariant, show } from './invariant.ts'

export const booksBalance: Invariant = {
  sentence: 'Postings sum to zero in each asset, and each balance is the sum of its postings.',
  check: async ({ world }) => {
    const { balanced, ...rest } = await trialBalance(world.database.books)
    return balanced ? [] : [show(rest)]
  },
}
