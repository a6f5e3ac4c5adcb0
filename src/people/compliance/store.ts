import { seal } from '../../core/base/seal.ts'
import { type Money, type Stablecoin, stablecoins } from '../../core/money/money.ts'
import type { Address } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import type { TravelRuleTable } from '../../storage/schema.ts'

/** A record to store. @property payload personal data, stored sealed. */
export interface TravelRuleRecord {
  readonly id: string
  readonly accountId: string
  readonly status: TravelRuleTable['status']
  readonly token: string
  readonly units: bigint
  readonly destination: string
  readonly chain: string
  readonly decisionId: string | null
  readonly payload: string
  /** Institution to notify; null: none. */
  readonly institution: { readonly name: string; readonly lei: string | null } | null
}

/** Sealing purpose of payloads. */
export const TRAVEL_RULE_PURPOSE = 'travel rule'

/** Stores a record. @returns false when its transfer already has one. */
export async function insertTravelRule(
  { database, dataKey }: { database: Connection; dataKey: Uint8Array },
  record: TravelRuleRecord,
  at: Date,
): Promise<boolean> {
  const row = await database.kysely
    .insertInto('travel_rule')
    .values({
      id: record.id,
      account_id: record.accountId,
      status: record.status,
      token: record.token,
      units: record.units,
      destination: record.destination,
      chain: record.chain,
      decision_id: record.decisionId,
      sealed: seal(dataKey, { purpose: TRAVEL_RULE_PURPOSE, owner: record.id }, record.payload),
      created_at: at,
      erased_at: null,
      vasp_name: record.institution?.name ?? null,
      vasp_lei: record.institution?.lei ?? null,
      tried_at: null,
    })
    .onConflict((conflict) => conflict.column('decision_id').doNothing())
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Finds the status of an account's record. */
export async function findTravelRule(
  database: Connection,
  { id, accountId }: { id: string; accountId: string },
): Promise<{ status: TravelRuleTable['status']; answer: string | null; sentAt: Date | null } | undefined> {
  return database.kysely
    .selectFrom('travel_rule')
    .select(['status', 'answer', 'sent_at as sentAt'])
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
}

/** Attaches a record to a transfer's decision, once. @returns false when another transfer has it. */
export async function claimTravelRule(
  database: Connection,
  { id, decisionId }: { id: string; decisionId: string },
): Promise<boolean> {
  const rows = await database.call<{ id: string }>(
    {
      name: 'compliance_claim_travel_rule',
      text: 'update travel_rule set decision_id = $2 where id = $1 and travel_rule_is_unused(decision_id) returning id',
    },
    [id, decisionId],
  )
  return rows.length === 1
}

/** Finds an account's transfer. */
export async function findOwnTransfer(
  database: Connection,
  { accountId, id }: { accountId: string; id: string },
): Promise<
  | { money: Money & { asset: Stablecoin }; destination: Address; chain: string; decisionId: string }
  | undefined
> {
  const row = await database.kysely
    .selectFrom('transfer')
    .select(['token', 'units', 'destination', 'chain', 'decision_id as decisionId'])
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (row === undefined) return undefined
  const { token, units, destination, ...rest } = row
  const asset = stablecoins.find((symbol) => symbol === token)
  if (asset === undefined) throw new Error(`the stored symbol ${token} is not a known stablecoin`)
  return { ...rest, money: { asset, units }, destination: `0x${destination.slice(2)}` }
}

/** Reads an account's country; null when unknown. */
export async function readCountry(database: Connection, accountId: string): Promise<string | null> {
  const { country } = await database.kysely
    .selectFrom('account')
    .select('country')
    .where('id', '=', accountId)
    .executeTakeFirstOrThrow()
  return country
}

/** Erases the personal data in an account's Travel Rule records; the records and their transfers stay. */
export async function eraseTravelRules(
  database: Connection,
  { accountId, at }: { accountId: string; at: Date },
): Promise<void> {
  await database.kysely
    .updateTable('travel_rule')
    .set(({ eb }) => ({
      sealed: null,
      erased_at: at,
      // An empty name keeps the fact that an institution was notified, which determines the meaning of its answer.
      vasp_name: eb.case().when('vasp_name', 'is', null).then(null).else('').end(),
      vasp_lei: null,
      answer: null,
    }))
    .where('account_id', '=', accountId)
    .where('sealed', 'is not', null)
    .execute()
  await database.kysely
    .updateTable('travel_rule_decision')
    .set({ reason: '' })
    .where('travel_rule_id', 'in', (own) =>
      own.selectFrom('travel_rule').select('id').where('account_id', '=', accountId),
    )
    .execute()
}
