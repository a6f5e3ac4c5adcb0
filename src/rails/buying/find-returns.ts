/**
 * Money that a seller sent back, found by evidence: a deposit in the books whose `Transfer` log on the chain is from the payee to
 * the purse that paid, or to its wallet. What a seller says finds nothing.
 */
import { sql } from 'kysely'
import { available, type OwnerAccount, pursePlace } from '../../books/ledger/accounts.ts'
import type { Chain, Hex } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import { findWallet } from '../wallets/store.ts'
import { type Purchase, toHex } from './store.ts'

/** @property movement the ledger's transaction. @property entryId its entry in the activity. @property units smallest units. */
export interface ReturnedMoney {
  readonly movement: string
  readonly entryId: string
  readonly units: bigint
  readonly transactionHash: Hex
}

/** More deposits of one purse or wallet after a purchase are not looked at in one round. */
const MAX_DEPOSITS = 200

/** Deposits into accounts since a moment, the oldest first. */
export function queryDeposits(
  { kysely }: Pick<Connection, 'kysely'>,
  {
    accounts,
    asset,
    since,
    except,
  }: {
    accounts: readonly OwnerAccount[]
    asset: Purchase['asset']
    since: Date
    except: readonly string[]
  },
) {
  return (
    kysely
      .selectFrom('posting')
      .innerJoin('posting as first', (join) =>
        join.onRef('first.transaction_id', '=', 'posting.transaction_id').on('first.ordinal', '=', 1),
      )
      .select(['posting.transaction_id', 'posting.ordinal', 'posting.units', 'first.reference'])
      .where('posting.destination', 'in', accounts)
      // The conditions of the index "posting_arrived".
      .where(sql<boolean>`left(posting.source, 9) = 'external:' and left(posting.destination, 5) = 'acct_'`)
      .where('posting.asset', '=', asset)
      .where('first.kind', '=', 'deposit')
      .where('first.at', '>=', since)
      .where(({ eb, not, val }) => not(eb('posting.transaction_id', '=', eb.fn.any(val([...except])))))
      .orderBy('first.at')
      .orderBy('posting.transaction_id')
      .limit(MAX_DEPOSITS)
  )
}

/**
 * Finds deposits from the payee of a purchase since it was made, the oldest first. @param except movements that are known to return
 * some payment.
 * @throws when the chain cannot be read.
 */
export async function findReturns(
  { database, chain }: { database: Connection; chain: Pick<Chain, 'name' | 'transaction'> },
  purchase: Purchase,
  except: readonly string[],
): Promise<readonly ReturnedMoney[]> {
  const { account_id: accountId, purse_id: purseId, pay_to: payee, payer, token, asset } = purchase
  const wallet = await findWallet(database, accountId)
  const receivers = new Set([payer.toLowerCase(), wallet?.toLowerCase()])
  const deposits = await queryDeposits(database, {
    accounts: [available(accountId, chain.name), available(accountId, pursePlace(purseId))],
    ...{ asset, except, since: purchase.created_at },
  }).execute()
  const found: ReturnedMoney[] = []
  for (const { transaction_id: movement, ordinal, units, reference } of deposits) {
    const position = readPosition(movement)
    if (position === null || reference === null) continue
    const transactionHash = toHex(reference)
    const log = (await chain.transaction(transactionHash))?.transfers.find(
      (transfer) => transfer.position === position,
    )
    const isReturn =
      log !== undefined &&
      log.from.toLowerCase() === payee.toLowerCase() &&
      log.token.toLowerCase() === token.toLowerCase() &&
      log.units === units &&
      receivers.has(log.to.toLowerCase())
    if (isReturn) found.push({ movement, entryId: `${movement}.${ordinal}`, units, transactionHash })
  }
  return found
}

/** Position of the log that a deposit on the chain is named for; null for any other deposit. */
function readPosition(movement: string): number | null {
  const position = /^deposit:.+:0x[0-9a-f]{64}:(\d+)$/.exec(movement)?.[1]
  return position === undefined ? null : Number(position)
}
