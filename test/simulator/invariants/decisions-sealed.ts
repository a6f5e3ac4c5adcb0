import { readKeySet } from '../../../src/records/decisions/receipt-keys.ts'
import { readHead, sealedPages } from '../../../src/records/decisions/store.ts'
import { verifyChain } from '../../../src/records/decisions/verify-chain.ts'
import { type Invariant, show } from './invariant.ts'

export const decisionsSealed: Invariant = {
  sentence: 'The chain of decisions has no gap, and every seal verifies.',
  check: async ({ world }) => {
    const { books } = world.database
    const dataKey = world.running[0]?.dataKey
    if (dataKey === undefined) return ['no gateway runs at rest']
    const keySet = await readKeySet(books, dataKey)
    const { fault } = await verifyChain(sealedPages(books), { keySet, expected: await readHead(books) })
    return fault === null ? [] : [show(fault)]
  },
}
