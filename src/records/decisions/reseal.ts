/** Seals everything in the database anew under the first sealing key. Whatever else a row holds stays as it is. */
import { sql } from 'kysely'
import { type DataKey, type Seal, seal, unsealBytes } from '../../core/base/seal.ts'
import type { Connection, Database } from '../../storage/database.ts'

/**
 * A place of sealed data. @property id column with a row's key. @property purpose of the seal. @property owner column with
 * the owner of the seal. @property member of a JSON column, whose text is base64url; @property ownerMember likewise.
 */
interface SealedColumn {
  readonly table: string
  readonly column: string
  readonly id: string
  readonly purpose: string
  readonly owner: string
  readonly member?: string
  readonly ownerMember?: string
  /** Rows at a time, where they are long. */
  readonly page?: number
}

const byId = (table: string, column: string, purpose: string): SealedColumn => ({
  table,
  column,
  id: 'id',
  purpose,
  owner: 'id',
})

/** Everything sealed that the database keeps. Offers of the x402 seller are with their clients, for minutes. */
export const sealedColumns: readonly SealedColumn[] = [
  { table: 'mfa', column: 'sealed_secret', id: 'account_id', purpose: 'mfa', owner: 'account_id' },
  {
    table: 'login_destination',
    column: 'sealed_address',
    id: 'destination_hash',
    purpose: 'address',
    owner: 'destination_hash',
  },
  {
    table: 'invitation',
    column: 'sealed_address',
    id: 'id',
    purpose: 'address',
    owner: 'destination_hash',
  },
  { ...byId('challenge', 'facts', 'code'), member: 'sealedCode' },
  { ...byId('challenge', 'facts', 'address'), member: 'sealedAddress', ownerMember: 'hash' },
  byId('webhook_endpoint', 'secret', 'webhook'),
  byId('webhook_endpoint', 'previous_secret', 'webhook'),
  byId('push_subscription', 'sealed', 'push'),
  byId('notification_channel', 'sealed', 'message channel'),
  byId('kyc_application', 'sealed', 'kyc'),
  byId('travel_rule', 'sealed', 'travel rule'),
  byId('payout_recipient', 'sealed', 'payout recipient'),
  byId('contact', 'sealed', 'contact'),
  byId('payout', 'sealed', 'payout reference'),
  byId('prepared_payout', 'sealed', 'payout reference'),
  byId('deposit_review', 'sealed', 'deposit sender'),
  {
    table: 'brokerage_account',
    column: 'sealed',
    id: 'account_id',
    purpose: 'brokerage application',
    owner: 'account_id',
  },
  byId('purchase', 'credential', 'purchase credential'),
  byId('purchase', 'delivered', 'purchase delivery'),
  { ...byId('purchase_answer', 'sealed', 'purchase answer'), page: 16 },
]

export interface Resealed {
  /** Such as `mfa.sealed_secret`. */
  readonly name: string
  /** Values that were sealed under an earlier key. */
  readonly changed: number
  /** Rows whose value no key opens. */
  readonly unreadable: readonly string[]
}

/**
 * Works through one place in pages, each a transaction of its own: whenever it is interrupted, the next run goes on, and
 * gateways that know both keys read every row in between. A row that changes meanwhile is left for the next run.
 */
export async function reseal(database: Database, dataKey: DataKey, place: SealedColumn): Promise<Resealed> {
  const { table, column, member } = place
  const unreadable: string[] = []
  let changed = 0
  let after = ''
  for (;;) {
    const page = await database.transaction((connection) => readPage(connection, place, after))
    const [current = dataKey] = dataKey.sealing ?? []
    for (const { id, owner, value } of page) {
      const of: Seal = { purpose: place.purpose, owner }
      if (opens(current, of, value)) continue
      const bytes = tryUnseal(dataKey, of, value)
      if (bytes === null) unreadable.push(id)
      else if (await replace(database, place, { id, value, by: seal(dataKey, of, bytes) })) changed += 1
    }
    const last = page.at(-1)
    if (last === undefined) break
    after = last.id
  }
  return { name: [table, column, ...(member === undefined ? [] : [member])].join('.'), changed, unreadable }
}

const PAGE = 500

async function readPage({ kysely }: Connection, place: SealedColumn, after: string) {
  const { member, ownerMember } = place
  const value =
    member === undefined ? sql.ref(place.column) : sql`${sql.ref(place.column)} ->> ${member}::text`
  const owner =
    ownerMember === undefined ? sql.ref(place.owner) : sql`${sql.ref(place.column)} ->> ${ownerMember}::text`
  const { rows } = await sql<{ id: string; owner: string; value: Uint8Array | string }>`
    select ${sql.ref(place.id)} as id, ${owner} as owner, ${value} as value from ${sql.table(place.table)}
    where ${sql.ref(place.id)} > ${after} and ${value} is not null
    order by ${sql.ref(place.id)} limit ${place.page ?? PAGE}`.execute(kysely)
  return rows.map((row) => ({ ...row, value: toBytes(row.value) }))
}

async function replace(
  { kysely }: Connection,
  { table, column, id: key, member }: SealedColumn,
  { id, value, by }: { id: string; value: Uint8Array; by: Uint8Array },
): Promise<boolean> {
  const [old, fresh] = [value, by].map((bytes) => (member === undefined ? bytes : toText(bytes)))
  const { numAffectedRows } =
    member === undefined
      ? await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${fresh}
          where ${sql.ref(key)} = ${id} and ${sql.ref(column)} = ${old}`.execute(kysely)
      : await sql`update ${sql.table(table)}
          set ${sql.ref(column)} = jsonb_set(${sql.ref(column)}, array[${member}::text], to_jsonb(${fresh}::text))
          where ${sql.ref(key)} = ${id} and ${sql.ref(column)} ->> ${member}::text = ${old}`.execute(kysely)
  return numAffectedRows === 1n
}

const toText = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')
const toBytes = (value: Uint8Array | string) =>
  typeof value === 'string' ? Buffer.from(value, 'base64url') : value

function opens(key: DataKey, of: Seal, sealed: Uint8Array): boolean {
  return tryUnseal(key, of, sealed) !== null
}

function tryUnseal(key: DataKey, of: Seal, sealed: Uint8Array): Uint8Array | null {
  try {
    return unsealBytes(key, of, sealed)
  } catch {
    return null
  }
}
