/** Reads how much cards may spend from an owner-held wallet, according to the chains. */
import { type Balance, balances } from '../../../books/ledger/balances.ts'
import type { Coverage } from '../../../books/spending/coverage.ts'
import { isStablecoin } from '../../../books/spending/sources.ts'
import type { Clock } from '../../../core/base/clock.ts'
import type { Log } from '../../../core/base/log.ts'
import { timers } from '../../../core/base/timers.ts'
import { stablecoins } from '../../../core/money/money.ts'
import { type Address, CARDS_AGENT, type Chain, type Wallet } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import { findOwnedWallet } from '../store.ts'

/** How long a purchase waits for the chains. Without an answer of one, the wallet funds nothing there. */
const TIMEOUT_MS = 1_000

type CoverageChain = Pick<Chain, 'name' | 'readAllowance' | 'allowancePrices' | 'readBalance'>

export interface CoverageParts {
  readonly database: Connection
  readonly chains: { readonly all: readonly CoverageChain[] }
  readonly clock: Clock
  readonly log: Log
}

/** What is read beside a chain, before it. */
interface Booked {
  readonly wallet: Wallet & { readonly address: Address }
  readonly rows: readonly Balance[]
  readonly since: Date
}

/**
 * Reads the chains on which the account has stablecoins, all at once.
 * @returns nothing when the account has no owner-held wallet. A chain that does not answer in time is left out.
 */
export async function readCoverages(parts: CoverageParts, accountId: string): Promise<readonly Coverage[]> {
  const { database, chains, clock } = parts
  const wallet = await findOwnedWallet(database, accountId)
  if (wallet === undefined || wallet.owner.kind === 'gateway') return []
  const since = clock()
  // The books are read before the chain: a later withdrawal may or may not be on the chain yet.
  const rows = await balances(database, accountId)
  const isFunded = ({ name }: CoverageChain) =>
    rows.some(({ place, asset, available }) => place === name && isStablecoin(asset) && available > 0n)
  const read = await Promise.all(
    chains.all.filter(isFunded).map((chain) => readInTime(parts, chain, { wallet, rows, since })),
  )
  return read.filter((coverage) => coverage !== null)
}

async function readInTime(
  { log }: Pick<CoverageParts, 'log'>,
  chain: CoverageChain,
  booked: Booked,
): Promise<Coverage | null> {
  const waiting = new AbortController()
  const late = timers.sleep(TIMEOUT_MS, { signal: waiting.signal }).then(
    () => null,
    () => null,
  )
  const reading = read(chain, booked).catch((err: unknown) => {
    const { accountId } = booked.wallet
    log.warn(
      { err, accountId, chain: chain.name },
      'the card coverage of a wallet cannot be read from a chain',
    )
    return null
  })
  const coverage = await Promise.race([reading, late])
  waiting.abort()
  return coverage
}

async function read(chain: CoverageChain, { wallet, rows, since }: Booked): Promise<Coverage | null> {
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
      const row = rows.find(({ place, asset }) => place === chain.name && asset === token)
      return {
        token,
        price: chain.allowancePrices[token],
        onChain: onChain[index] ?? 0n,
        booked: (row?.available ?? 0n) + (row?.held ?? 0n),
      }
    }),
  }
}
