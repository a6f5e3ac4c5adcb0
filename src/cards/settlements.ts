/** Stablecoins that cards have spent, on their way to the treasury: each is a reservation that a transfer settles. */
import type { NewId } from '../ids.ts'
import { type Stablecoin, stablecoins } from '../money.ts'
import type { Connection } from '../storage/database.ts'

/** Money to send. */
export interface CardSettlement {
  readonly decisionId: string
  readonly accountId: string
  readonly token: Stablecoin
  readonly units: bigint
}

/** Settlements that no transfer carries yet. */
export async function unsentSettlements(
  database: Connection,
  limit: number,
): Promise<readonly CardSettlement[]> {
  const rows = await database.kysely
    .selectFrom('card_settlement')
    .innerJoin('reservation', 'reservation.decision_id', 'card_settlement.decision_id')
    .leftJoin('transfer', 'transfer.decision_id', 'card_settlement.decision_id')
    .select([
      'card_settlement.decision_id',
      'card_settlement.asset',
      'card_settlement.units',
      'reservation.account_id',
    ])
    .where('reservation.status', '=', 'reserved')
    .where('transfer.id', 'is', null)
    .orderBy('card_settlement.decision_id')
    .limit(limit)
    .execute()
  return rows.flatMap((row) => {
    const token = stablecoins.find((symbol) => symbol === row.asset)
    return token === undefined
      ? []
      : [{ decisionId: row.decision_id, accountId: row.account_id, token, units: row.units }]
  })
}

/**
 * Takes back what the chain refused, to be tried again: the merchant was paid whatever the chain says.
 * @returns how many could not, because the owner has spent the money meanwhile.
 */
export async function retakeSettlements(
  { database, newId }: { database: Connection; newId: NewId },
  at: Date,
): Promise<number> {
  const rows = await database.kysely
    .selectFrom('card_settlement')
    .innerJoin('reservation', 'reservation.decision_id', 'card_settlement.decision_id')
    .select('card_settlement.decision_id')
    .where('reservation.status', '=', 'released')
    .where('card_settlement.retried_by', 'is', null)
    .limit(100)
    .execute()
  let missing = 0
  for (const { decision_id } of rows) {
    const [row] = await database.call<{ verdict: string }>(
      { name: 'card_settle_again', text: 'select verdict from card_settle_again($1, $2, $3)' },
      [decision_id, newId('dec', at), at],
    )
    if (row?.verdict === 'insufficient_funds') missing += 1
  }
  return missing
}

/** Approvals that nothing was heard of since before a moment. */
export async function forgottenAuthorizations(
  database: Connection,
  { before, limit }: { before: Date; limit: number },
): Promise<readonly string[]> {
  const rows = await database.kysely
    .selectFrom('card_authorization')
    .select('processor_token')
    .where('status', '=', 'pending')
    .where('created_at', '<', before)
    .limit(limit)
    .execute()
  return rows.map(({ processor_token }) => processor_token)
}
