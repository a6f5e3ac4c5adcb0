/** Movements of a wallet that may already be on the chain but are not booked yet. */
import type { Stablecoin } from '../../../core/money/money.ts'
import { openRelaysTo } from '../relays/relay-store.ts'
import { lowerCase, type OnChain, readOpenTransfers } from '../store.ts'
import type { ReconciledWallet } from './booked-balances.ts'
import { findOwedMints } from './owed-mints.ts'

/**
 * @property leaving smallest units by token.
 * @property isArriving a transfer, a relay, a swap or a purse's return to the wallet is open.
 */
export interface PendingMovements {
  readonly leaving: ReadonlyMap<Stablecoin, bigint>
  readonly isArriving: boolean
}

/** Reads what the gateway's own operations may have moved without having booked it. */
export async function readPendingMovements(
  parts: OnChain,
  { accountId, address }: ReconciledWallet,
): Promise<PendingMovements> {
  const transfers = await readOpenTransfers(parts, { accountId, address })
  const leaving = new Map<Stablecoin, bigint>()
  for (const { wallet, token, units } of transfers)
    if (wallet.accountId === accountId && !wallet.isEscrow)
      leaving.set(token, (leaving.get(token) ?? 0n) + units)
  // Sandbox: money that is booked but not minted yet is missing on the chain like money that left.
  for (const { token, units } of await findOwedMints(parts, accountId))
    leaving.set(token, (leaving.get(token) ?? 0n) + units)
  const isArriving =
    transfers.some(({ destination }) => destination === lowerCase(address)) ||
    (await openRelaysTo(parts, address)).length > 0 ||
    (await hasOpenSweep(parts, accountId)) ||
    (await hasOpenSwap(parts, accountId))
  return { leaving, isArriving }
}

/** Checks whether what a swap bought may be in the wallet without being booked. */
async function hasOpenSwap({ database, chain }: OnChain, accountId: string): Promise<boolean> {
  const row = await database.kysely
    .selectFrom('swap_order')
    .select('id')
    .where('account_id', '=', accountId)
    .where((where) =>
      where.or([
        where.and([where('chain', '=', chain.name), where('state', '=', 'submitted')]),
        // It may have been minted since its message is known; before, the search finds the mint.
        where.and([
          where('to_chain', '=', chain.name),
          where('state', 'in', ['submitted', 'bridging']),
          where('message_nonce', 'is not', null),
        ]),
      ]),
    )
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Checks whether a purse of the account is returning its money to the wallet. */
async function hasOpenSweep({ database }: OnChain, accountId: string): Promise<boolean> {
  const row = await database.kysely
    .selectFrom('purse_sweep')
    .innerJoin('purse', 'purse.id', 'purse_sweep.purse_id')
    .select('purse_sweep.id')
    .where('purse.account_id', '=', accountId)
    .where('purse_sweep.state', '=', 'open')
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}
