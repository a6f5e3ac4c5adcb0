/** Compares ledger and chain, a page of wallets a round, for ever around. */
import { decimalOf } from '../money/money.ts'
import { type ReconciliationDependencies, reconcileWallet } from '../wallets/reconcile/reconcile.ts'
import { pageOfWallets } from '../wallets/store.ts'

/** Wallets a round: a page costs the node four reads a wallet. */
const PAGE = 100

/** A job's round. It remembers where it was, and what it has raised the alarm for already. */
export function createReconcile(parts: ReconciliationDependencies): (signal: AbortSignal) => Promise<void> {
  const { database, log } = parts
  const alarmed = new Set<string>()
  let after = ''
  return async (signal) => {
    const wallets = await pageOfWallets(database, after, PAGE)
    for (const wallet of wallets) {
      if (signal.aborted) return
      const { address } = wallet
      const missing = await reconcileWallet(parts, wallet).catch((err: unknown) => {
        log.warn({ err, address }, 'a wallet cannot be compared yet')
        return []
      })
      for (const { token, booked, onChain } of missing) {
        const [inBooks, there] = [booked, onChain].map((units) => decimalOf({ asset: token, units }))
        const alarm = `${address} ${token} ${inBooks} ${there}`
        if (alarmed.has(alarm)) continue
        alarmed.add(alarm)
        log.error(
          { address, token, inBooks, onChain: there },
          'a wallet has less on the chain than in the books',
        )
      }
    }
    after = wallets.length < PAGE ? '' : (wallets.at(-1)?.accountId ?? '')
  }
}
