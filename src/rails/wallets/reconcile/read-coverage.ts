/** Reads how much cards may spend from an owner-held wallet, according to the chain. */
import { balances } from '../../../books/ledger/balances.ts'
import type { Coverage } from '../../../books/spending/coverage.ts'
import type { Clock } from '../../../core/base/clock.ts'
import type { Log } from '../../../core/base/log.ts'
import { timers } from '../../../core/base/timers.ts'
import { stablecoins } from '../../../core/money/money.ts'
import { type Address, CARDS_AGENT, type Chain, type Wallet } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import { findOwnedWallet } from '../store.ts'

/** How long a purchase waits for the chain. Without an answer the wallet funds nothing. */
const TIMEOUT_MS = 1_000

export interface CoverageParts {
  readonly database: Connection
  readonly chain: Pick<Chain, 'name' | 'readAllowance' | 'allowancePrices' | 'readBalance'>
  readonly clock: Clock
  readonly log: Log
}

/** @returns null when the account has no owner-held wallet, or the chain does not answer in time. */
export async function readCoverage(parts: CoverageParts, accountId: string): Promise<Coverage | null> {
  const wallet = await findOwnedWallet(parts.database, accountId)
  if (wallet === undefined || wallet.owner.kind === 'gateway') return null
  const waiting = new AbortController()
  const late = timers.sleep(TIMEOUT_MS, { signal: waiting.signal }).then(
    () => null,
    () => null,
  )
  const reading = read(parts, wallet).catch((err: unknown) => {
    parts.log.warn({ err, accountId }, 'the card coverage of a wallet cannot be read from the chain')
    return null
  })
  const coverage = await Promise.race([reading, late])
  waiting.abort()
  return coverage
}

async function read(
  { database, chain, clock }: CoverageParts,
  wallet: Wallet & { readonly address: Address },
): Promise<Coverage | null> {
  const since = clock()
  // The books are read before the chain: a later withdrawal may or may not be on the chain yet.
  const booked = (await balances(database, wallet.accountId)).filter(({ place }) => place === chain.name)
  const [allowance, ...onChain] = await Promise.all([
    chain.readAllowance(wallet, CARDS_AGENT),
    ...stablecoins.map((token) => chain.readBalance(token, wallet.address)),
  ])
  // An allowance shared with agents does not count as the cards' own.
  if (allowance === null || !allowance.isOwn) return null
  const { dailyMicros, spentMicros, onceMicros } = allowance
  const today = dailyMicros > spentMicros ? dailyMicros - spentMicros : 0n
  return {
    leftMicros: today + onceMicros,
    since,
    place: chain.name,
    tokens: stablecoins.map((token, index) => {
      const row = booked.find(({ asset }) => asset === token)
      return {
        token,
        price: chain.allowancePrices[token],
        onChain: onChain[index] ?? 0n,
        booked: (row?.available ?? 0n) + (row?.held ?? 0n),
      }
    }),
  }
}
