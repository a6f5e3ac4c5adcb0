/**
 * Settlements: stablecoins spent by cards, on their way to the treasury. Each attempt is a reservation that a
 * transfer settles.
 */
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { escrowPlace } from '../../books/ledger/accounts.ts'
import { type AuthenticateDecisions, isAuthentic } from '../../books/spending/authenticate.ts'
import {
  type ContentRow,
  contentColumns,
  type MadeRow,
  toContent,
} from '../../books/spending/decision-content.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Log } from '../../core/base/log.ts'
import { type Stablecoin, stablecoins } from '../../core/money/money.ts'
import { type Connection, callForRow, type Database } from '../../storage/database.ts'

/** Failed attempts after which a settlement is a debt: the chain's refusal is evidence. */
export const MAX_ATTEMPTS = 1

/** Maximum settlements per round. */
const BATCH = 100

/**
 * A settlement to send.
 * @property place chain, or escrow on it. @property isWalletOurs whether the gateway signs for the wallet as its owner.
 */
export interface CardSettlement {
  readonly decisionId: string
  readonly accountId: string
  readonly place: string
  readonly token: Stablecoin
  readonly units: bigint
  readonly isWalletOurs: boolean
}

export interface SettlementParts {
  readonly database: Database
  readonly log: Pick<Log, 'error'>
  readonly settings: { readonly dataKey: Uint8Array }
}

/** A settlement's row with the decision that reserved its latest attempt. */
interface Row extends ContentRow {
  readonly settlement: string
  readonly owner: string
  readonly place: string
  readonly asset: string
  readonly units: bigint
  readonly mac: string | null
}

/** An open alarm has stopped the settlement. */
const isStopped = `exists (select from alarm a where a.domain = 'cards' and a.object_id = s.id and a.resolved_at is null)`

const withDecision = `s.id as settlement, s.account_id as owner, s.place, s.asset, d.mac, ${contentColumns}
  from card_settlement s join decision d on d.id = s.decision_id`

/**
 * Filters the settlements that this gateway decided, up to the decided amount. Any other row raises an alarm and is
 * not sent.
 */
async function filterAuthentic<Settlement extends Row>(
  { database, log, settings }: SettlementParts,
  rows: readonly Settlement[],
  at: Date,
): Promise<readonly Settlement[]> {
  const kept: Settlement[] = []
  for (const row of rows) {
    const content = toContent(row)
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

/** Finds settlements on a chain whose attempt has no transfer yet. @throws when the database cannot be read. */
export async function unsentSettlements(
  parts: SettlementParts,
  { chain, at, limit }: { chain: string; at: Date; limit: number },
): Promise<readonly CardSettlement[]> {
  const rows = await parts.database.call<Row & { decision_id: string; is_ours: boolean }>(
    {
      name: 'card_settlements_unsent',
      text: `select s.decision_id, r.units, coalesce(w.is_ours, false) as is_ours, ${withDecision}
        join reservation r on r.decision_id = s.decision_id and r.status = 'reserved'
        left join lateral (select w.owner->>'kind' = 'gateway' as is_ours from wallet w where w.account_id = s.account_id) w on true
        where s.status = 'sending' and s.place in ($1, $2)
          and not exists (select from transfer t where t.decision_id = s.decision_id) and not ${isStopped}
        order by s.decision_id limit $3`,
    },
    [chain, escrowPlace(chain), limit],
  )
  return (await filterAuthentic(parts, rows, at)).flatMap((row) => {
    const token = stablecoins.find((symbol) => symbol === row.asset)
    return token === undefined
      ? []
      : [
          {
            decisionId: row.decision_id,
            accountId: row.owner,
            place: row.place,
            token,
            units: row.units,
            isWalletOurs: row.is_ours,
          },
        ]
  })
}

/**
 * Records the outcomes of attempts. Refused amounts stay held and are retried after a pause.
 * @returns settlements that have just become debts.
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

/** Retries refused settlements whose pause is over. */
export async function retrySettlements(
  { newId, vouch, ...parts }: SettlementParts & { newId: NewId; vouch: AuthenticateDecisions },
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
  for (const { settlement } of await filterAuthentic(parts, rows, at))
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
 * Reopens a settlement whose transfer the chain has lost, within the transaction that reverses the transfer. The
 * settlement may not have been completed yet.
 * @returns whether the transfer belonged to a settlement.
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

/**
 * Schedules an account's refused settlements for an immediate retry, because the cause of the refusal may have
 * changed.
 */
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

/** Finds pending authorizations created before a moment. Reserves end with their cards. */
export async function staleAuthorizations(
  database: Connection,
  { before, limit }: { before: Date; limit: number },
): Promise<readonly string[]> {
  const rows = await database.kysely
    .selectFrom('card_authorization')
    .select('processor_token')
    .where('status', '=', 'pending')
    .where('is_reserve', '=', false)
    .where('created_at', '<', before)
    .limit(limit)
    .execute()
  return rows.map(({ processor_token }) => processor_token)
}
