/** Stablecoins that cards have spent, on their way to the treasury: each try is a reservation that a transfer settles. */
import type { NewId } from '../ids.ts'
import { type Stablecoin, stablecoins } from '../money.ts'
import type { Vouch } from '../spending/authenticate.ts'
import type { ContentRow } from '../spending/decision-content.ts'
import { type Connection, callForRow } from '../storage/database.ts'

/** Tries after which a settlement is a debt and an alarm. With the pauses between them about a quarter of an hour. */
export const MAX_TRIES = 10

/** How many are looked at in a round. */
const BATCH = 100

/** Money to send. @property isWalletOurs whether the gateway signs for the wallet as its owner. */
export interface CardSettlement {
  readonly decisionId: string
  readonly accountId: string
  readonly token: Stablecoin
  readonly units: bigint
  readonly isWalletOurs: boolean
}

/** Settlements whose try no transfer carries yet. */
export async function unsentSettlements(
  database: Connection,
  limit: number,
): Promise<readonly CardSettlement[]> {
  const rows = await database.call<{
    decision_id: string
    account_id: string
    asset: string
    units: bigint
    is_ours: boolean
  }>(
    {
      name: 'card_settlements_unsent',
      text: `select s.decision_id, s.account_id, s.asset, r.units, coalesce(w.owner->>'kind' = 'gateway', false) as is_ours
        from card_settlement s
        join reservation r on r.decision_id = s.decision_id and r.status = 'reserved'
        left join wallet w on w.account_id = s.account_id
        where s.status = 'sending' and not exists (select from transfer t where t.decision_id = s.decision_id)
        order by s.decision_id limit $1`,
    },
    [limit],
  )
  return rows.flatMap((row) => {
    const token = stablecoins.find((symbol) => symbol === row.asset)
    return token === undefined
      ? []
      : [
          {
            decisionId: row.decision_id,
            accountId: row.account_id,
            token,
            units: row.units,
            isWalletOurs: row.is_ours,
          },
        ]
  })
}

/**
 * Notes how tries have ended. What the chain refused stays held, to be tried again after a pause.
 * @returns settlements that are debts from now on.
 */
export async function endSettlements(database: Connection, at: Date): Promise<readonly string[]> {
  const ended = await database.call<{ id: string }>(
    {
      name: 'card_settlements_ended',
      text: `select s.id from card_settlement s join reservation r on r.decision_id = s.decision_id
        where s.status = 'sending' and r.status <> 'reserved' order by s.id limit $1`,
    },
    [BATCH],
  )
  const owed: string[] = []
  for (const { id } of ended) {
    const { verdict } = await callForRow<{ verdict: string }>(
      database,
      { name: 'card_settlement_end', text: 'select verdict from card_settlement_end($1, $2, $3)' },
      [id, MAX_TRIES, at],
    )
    if (verdict === 'owed') owed.push(id)
  }
  return owed
}

/** Tries refused settlements again whose pause is over. */
export async function retrySettlements(
  { database, newId, vouch }: { database: Connection; newId: NewId; vouch: Vouch },
  at: Date,
): Promise<void> {
  const rows = await database.kysely
    .selectFrom('card_settlement')
    .select('id')
    .where('status', '=', 'refused')
    .where('next_try_at', '<=', at)
    .orderBy('next_try_at')
    .limit(BATCH)
    .execute()
  for (const { id } of rows) {
    const { made } = await callForRow<{ made: readonly ContentRow[] }>(
      database,
      {
        name: 'card_settlement_retry',
        text: 'select verdict, decisions_made(array[$2]) as made from card_settlement_retry($1, $2, $3)',
      },
      [id, newId('dec', at), at],
    )
    await vouch(database, made)
  }
}

/**
 * Opens a settlement again whose transfer the chain has lost, within the transaction that books the transfer back. Its end may
 * not have been noted yet.
 * @returns whether the transfer was a settlement's.
 */
export async function reopenSettlement(
  { kysely }: Connection,
  { decisionId, at }: { decisionId: string; at: Date },
): Promise<boolean> {
  const found = await kysely
    .selectFrom('card_settlement')
    .select('id')
    .where('decision_id', '=', decisionId)
    .executeTakeFirst()
  if (found === undefined) return false
  await kysely
    .updateTable('card_settlement')
    .set({ status: 'refused', next_try_at: at, ended_at: null })
    .where('id', '=', found.id)
    .where('status', 'in', ['settled', 'sending'])
    .execute()
  return true
}

/** Has refused settlements of an account tried again at once, because what refused them may have changed. */
export async function hurrySettlements(
  database: Connection,
  { accountId, at }: { accountId: string; at: Date },
): Promise<void> {
  await database.kysely
    .updateTable('card_settlement')
    .set({ next_try_at: at })
    .where('account_id', '=', accountId)
    .where('status', '=', 'refused')
    .execute()
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
