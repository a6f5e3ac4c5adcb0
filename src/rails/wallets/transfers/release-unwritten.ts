import { releaseOrphans } from '../../../books/spending/orphans.ts'

/** Releases money reserved for transfers and relays that were never written. @param before newer ones may still be. */
export function releaseUnwrittenTransfers(
  parts: Parameters<typeof releaseOrphans>[0],
  before: Date,
): Promise<void> {
  return releaseOrphans(parts, {
    operations: ['wallets.transfer', 'swaps.execute', 'transfers.gasless', 'x402.fx', 'cards.return'],
    tables: ['transfer', 'relay'],
    before,
  })
}
