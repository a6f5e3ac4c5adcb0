/** Stablecoins that cards have spent, on their way to the treasury: each try is a reservation that a transfer settles. */
import { raiseAlarm } from '../alarms/alarms.ts'
import type { NewId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { type Stablecoin, stablecoins } from '../money/money.ts'
import { isAuthentic, type Vouch } from '../spending/authenticate.ts'
import { type ContentRow, contentColumns, contentOf, type MadeRow } from '../spending/decision-content.ts'
import { type Connection, callForRow, type Database } from '../storage/database.ts'

/** Tries after which a settlement is a debt and an alarm. With the pauses between them about a quarter of an hour. */
export const MAX_ATTEMPTS = 10

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

/** What judging a settlement needs. */
export interface SettlementParts {
  readonly database: Database
  readonly log: Pick<Log, 'error'>
  readonly settings: { readonly dataKey: Uint8Array }
}

/** A settlement's row beside the decision that its last try was reserved by. */
interface Row extends ContentRow {
  readonly settlement: string
  readonly owner: string
  readonly place: string
  readonly asset: string
  readonly units: bigint
  readonly mac: string | null
}

/** A person looks at it. */
const isStopped = `exists (select from alarm a where a.domain = 'cards' and a.object_id = s.id and a.resolved_at is null)`

const withDecision = `s.id as settlement, s.account_id as owner, s.place, s.asset, d.mac, ${contentColumns}
  from card_settlement s join decision d on d.id = s.decision_id`

/**
 * Those settlements that this gateway decided on, for no more than it decided. A row that somebody else wrote is an alarm,
 * and nothing is sent for it.
 */
async function authentic<Settlement extends Row>(
  { database, log, settings }: SettlementParts,
  rows: readonly Settlement[],
  at: Date,
): Promise<readonly Settlement[]> {
  const kept: Settlement[] = []
  for (const row of rows) {
    const content = contentOf(row)
    const { settlement, chain, asset, units = '0' } = Object(content.facts)
    const isOurs =
      isAuthentic(settings.dataKey, content, row.mac) &&
      content.operation === 'cards.settle' &&
      content.accountId === row.owner &&
      settlement === row.settlement &&
      chain === row.place &&
      asset === row.asset &&
      row.units <= BigInt(units)
    if (isOurs) kept.push(row)
    else
      await raiseAlarm(
        { database, log },
        {
          ...{ domain: 'cards', objectId: row.settlement, reason: 'settlement_not_authentic', at },
          reported: { decisionId: content.decisionId, asset: row.asset, units: row.units.toString() },
        },
      )
  }
  return kept
}

/** Settlements whose try no transfer carries yet. @throws where the database cannot be read. */
export async function unsentSettlements(
  parts: SettlementParts,
  { at, limit }: { at: Date; limit: number },
): Promise<readonly CardSettlement[]> {
  const rows = await parts.database.call<Row & { decision_id: string; is_ours: boolean }>(
    {
      name: 'card_settlements_unsent',
      text: `select s.decision_id, r.units, coalesce(w.is_ours, false) as is_ours, ${withDecision}
        join reservation r on r.decision_id = s.decision_id and r.status = 'reserved'
        left join lateral (select w.owner->>'kind' = 'gateway' as is_ours from wallet w where w.account_id = s.account_id) w on true
        where s.status = 'sending' and not exists (select from transfer t where t.decision_id = s.decision_id)
          and not ${isStopped}
        order by s.decision_id limit $1`,
    },
    [limit],
  )
  return (await authentic(parts, rows, at)).flatMap((row) => {
    const token = stablecoins.find((symbol) => symbol === row.asset)
    return token === undefined
      ? []
      : [
          {
            decisionId: row.decision_id,
            accountId: row.owner,
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
      [id, MAX_ATTEMPTS, at],
    )
    if (verdict === 'owed') owed.push(id)
  }
  return owed
}

/** Tries refused settlements again whose pause is over. */
export async function retrySettlements(
  { newId, vouch, ...parts }: SettlementParts & { newId: NewId; vouch: Vouch },
  at: Date,
): Promise<void> {
  const rows = await parts.database.call<Row>(
    {
      name: 'card_settlements_due',
      text: `select s.units, ${withDecision}
        where s.status = 'refused' and s.next_try_at <= $1 and not ${isStopped}
        order by s.next_try_at limit $2`,
    },
    [at, BATCH],
  )
  for (const { settlement } of await authentic(parts, rows, at))
    await parts.database.transaction(async (connection) => {
      const { made } = await callForRow<{ made: readonly MadeRow[] }>(
        connection,
        {
          name: 'card_settlement_retry',
          text: 'select decisions_made(array[$2]) as made from card_settlement_retry($1, $2, $3)',
        },
        [settlement, newId('dec', at), at],
      )
      await vouch(connection, made)
    })
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
export async function expediteSettlements(
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
export async function staleAuthorizations(
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
