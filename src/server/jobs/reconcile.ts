/** Compares ledger and chain in an endless cycle, one page of wallets per round. */
import { toDecimal } from '../../core/money/money.ts'
import { findDifferingWallets } from '../../rails/wallets/reconcile/find-differing-wallets.ts'
import { type ReconciliationDependencies, reconcileWallet } from '../../rails/wallets/reconcile/reconcile.ts'
import { readWalletPage } from '../../rails/wallets/store.ts'

/** Wallets per round; each wallet costs the node four reads. */
const PAGE = 100

/**
 * Creates the job's round, which remembers its position and the alarms it has logged.
 * @returns the number of wallets with a difference.
 */
export function createReconcile(parts: ReconciliationDependencies): (signal: AbortSignal) => Promise<number> {
  const { database, chain, log } = parts
  const alarmed = new Set<string>()
  let after = ''
  return async (signal) => {
    const wallets = await readWalletPage(database, after, PAGE)
    const differing = await findDifferingWallets(parts, wallets)
    for (const wallet of differing) {
      if (signal.aborted) break
      const { address } = wallet
      const missing = await reconcileWallet(parts, wallet).catch((err: unknown) => {
        log.warn({ err, chain: chain.name, address }, 'comparing a wallet failed')
        return []
      })
      for (const { token, booked, onChain } of missing) {
        const [inBooks, onChainAmount] = [booked, onChain].map((units) => toDecimal({ asset: token, units }))
        const alarm = `${address} ${token} ${inBooks} ${onChainAmount}`
        if (alarmed.has(alarm)) continue
        alarmed.add(alarm)
        log.error(
          { chain: chain.name, address, token, inBooks, onChain: onChainAmount },
          'a wallet holds less on the chain than the ledger booked',
        )
      }
    }
    after = wallets.length < PAGE ? '' : (wallets.at(-1)?.accountId ?? '')
    return differing.length
  }
}
